"""Do the work on a few items at once, and give what comes out in the order of the items."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Found = TypeVar("Found")


def ahead(
    work: Callable[[Item], Found], items: Iterable[Item], count: int
) -> Iterator[tuple[Item, Found]]:
    """Every item with what the work makes of it, `count` of them under way in threads."""
    under_way: deque[tuple[Item, Future[Found]]] = deque()
    with ThreadPoolExecutor(count) as threads:
        try:
            for item in items:
                under_way.append((item, threads.submit(work, item)))
                if len(under_way) == count:
                    yield _first(under_way)
            while under_way:
                yield _first(under_way)
        finally:
            threads.shutdown(cancel_futures=True)


def _first(under_way: deque[tuple[Item, Future[Found]]]) -> tuple[Item, Found]:
    item, future = under_way.popleft()
    return item, future.result()
