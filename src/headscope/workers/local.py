"""One piece after the other in this process."""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from headscope.workers.engine import Outcome, Piece, Pool, Work


@dataclass(frozen=True)
class LocalEngine:
    """The engine that needs nothing."""

    name: str = "local"

    def open(self) -> AbstractContextManager[Pool]:
        """This process."""
        return nullcontext(LocalPool())


class LocalPool:
    """A single worker: this process."""

    def share(self, threads: int, *, needs_gpu: bool) -> int:
        """All of them."""
        return threads

    def run(
        self, work: Work[Piece, Outcome], pieces: Iterable[Piece]
    ) -> Iterator[tuple[Piece, Outcome]]:
        """Do the work here and now."""
        work.open()
        for piece in pieces:
            yield piece, work(piece)
