"""The workers of a run on a Ray cluster: hired, given pieces, replaced when they die."""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic

import headscope
from headscope.errors import HeadscopeError, RunError
from headscope.workers.cluster import Plan, find_nodes, import_ray
from headscope.workers.engine import Outcome, Piece, Work
from headscope.workers.ledger import ATTEMPTS, Ledger, Ticket
from headscope.workers.worker import Worker

LOOK_EVERY = 5.0  # seconds without news
SAY_AFTER = 30.0  # seconds without any worker

log = logging.getLogger("headscope")


@dataclass(eq=False)
class Member(Generic[Piece]):
    """A worker, and what it is busy with: a piece, or getting ready."""

    number: int
    actor: Any
    doing: Any  # the reference to what it will give, None when it is free
    ticket: Ticket[Piece] | None = None
    node: str | None = None  # known once it is ready

    @property
    def is_ready(self) -> bool:
        """Whether it can be given a piece, now or later."""
        return self.node is not None


class Crew(Generic[Piece, Outcome]):
    """Workers of one kind, each with one piece at a time, so that nothing piles up anywhere."""

    def __init__(self, work: Work[Piece, Outcome], plan: Plan) -> None:
        self._ray: Any = import_ray()
        self._work = work
        self._plan = plan
        self._content = self._ray.put(self._ray.cloudpickle.dumps(work))
        self._members: list[Member[Piece]] = []
        self._hired = 0
        self._patience = ATTEMPTS * plan.workers  # for workers that die before they are ready
        self._start = time.monotonic()
        self._has_waited = False
        for _ in range(plan.workers):
            self._hire()

    def results(self, ledger: Ledger[Piece]) -> Iterator[tuple[Piece, Outcome]]:
        """Every piece of the ledger with its outcome, as they come."""
        while True:
            self._hand_out(ledger)
            if ledger.is_done:
                return
            member = self._wait()
            if member is not None:
                yield from self._settle(member, ledger)

    def dismiss(self) -> None:
        """Stop all workers, whatever they are doing."""
        for member in self._members:
            self._ray.kill(member.actor)
        self._members.clear()

    def _hire(self) -> None:
        remote: Any = self._ray.remote(Worker)
        actor = remote.options(
            num_cpus=self._plan.cpus,
            num_gpus=self._plan.gpus,
            scheduling_strategy="SPREAD",
            max_restarts=0,
        ).remote()
        opening = actor.open.remote(self._content, headscope.__version__)
        self._members.append(Member(self._hired, actor, opening))
        self._hired += 1

    def _hand_out(self, ledger: Ledger[Piece]) -> None:
        ready = [member for member in self._members if member.is_ready]
        crew = {member.number for member in ready}
        for member in ready:
            if member.doing is None:
                member.ticket = ledger.take(member.number, crew)
                if member.ticket is not None:
                    member.doing = member.actor.do.remote(member.ticket.piece)

    def _wait(self) -> Member[Piece] | None:
        """A worker that has news; None if there is none for a while."""
        busy = {member.doing: member for member in self._members if member.doing is not None}
        done, _ = self._ray.wait(list(busy), num_returns=1, timeout=LOOK_EVERY)
        if done:
            return busy[done[0]]
        self._look_around()
        return None

    def _settle(
        self, member: Member[Piece], ledger: Ledger[Piece]
    ) -> Iterator[tuple[Piece, Outcome]]:
        ticket, promise = member.ticket, member.doing
        member.ticket = member.doing = None
        try:
            given = self._ray.get(promise)
        except self._ray.exceptions.RayTaskError as error:
            self._excuse(member, ticket, error, ledger)
        except self._ray.exceptions.RayError as error:
            self._lose(member, ticket, error, ledger)
        else:
            if ticket is None:
                member.node = given
                return
            ledger.finish(ticket)
            self._hand_out(ledger)  # now, so that the worker does not wait until this is written
            yield ticket.piece, given

    def _excuse(
        self,
        member: Member[Piece],
        ticket: Ticket[Piece] | None,
        error: Exception,
        ledger: Ledger[Piece],
    ) -> None:
        """It lives and said what is wrong: with a piece, or with the node it is on."""
        if ticket is not None:
            self._note_failure(member, ticket, _reason(error), ledger)
            return
        self._remove(member)
        if not self._members:
            raise RunError(
                f"No worker could start, the last one because: {_reason(error).rstrip('.')}. Every "
                "node needs Headscope, and model and corpus under the same name; see docs/scale.md."
            )
        log.warning("A worker is left out: %s", _reason(error))

    def _lose(
        self,
        member: Member[Piece],
        ticket: Ticket[Piece] | None,
        error: Exception,
        ledger: Ledger[Piece],
    ) -> None:
        """It died, or its node did; another one takes its place where there is room."""
        self._remove(member)
        if ticket is not None:
            log.warning("A worker on %s died; %s is done again.", member.node, self._name(ticket))
            self._note_failure(member, ticket, _death(error), ledger)
        else:
            self._patience -= 1
            if self._patience == 0:
                raise RunError(
                    f"Workers die before they are ready: {_death(error)}. "
                    "See docs/scale.md for what every node needs."
                )
        self._hire()

    def _note_failure(
        self, member: Member[Piece], ticket: Ticket[Piece], reason: str, ledger: Ledger[Piece]
    ) -> None:
        if not ledger.fail(ticket, member.number):
            raise RunError(
                f"{self._name(ticket)} failed {len(ticket.failed_on)} times, the last time on "
                f"{member.node}: {reason.rstrip('.')}. What is finished is kept; "
                "run the same command again when this is mended."
            )

    def _name(self, ticket: Ticket[Piece]) -> str:
        return self._work.describe(ticket.piece)

    def _remove(self, member: Member[Piece]) -> None:
        self._members.remove(member)
        self._ray.kill(member.actor)

    def _look_around(self) -> None:
        """Nothing happens: say so once, and stop if nothing ever can."""
        if any(member.is_ready for member in self._members):
            return
        nodes = find_nodes()
        if not any(node.cpus >= self._plan.cpus and node.gpus >= self._plan.gpus for node in nodes):
            raise RunError(
                f"No node with {self._plan} is left in the cluster; what is finished is kept, "
                "so run the same command again when there is one."
            )
        if not self._has_waited and time.monotonic() - self._start > SAY_AFTER:
            self._has_waited = True
            log.warning("Waiting for a worker; each asks the cluster for %s.", self._plan)


@contextmanager
def hired(work: Work[Piece, Outcome], plan: Plan) -> Iterator[Crew[Piece, Outcome]]:
    """A crew for as long as the block lasts."""
    crew = Crew(work, plan)
    try:
        yield crew
    finally:
        crew.dismiss()


def _reason(error: Exception) -> str:
    """What was raised in the worker, in its own words."""
    cause = getattr(error, "cause", None) or error
    said = (str(cause).splitlines() or [""])[0]
    return said if isinstance(cause, HeadscopeError) else f"{type(cause).__name__}: {said}"


def _death(error: Exception) -> str:
    """How a worker died; Ray's account names an error only if one was raised at its start."""
    if type(error).__name__ == "OutOfMemoryError":
        return "its node ran out of memory"
    named = [line.strip() for line in str(error).splitlines() if "Error: " in line]
    return named[-1] if named else "its process or its node died"
