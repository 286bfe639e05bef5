"""The work of one shard: read sentences, make inputs, observe them, pack a partial result."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from headscope.engine.forward import observe
from headscope.engine.partial import Counts, Partial, pack
from headscope.metrics.metric import State
from headscope.studies.study import Part, Setup
from headscope.text.corpus import Shard
from headscope.workers.threads import use_threads


@dataclass(frozen=True)
class Job:
    """Everything that is needed to compute any shard of a run, in this process or another."""

    setup: Setup
    make_parts: Callable[[Setup], tuple[Part, ...]]
    threads: int
    fingerprint: str  # of the model that the run is of

    @property
    def needs_gpu(self) -> bool:
        """Whether the model is on a GPU."""
        return self.setup.model.device.type == "cuda"

    def open(self) -> None:
        """Refuse to compute with other weights than those of the run."""
        self.setup.check_model(self.fingerprint)

    def __call__(self, shard: Shard, /) -> bytes:
        """The content of a shard's file."""
        with use_threads(self.threads):
            return pack(self.compute(shard))

    def describe(self, shard: Shard, /) -> str:
        """The shard by its number and its sentences, counted from 0."""
        return f"Shard {shard.index} (sentences {shard.start} to {shard.stop - 1})"

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """What is read and measured; made anew in every process."""
        return self.make_parts(self.setup)

    def compute(self, shard: Shard) -> Partial:
        """The partial result of one shard."""
        sentences = self.setup.corpus.read(shard)
        states: dict[str, State] = {}
        counts = Counts()
        for part in self.parts:
            made = part.read(self.setup, shard, sentences)
            counts += Counts(skipped=Counter(made.skipped))
            if part.of_corpus:
                counts += Counts(len(made.examples), made.tokens)
            states |= observe(
                self.setup.model,
                made.examples,
                part.metrics,
                self.setup.batch_tokens,
                self.setup.attention,
            )
        return Partial(states, counts)
