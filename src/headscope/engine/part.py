"""Inputs made of sentences, and the metrics that read them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from headscope.engine.setup import Setup
from headscope.metrics.metric import Metric
from headscope.observe.inputs import Columns, Example, Examples
from headscope.text.corpus import Shard
from headscope.text.segments import Excerpt, read_around
from headscope.text.sentence import Sentence


@dataclass(frozen=True)
class Inputs:
    """What was made of some sentences: examples, and how many were skipped for which reason."""

    examples: Sequence[Example]
    skipped: Mapping[str, int] = field(default_factory=dict)
    words: Mapping[str, int] = field(default_factory=dict)  # how words and tokens meet

    @cached_property
    def columns(self) -> Columns:
        """The examples as flat arrays."""
        if isinstance(self.examples, Examples):
            return self.examples.columns
        return Columns.of(self.examples)


@dataclass(frozen=True)
class Part:
    """Metrics that read the same inputs."""

    inputs: Callable[[Setup, Excerpt, int], Inputs]  # of sentences, the first with that number
    metrics: tuple[Metric, ...]
    of_corpus: bool = True  # whether the inputs are counted as sentences of the corpus
    # First and last (exclusive) sentence that the inputs of a shard depend on, if not its own.
    reach: Callable[[Setup, Shard], tuple[int, int]] | None = None

    def read(self, setup: Setup, shard: Shard, sentences: Sequence[Sentence]) -> Inputs:
        """The inputs of a shard; what it lacks of them is read from the corpus."""
        if self.reach is None:
            excerpt = Excerpt(sentences)
        else:
            excerpt = read_around(setup.corpus, shard, sentences, self.reach(setup, shard))
        return self.inputs(setup, excerpt, shard.start)


def read_inputs(setup: Setup, parts: Sequence[Part], shard: Shard) -> list[Inputs]:
    """The inputs of every part for one shard."""
    sentences = setup.corpus.read(shard)
    return [part.read(setup, shard, sentences) for part in parts]
