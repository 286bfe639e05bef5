"""Work in this process: one piece after the other, or several at once in threads.

On a GPU, pieces at once keep the device busy: one computes while others are read or packed.

```
  shard 0   prepare  GPU      pack
  shard 1            prepare  GPU      pack
  shard 2                     prepare  GPU      pack
```
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TypeVar

from headscope.workers.engine import Outcome, Piece, Pool, Work

Item = TypeVar("Item")
Found = TypeVar("Found")


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
            yield from map_in_threads(work, pieces, self.at_once)
        else:
            for piece in pieces:
                yield piece, work(piece)


def map_in_threads(
    work: Callable[[Item], Found], items: Iterable[Item], count: int
) -> Iterator[tuple[Item, Found]]:
    """Every item with what the work makes of it, in order, `count` of them in progress."""
    in_progress: deque[tuple[Item, Future[Found]]] = deque()
    with ThreadPoolExecutor(count) as threads:
        try:
            for item in items:
                in_progress.append((item, threads.submit(work, item)))
                if len(in_progress) == count:
                    yield _first(in_progress)
            while in_progress:
                yield _first(in_progress)
        finally:
            threads.shutdown(cancel_futures=True)


def _first(in_progress: deque[tuple[Item, Future[Found]]]) -> tuple[Item, Found]:
    item, future = in_progress.popleft()
    return item, future.result()
