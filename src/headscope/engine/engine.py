"""The contract of an engine: it computes shards, in any order and anywhere.

Results go through the run directory alone: a shard's file is complete or absent, and merging reads
them in shard order. So every engine gives the same result, however often it was interrupted.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from headscope.errors import RunError
from headscope.text.corpus import Shard

Work = Callable[[Shard], None]  # computes one shard and writes its file


class Engine(Protocol):
    """A way to get shards computed."""

    @property
    def name(self) -> str:
        """What the user calls it."""
        ...

    def run(self, work: Work, shards: Sequence[Shard]) -> Iterator[Shard]:
        """Do the work for every shard; yield each when its file is there."""
        ...


def find_engine(name: str) -> Engine:
    """The engine of that name."""
    from headscope.engine.local import LocalEngine

    engines: dict[str, Engine] = {engine.name: engine for engine in (LocalEngine(),)}
    if name not in engines:
        raise RunError(f"There is no engine {name!r}; choose one of {', '.join(engines)}.")
    return engines[name]
