"""Several pieces under way in this process: one computes on the GPU, others are read or packed.

```
  shard 0   prepare  GPU      pack
  shard 1            prepare  GPU      pack
  shard 2                     prepare  GPU      pack
```
"""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from headscope.workers.ahead import ahead
from headscope.workers.engine import Outcome, Piece, Pool, Work

UNDER_WAY = 3


@dataclass(frozen=True)
class OverlappedEngine:
    """The local engine for a GPU."""

    name: str = "local"

    def open(self) -> AbstractContextManager[Pool]:
        """This process."""
        return nullcontext(OverlappedPool())


class OverlappedPool:
    """Threads of this process; who uses the GPU takes turns by itself."""

    def share(self, threads: int, *, needs_gpu: bool) -> int:
        """All of them."""
        return threads

    def run(
        self, work: Work[Piece, Outcome], pieces: Iterable[Piece]
    ) -> Iterator[tuple[Piece, Outcome]]:
        """Do the work on a few pieces at once; what comes out is in the order of the pieces."""
        work.open()
        yield from ahead(work, pieces, UNDER_WAY)
