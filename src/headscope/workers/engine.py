"""The contract of an engine: it does a work on pieces, in any order and anywhere.

What a piece gives comes back to the process that asked, which alone writes files. So every engine
gives the same result, however often it was interrupted and wherever the pieces were computed.
"""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
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
    def threads(self) -> int:
        """How many threads it uses."""
        ...

    @property
    def needs_gpu(self) -> bool:
        """Whether it uses a GPU."""
        ...

    def open(self) -> None:
        """Get ready, once in every process; raises what makes this process useless for the work."""
        ...

    def __call__(self, piece: Takes, /) -> Gives:
        """Do the work on one piece."""
        ...

    def describe(self, piece: Takes, /) -> str:
        """The piece in words, to begin a sentence with."""
        ...


class Pool(Protocol):
    """Workers at hand."""

    def share(self, threads: int, *, needs_gpu: bool) -> int:
        """How many threads each of the workers should use, at most so many."""
        ...

    def run(
        self, work: Work[Piece, Outcome], pieces: Iterable[Piece]
    ) -> Iterator[tuple[Piece, Outcome]]:
        """Do the work on every piece and give each with its outcome when it is done."""
        ...


class Engine(Protocol):
    """A way to get work done."""

    @property
    def name(self) -> str:
        """What the user calls it."""
        ...

    def open(self) -> AbstractContextManager[Pool]:
        """Workers for as long as the block lasts."""
        ...


def find_engine(name: str, *, address: str | None = None, workers: int | None = None) -> Engine:
    """The engine of that name; an address and a number of workers are for Ray alone."""
    from headscope.workers.local import LocalEngine
    from headscope.workers.ray import RayEngine

    if name == "ray":
        return RayEngine(address, workers)
    if name != "local":
        raise RunError(f"There is no engine {name!r}; choose one of {', '.join(ENGINES)}.")
    if address is not None or workers is not None:
        raise RunError("The local engine has no address and no workers; add `--engine ray`.")
    return LocalEngine()
