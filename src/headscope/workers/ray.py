"""Work on a Ray cluster: on all cores and GPUs of one machine or of many.

Ray places the workers, restarts those whose process or node dies, and reports what is done. Which
worker gets which piece is decided here, for three reasons: a piece is handed out only to a free
worker, so none is queued behind a worker that waits for its node to come back; one that failed is
tried on another worker; and a worker whose node cannot do the work is left out.
"""

import logging
import os
import pickle
import re
import socket
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Generic

import headscope
from headscope.errors import HeadscopeError, RunError
from headscope.workers import Attempted, Outcome, Piece, Pieces, Work
from headscope.workers.placement import Node, Placement, place_workers

ATTEMPTS = 3  # at one piece; then it is named and the run stops
RESTARTS = 10  # of one worker by Ray
LOOK_EVERY = 5.0  # seconds without news
SAY_AFTER = 30.0  # seconds without any worker
SETTINGS = {  # of a cluster that is started here
    "RAY_USAGE_STATS_ENABLED": "0",  # nothing is reported to anybody
    "RAY_worker_niceness": "0",  # on a busy machine workers get as much as other processes
}
_HOST = re.compile(r"(?P<host>[^/:]+|\[.+\]):(?P<port>\d+)")
_ANSWER_WITHIN = 5.0  # seconds

log = logging.getLogger("headscope")


@dataclass(frozen=True)
class RayEngine:
    """The engine for what takes too long in one process.

    `address` is that of a running cluster, `workers` the number of processes that share its cores;
    by default one per GPU, or one for as many cores as torch has threads here.
    """

    address: str | None = None
    workers: int | None = None
    name: str = "ray"

    @contextmanager
    def open(self) -> Iterator["RayPool"]:
        """Connect to the cluster, or start one on this machine and stop it at the end."""
        with connected(self.address), closing(RayPool(self.workers)) as pool:
            yield pool


@dataclass
class RayPool:
    """Workers on a cluster. Their processes go from one work to the next: each imports torch."""

    workers: int | None
    _placement: Placement | None = None
    _actors: list[Any] = field(default_factory=list)  # that have no work now

    def share(self, threads: int, *, needs_gpu: bool) -> int:
        """One thread per core of a worker; workers on GPUs share the cores of their nodes."""
        nodes = find_nodes()
        placed = place_workers(nodes, workers=self.workers, threads=threads, needs_gpu=needs_gpu)
        cores = sum(node.cpus for node in nodes) // placed.workers if needs_gpu else placed.cpus
        return max(1, min(threads, cores))

    def run(
        self, work: Work[Piece, Outcome], pieces: Iterable[Piece]
    ) -> Iterator[tuple[Piece, Outcome]]:
        """Every piece with its outcome, as they arrive; a dead worker costs only its piece."""
        placement = place_workers(
            find_nodes(), workers=self.workers, threads=work.threads, needs_gpu=work.needs_gpu
        )
        workers = RayWorkers(work, placement, self._take(placement))
        try:
            yield from workers.results(Pieces(pieces))
        except BaseException:  # also when nobody asks for the rest
            workers.stop()
            raise
        self._actors = workers.free()

    def _take(self, placement: Placement) -> list[Any]:
        """The processes that have no work, as many as fit the placement; the others are ended."""
        if self._placement is None or not placement.is_like(self._placement):
            self.close()
        taken, self._actors = self._actors[: placement.workers], self._actors[placement.workers :]
        self.close()  # too many where nodes have gone
        self._placement = placement
        return taken

    def close(self) -> None:
        """End the processes that have no work."""
        for actor in self._actors:
            import_ray().kill(actor)
        self._actors = []


class Process:
    """What runs in a process of the cluster: a work, opened once, then piece after piece."""

    def open(self, content: bytes, version: str) -> str:
        """Load the work and what it needs; the address of this node."""
        from ray.util import get_node_ip_address

        if version != headscope.__version__:
            raise RunError(
                f"This node has headscope {headscope.__version__}, the run was started with "
                f"{version}; install the same version on every node."
            )
        self._work = pickle.loads(content)
        self._work.open()
        return get_node_ip_address()

    def do(self, piece: Any) -> Any:
        """The outcome of one piece."""
        return self._work(piece)


@dataclass(eq=False)
class RayWorker(Generic[Piece]):
    """An actor, and what it is busy with: a piece, or opening the work."""

    number: int
    actor: Any
    busy: Any = None  # the reference to what it will return
    attempted: Attempted[Piece] | None = None
    node: str | None = None  # known once it is ready


class RayWorkers(Generic[Piece, Outcome]):
    """Actors of one kind, each with one piece at a time."""

    def __init__(
        self, work: Work[Piece, Outcome], placement: Placement, actors: Sequence[Any] = ()
    ) -> None:
        self._ray: Any = import_ray()
        self._work = work
        self._placement = placement
        self._content = self._ray.put(self._ray.cloudpickle.dumps(work))
        self._started = time.monotonic()
        self._has_said_waiting = False
        started = [self._start() for _ in range(placement.workers - len(actors))]
        self._workers = [
            self._open(RayWorker(number, actor)) for number, actor in enumerate([*actors, *started])
        ]

    def results(self, pieces: Pieces[Piece]) -> Iterator[tuple[Piece, Outcome]]:
        """Every piece with its outcome, as they arrive."""
        while True:
            self._hand_out(pieces)
            if pieces.are_done:
                return
            worker = self._wait()
            if worker is not None:
                yield from self._settle(worker, pieces)

    def stop(self) -> None:
        for worker in [*self._workers]:
            self._remove(worker)

    def free(self) -> list[Any]:
        """The actors for another work, at the end of this one, those that are ready first.

        One that is still starting goes on: it imports torch, which takes longer than a short work.
        """
        ready_first = sorted(self._workers, key=lambda worker: worker.busy is not None)
        return [worker.actor for worker in ready_first]

    def _start(self) -> Any:
        # Opening is retried by Ray when it restarts the process; a piece may go to another worker.
        actor = self._ray.remote(Process).options(
            num_cpus=self._placement.cpus,
            num_gpus=self._placement.gpus,
            scheduling_strategy="SPREAD",
            max_restarts=RESTARTS,
            max_task_retries=-1,
        )
        return actor.remote()

    def _open(self, worker: RayWorker[Piece]) -> RayWorker[Piece]:
        worker.node = None
        worker.busy = worker.actor.open.remote(self._content, headscope.__version__)
        return worker

    def _hand_out(self, pieces: Pieces[Piece]) -> None:
        ready = {worker.number for worker in self._workers if worker.node is not None}
        for worker in self._workers:
            if worker.number in ready and worker.busy is None:
                worker.attempted = pieces.take(worker.number, ready)
                if worker.attempted is not None:
                    do = worker.actor.do.options(max_task_retries=0)
                    worker.busy = do.remote(worker.attempted.piece)

    def _wait(self) -> RayWorker[Piece] | None:
        """A worker that has returned or failed; None if there is none for a while."""
        busy = {worker.busy: worker for worker in self._workers if worker.busy is not None}
        done, _ = self._ray.wait(list(busy), num_returns=1, timeout=LOOK_EVERY)
        if done:
            return busy[done[0]]
        self._check_nodes()
        return None

    def _settle(
        self, worker: RayWorker[Piece], pieces: Pieces[Piece]
    ) -> Iterator[tuple[Piece, Outcome]]:
        reference, attempted = worker.busy, worker.attempted
        worker.busy = worker.attempted = None
        try:
            returned = self._ray.get(reference)
        except self._ray.exceptions.RayError as error:
            if attempted is None:
                self._leave_out(worker, error)
            else:
                pieces.fail(attempted, worker.number)
                self._fail(worker, attempted, error)
            return
        if attempted is None:
            worker.node = returned
            return
        pieces.finish(attempted)
        self._hand_out(pieces)  # now, so that the worker does not wait until this is written
        yield attempted.piece, returned

    def _leave_out(self, worker: RayWorker[Piece], error: Exception) -> None:
        """The work cannot be opened there, or Ray has restarted the worker too often."""
        self._remove(worker)
        if not self._workers:
            raise RunError(
                f"No worker could start, the last one because: {_reason(error).rstrip('.')}. Every "
                "node needs Headscope, and model and corpus under the same name; see docs/scale.md."
            )
        log.warning("A worker is left out: %s", _reason(error))

    def _fail(
        self, worker: RayWorker[Piece], attempted: Attempted[Piece], error: Exception
    ) -> None:
        """The piece is tried again; a worker that died opens the work anew once Ray restarts it."""
        name, node = self._work.describe(attempted.piece), worker.node
        if len(attempted.failed_on) == ATTEMPTS:
            raise RunError(
                f"{name} failed {ATTEMPTS} times, the last time on {node}: "
                f"{_reason(error).rstrip('.')}. What is finished is kept; run the same command "
                "again when this is mended."
            )
        if not isinstance(error, self._ray.exceptions.RayTaskError):
            log.warning("A worker on %s died; %s is done again.", node, name)
            self._open(worker)

    def _remove(self, worker: RayWorker[Piece]) -> None:
        self._workers.remove(worker)
        self._ray.kill(worker.actor)

    def _check_nodes(self) -> None:
        """Nothing happens: say so once, and stop if nothing ever can."""
        if any(worker.node is not None for worker in self._workers):
            return
        need = self._placement
        if not any(node.cpus >= need.cpus and node.gpus >= need.gpus for node in find_nodes()):
            raise RunError(
                f"No node with {need} is left in the cluster; what is finished is kept, "
                "so run the same command again when there is one."
            )
        if not self._has_said_waiting and time.monotonic() - self._started > SAY_AFTER:
            self._has_said_waiting = True
            log.warning("Waiting for a worker; each asks the cluster for %s.", need)


def _reason(error: Exception) -> str:
    """What was raised in the worker, or how it died, in one line."""
    cause = getattr(error, "cause", None)
    if isinstance(cause, Exception):
        said = (str(cause).splitlines() or [""])[0]
        return said if isinstance(cause, HeadscopeError) else f"{type(cause).__name__}: {said}"
    if type(error).__name__ == "OutOfMemoryError":
        return "its node ran out of memory"
    return "its process or its node died"


def import_ray() -> ModuleType:
    """Ray, or an error that says how to install it."""
    try:
        import ray
    except ImportError as error:
        raise RunError(
            'Ray is not installed; install it with `pip install "headscope[ray]"`.'
        ) from error
    return ray


@contextmanager
def connected(address: str | None) -> Iterator[None]:
    """A connection to a cluster: at the address, at $RAY_ADDRESS, or started here.

    A process that is connected already stays connected.
    """
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    ray = import_ray()
    if ray.is_initialized():
        if address is not None:
            raise RunError(
                f"This process is connected to a Ray cluster already; leave {address} out, or call "
                "ray.shutdown() first."
            )
        yield
        return
    _connect(ray, address or os.environ.get("RAY_ADDRESS") or "local")
    try:
        yield
    finally:
        ray.shutdown()


def find_nodes() -> list[Node]:
    """The machines of the cluster that are alive."""
    alive = (node["Resources"] for node in import_ray().nodes() if node["Alive"])
    return [Node(int(has.get("CPU", 0)), int(has.get("GPU", 0))) for has in alive]


def _connect(ray: ModuleType, address: str) -> None:
    _check_answers(address)
    own = {"include_dashboard": False} if address == "local" else {}
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, **own)
    except (RuntimeError, ConnectionError, ValueError, OSError, ImportError) as error:
        said = next((line for line in str(error).splitlines() if line.strip()), "no reason given")
        raise RunError(
            f"Ray cannot be used at {address!r} ({said.strip().rstrip('.')}); start a cluster with "
            "`ray start --head`, or leave the address out to use this machine alone."
        ) from error


def _check_answers(address: str) -> None:
    """Refuse an address without a server at once; Ray itself tries for a minute."""
    match = _HOST.fullmatch(address)
    if match is None:
        return
    try:
        place = match["host"].strip("[]"), int(match["port"])
        socket.create_connection(place, timeout=_ANSWER_WITHIN).close()
    except OSError as error:
        raise RunError(
            f"Nobody answers at {address} ({error.strerror or error}); check the address of the "
            "cluster (`ray status` on its head node), or leave it out to use this machine alone."
        ) from error
