"""The work of one shard: read sentences, make inputs, observe them, write a partial result."""

from collections import Counter
from dataclasses import dataclass

from headscope.engine.observe import observe
from headscope.engine.partial import Counts, Partial, save
from headscope.engine.run import Run
from headscope.metrics.metric import State
from headscope.studies.study import Part, Setup
from headscope.text.corpus import Shard


@dataclass(frozen=True)
class Job:
    """Everything that is needed to compute any shard of a run."""

    setup: Setup
    parts: tuple[Part, ...]
    run: Run

    def __call__(self, shard: Shard) -> None:
        """Compute one shard and write its file."""
        save(self.compute(shard), self.run.shard(shard.index))

    def compute(self, shard: Shard) -> Partial:
        """The partial result of one shard."""
        sentences = self.setup.corpus.read(shard)
        states: dict[str, State] = {}
        counts = Counts()
        for part in self.parts:
            made = part.inputs(self.setup, sentences, shard.start)
            counts += Counts(skipped=Counter(made.skipped))
            if part.of_corpus:
                tokens = sum(len(example.encoded) for example in made.examples)
                counts += Counts(len(made.examples), tokens)
            states |= observe(
                self.setup.model, made.examples, part.metrics, self.setup.batch_tokens
            )
        return Partial(states, counts)
