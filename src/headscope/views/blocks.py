"""The binary blocks of a payload, each made when it is asked for.

A page is written block by block and a server sends the few that a visitor looks at, so that the
blocks of a long input are never all in memory.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import overload


@dataclass(frozen=True, slots=True)
class Blocks(Sequence[bytes]):
    """Blocks by number; `add` takes the function that makes one and hands out its number."""

    makers: list[Callable[[], bytes]] = field(default_factory=list)

    def add(self, make: Callable[[], bytes]) -> int:
        """The number of a new block."""
        self.makers.append(make)
        return len(self.makers) - 1

    def __len__(self) -> int:
        return len(self.makers)

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[bytes]: ...
    def __getitem__(self, index: int | slice) -> bytes | Sequence[bytes]:
        if isinstance(index, slice):
            return Blocks(self.makers[index])
        return self.makers[index]()

    def __iter__(self) -> Iterator[bytes]:
        return (make() for make in self.makers)
