"""Runs work over pieces: in this process or on a Ray cluster. Knows nothing of models.

An engine does a work on pieces, in any order and anywhere. The outcome of a piece returns to the
process that asked for it, which alone writes files. So every engine gives the same result, however
often it was interrupted and wherever pieces were computed.
"""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Protocol, TypeVar

from headscope.errors import RunError

Piece = TypeVar("Piece")
Outcome = TypeVar("Outcome")
Takes = TypeVar("Takes", contravariant=True)
Gives = TypeVar("Gives", covariant=True)
ENGINES = ("local", "ray")


class Work(Protocol[Takes, Gives]):
    """What is done to every piece; it pickles, so that it can be done in another process."""

    @property
    def threads(self) -> int: ...

    @property
    def needs_gpu(self) -> bool: ...

    def open(self) -> None:
        """Prepare, once in every process; raises if this process cannot do the work."""
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
    """This process as the only worker, with one piece at a time."""

    name: str = "local"

    def open(self) -> AbstractContextManager[Pool]:
        """Nothing has to be connected."""
        return nullcontext(self)

    def share(self, threads: int, *, needs_gpu: bool) -> int:
        """All threads: nothing else runs."""
        return threads

    def run(
        self, work: Work[Piece, Outcome], pieces: Iterable[Piece]
    ) -> Iterator[tuple[Piece, Outcome]]:
        """Every piece with its outcome, in the order of the pieces."""
        work.open()
        for piece in pieces:
            yield piece, work(piece)


@contextmanager
def use_threads(count: int) -> Iterator[None]:
    """Exactly this many threads of torch within the block: they decide the last bits of sums."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
