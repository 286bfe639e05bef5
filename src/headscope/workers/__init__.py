"""Runs work over pieces: in this process or on a Ray cluster. Knows nothing of models.

Here is the contract of an engine: it does a work on pieces, in any order and anywhere.

The outcome of a piece returns to the process that asked for it, which alone writes files. So every
engine gives the same result, however often it was interrupted and wherever pieces were computed.

The local engine works in this process: one piece after the other, or several at once in threads. On
a CPU each of them has its share of the cores. On a GPU, pieces at once keep the device busy: one
computes while others are read or packed.

```
  shard 0   prepare  GPU      pack
  shard 1            prepare  GPU      pack
  shard 2                     prepare  GPU      pack
```
"""

import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Set
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import Event
from typing import Generic, Protocol, TypeVar

from headscope.errors import RunError

Piece = TypeVar("Piece")
Outcome = TypeVar("Outcome")
Takes = TypeVar("Takes", contravariant=True)
Gives = TypeVar("Gives", covariant=True)
ENGINES = ("local", "ray")
SPREAD = 64  # pieces between the oldest unfinished one and the newest: bounds what waits for order
TURN = 2e-4  # seconds that a thread may keep the interpreter while others wait
_stopped: ContextVar[Event | None] = ContextVar("headscope_workers_stopped", default=None)


class Work(Protocol[Takes, Gives]):
    """What is done to every piece; it pickles, so that it can be done in another process."""

    @property
    def threads(self) -> int: ...

    @property
    def needs_gpu(self) -> bool: ...

    def open(self) -> None:
        """Prepare, once in every process; raises what makes this process useless for the work."""
        ...

    def __call__(self, piece: Takes, /) -> Gives: ...

    def describe(self, piece: Takes, /) -> str:
        """The piece in words, as the subject of a sentence."""
        ...


class Pool(Protocol):
    """Workers that are connected and ready to be used."""

    def share(self, threads: int, *, needs_gpu: bool) -> int:
        """How many threads each worker should use, at most `threads`."""
        ...

    def run(
        self, work: Work[Piece, Outcome], pieces: Iterable[Piece]
    ) -> Iterator[tuple[Piece, Outcome]]:
        """Every piece with its outcome, as they are finished."""
        ...


class Engine(Protocol):
    """Runs work over pieces and yields their outcomes."""

    @property
    def name(self) -> str: ...

    def open(self) -> AbstractContextManager[Pool]:
        """Workers for the duration of the block."""
        ...


def find_engine(name: str, *, address: str | None = None, workers: int | None = None) -> Engine:
    """The engine of that name; an address and a number of workers are for Ray only."""
    from headscope.workers.ray import RayEngine

    if name == "ray":
        return RayEngine(address, workers)
    if name != "local":
        raise RunError(f"There is no engine {name!r}; choose one of {', '.join(ENGINES)}.")
    if address is not None or workers is not None:
        raise RunError("The local engine has no address and no workers; add `--engine ray`.")
    return LocalEngine()


@dataclass(frozen=True)
class LocalEngine:
    """The engine that needs no other process."""

    name: str = "local"

    def open(self) -> AbstractContextManager[Pool]:
        """This process."""
        return nullcontext(LocalPool())


@dataclass(frozen=True)
class LocalPool:
    """This process as the only worker."""

    at_once: int = 1  # pieces in progress; more than one only if the work can share the process

    def share(self, threads: int, *, needs_gpu: bool) -> int:
        """All threads: nothing else runs."""
        return threads

    def run(
        self, work: Work[Piece, Outcome], pieces: Iterable[Piece]
    ) -> Iterator[tuple[Piece, Outcome]]:
        """Every piece with its outcome, in the order of the pieces."""
        work.open()
        if self.at_once > 1:
            yield from map_in_threads(work, pieces, self.at_once, waiting=1)
        else:
            for piece in pieces:
                yield piece, work(piece)


def map_in_threads(
    work: Callable[[Piece], Outcome], pieces: Iterable[Piece], count: int, waiting: int = 0
) -> Iterator[tuple[Piece, Outcome]]:
    """Every piece with what the work makes of it, in order, `count` of them in progress.

    So many more are `waiting`, for threads that would be idle until the first piece is done. Where
    nobody asks for the rest, pieces in progress end at their next `go_on`.
    """
    in_progress: deque[tuple[Piece, Future[Outcome]]] = deque()
    stopped = Event()

    def begin(piece: Piece) -> Outcome:
        _stopped.set(stopped)
        return work(piece)

    with _quick_turns(), ThreadPoolExecutor(count) as threads:
        try:
            for piece in pieces:
                in_progress.append((piece, threads.submit(begin, piece)))
                if len(in_progress) == count + waiting:
                    yield _first(in_progress)
            while in_progress:
                yield _first(in_progress)
        finally:
            stopped.set()
            threads.shutdown(cancel_futures=True)


def go_on() -> None:
    """Called now and then by work that takes long: ends it where nobody waits for its outcome."""
    stopped = _stopped.get()
    if stopped is not None and stopped.is_set():
        raise Abandoned


class Abandoned(Exception):  # noqa: N818
    """The work was given up; nobody is told, for nobody asked for its outcome any more."""


@contextmanager
def _quick_turns() -> Iterator[None]:
    """Threads change places often: the one that feeds a GPU comes back after every operation."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(TURN)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def _first(in_progress: deque[tuple[Piece, Future[Outcome]]]) -> tuple[Piece, Outcome]:
    piece, future = in_progress.popleft()
    return piece, future.result()


@dataclass(eq=False)
class Attempted(Generic[Piece]):
    """A piece in progress, and the workers that failed on it."""

    number: int
    piece: Piece
    failed_on: list[int] = field(default_factory=list)


class Pieces(Generic[Piece]):
    """Pieces that are new, in progress, or to be tried again; each is finished once."""

    def __init__(self, source: Iterable[Piece]) -> None:
        self._source = enumerate(source)
        self._exhausted = False
        self._newest = -1
        self._unfinished: dict[int, Attempted[Piece]] = {}
        self._failed: list[Attempted[Piece]] = []

    @property
    def are_done(self) -> bool:
        return self._exhausted and not self._unfinished

    def take(self, worker: int, ready: Set[int]) -> Attempted[Piece] | None:
        """A piece for a worker; one that failed goes to another worker if one is ready."""
        for attempted in self._failed:
            if worker not in attempted.failed_on or ready <= set(attempted.failed_on):
                self._failed.remove(attempted)
                return attempted
        if self._unfinished and self._newest - min(self._unfinished) >= SPREAD:
            return None
        for number, piece in self._source:
            self._newest = number
            return self._unfinished.setdefault(number, Attempted(number, piece))
        self._exhausted = True
        return None

    def finish(self, attempted: Attempted[Piece]) -> None:
        del self._unfinished[attempted.number]

    def fail(self, attempted: Attempted[Piece], worker: int) -> None:
        attempted.failed_on.append(worker)
        self._failed.append(attempted)
