"""One shard after the other in this process."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from headscope.engine.engine import Work
from headscope.text.corpus import Shard


@dataclass(frozen=True)
class LocalEngine:
    """The engine that needs nothing."""

    name: str = "local"

    def run(self, work: Work, shards: Sequence[Shard]) -> Iterator[Shard]:
        """Do the work here and now."""
        for shard in shards:
            work(shard)
            yield shard
