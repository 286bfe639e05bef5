"""What a study asks of its inputs: which measures, by which metrics, and why some are left out.

```python
WIDTHS = Question(("width", "width_to_tags"), width_metrics, unless=no_tags)
STUDY = Study(..., inputs=(InputKind(sentence_inputs, (OFFSETS, WIDTHS)),))
```
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, partial

from headscope.engine.setup import Setup
from headscope.metrics.metric import Metric
from headscope.observe.batch import Columns, Example, Examples
from headscope.text.corpus import Shard
from headscope.text.segments import Excerpt, read_around
from headscope.text.sentence import Sentence
from headscope.wording import plain


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


NO_DECODER = "the study reads texts alone, so only the encoder has input"
MakeInputs = Callable[[Setup, Excerpt, int], Inputs]  # of sentences, the first with that number
Reach = Callable[[Setup, Shard], tuple[int, int]]


@dataclass(frozen=True)
class Question:
    """Measures that belong together, how their metrics are made, and why they may be left out."""

    measures: tuple[str, ...]  # as they are named where they are left out
    make: Callable[[Setup], Sequence[Metric]] = lambda setup: ()  # or answered in a later stage
    unless: Callable[[Setup], str | None] = lambda setup: None  # why this run cannot have them


@dataclass(frozen=True)
class InputKind:
    """One kind of inputs, and what is asked of it."""

    make: MakeInputs
    questions: tuple[Question, ...]
    of_corpus: bool = True  # whether the inputs are counted as sentences of the corpus
    # First and last (exclusive) sentence that the inputs of a shard depend on, if not its own.
    reach: Reach | None = None

    def read(self, setup: Setup, shard: Shard, sentences: Sequence[Sentence]) -> Inputs:
        """The inputs of a shard; what it lacks of them is read from the corpus."""
        if self.reach is None:
            excerpt = Excerpt(sentences)
        else:
            excerpt = read_around(setup.corpus, shard, sentences, self.reach(setup, shard))
        return self.make(setup, excerpt, shard.start)


def why_no_decoder(setup: Setup) -> str | None:
    """Why a decoder is not measured."""
    return NO_DECODER if setup.model.is_encoder_decoder else None


DECODER = Question(("stack decoder", "stack cross"), unless=why_no_decoder)


@dataclass(frozen=True)
class Part:
    """A kind of inputs, and the metrics of all questions that a run can have."""

    kind: InputKind
    metrics: tuple[Metric, ...]


def make_parts(kinds: Sequence[InputKind], setup: Setup) -> tuple[Part, ...]:
    """The kinds of inputs that any metric reads, with their metrics."""
    parts: list[Part] = []
    for kind in kinds:
        metrics: list[Metric] = []
        for question in kind.questions:
            if question.unless(setup) is None:
                metrics += question.make(setup)
        if metrics:
            parts.append(Part(kind, tuple(metrics)))
    return tuple(parts)


@cache
def parts_of(kinds: tuple[InputKind, ...]) -> Callable[[Setup], tuple[Part, ...]]:
    """What makes the parts of a run; the same function for the same kinds of inputs."""
    return partial(make_parts, kinds)


def read_inputs(setup: Setup, parts: Sequence[Part], shard: Shard) -> list[Inputs]:
    """The inputs of every part for one shard."""
    sentences = setup.corpus.read(shard)
    return [part.kind.read(setup, shard, sentences) for part in parts]


def find_left_out(kinds: Sequence[InputKind], setup: Setup) -> dict[str, str]:
    """The measures that this run cannot have, each with the reason."""
    left_out: dict[str, str] = {}
    for kind in kinds:
        for question in kind.questions:
            reason = question.unless(setup)
            if reason is not None:
                left_out |= dict.fromkeys(question.measures, reason)
    return left_out


def say_left_out(left_out: Mapping[str, str]) -> dict[str, str]:
    """A sentence for every reason that something is left out, by the reason."""
    names: dict[str, list[str]] = {}
    for name, reason in left_out.items():
        names.setdefault(reason, []).append(name)
    return {
        reason: f"Without {plain(', '.join(listed))}: {plain(reason)}."
        for reason, listed in names.items()
    }
