"""Which piece of a work is where: not yet taken, in a worker's hands, to be tried again, or done.

Knows nothing of processes and networks; every piece is finished once, and none fails for ever.
"""

from collections.abc import Iterable, Set
from dataclasses import dataclass, field
from typing import Generic

from headscope.workers.engine import Piece

ATTEMPTS = 3  # of one piece; then it is named and the run stops
AHEAD = 64  # pieces between the oldest unfinished one and the newest: who wants order waits no more


@dataclass(eq=False)
class Ticket(Generic[Piece]):
    """A piece that was taken, and the workers that failed on it."""

    number: int
    piece: Piece
    failed_on: list[int] = field(default_factory=list)


class Ledger(Generic[Piece]):
    """Takes pieces from their source only when a worker is free."""

    def __init__(
        self, pieces: Iterable[Piece], *, attempts: int = ATTEMPTS, ahead: int = AHEAD
    ) -> None:
        self._source = enumerate(pieces)
        self._attempts = attempts
        self._ahead = ahead
        self._open: dict[int, Ticket[Piece]] = {}  # taken and not finished
        self._again: list[Ticket[Piece]] = []  # those of them that failed
        self._taken = 0
        self._exhausted = False

    @property
    def is_done(self) -> bool:
        """Whether every piece is finished."""
        return self._exhausted and not self._open

    def take(self, worker: int, crew: Set[int]) -> Ticket[Piece] | None:
        """A piece for one worker of the crew; one that failed goes to another if there is one."""
        for ticket in self._again:
            if worker not in ticket.failed_on or crew <= set(ticket.failed_on):
                self._again.remove(ticket)
                return ticket
        return self._take_new()

    def finish(self, ticket: Ticket[Piece]) -> None:
        """Cross out a piece."""
        del self._open[ticket.number]

    def fail(self, ticket: Ticket[Piece], worker: int) -> bool:
        """Note that a worker failed on a piece; whether it may be tried again."""
        ticket.failed_on.append(worker)
        self._again.append(ticket)
        return len(ticket.failed_on) < self._attempts

    def _take_new(self) -> Ticket[Piece] | None:
        if self._exhausted or self._is_far_ahead():
            return None
        taken = next(self._source, None)
        if taken is None:
            self._exhausted = True
            return None
        ticket = Ticket(*taken)
        self._taken += 1
        self._open[ticket.number] = ticket
        return ticket

    def _is_far_ahead(self) -> bool:
        return bool(self._open) and self._taken - min(self._open) > self._ahead
