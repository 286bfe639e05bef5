"""What a study asks of its inputs: which measures, by which metrics, and why some are left out.

```python
TAGS = Question(("pos_to", "pos_from", "tag_frequency"), tag_metrics, unless=no_tags)
STUDY = Study(..., inputs=(InputKind(sentence_inputs, (DISTANCES, TAGS)),))
```
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial

from headscope.engine.part import Inputs, Part
from headscope.engine.setup import Setup
from headscope.metrics.metric import Metric
from headscope.text.corpus import Shard
from headscope.text.segments import Excerpt
from headscope.wording import plain

NO_DECODER = "the study reads texts alone, so only the encoder has input"
MakeInputs = Callable[[Setup, Excerpt, int], Inputs]  # of sentences, the first with that number
Reach = Callable[[Setup, Shard], tuple[int, int]]


def no_metrics(setup: Setup) -> Sequence[Metric]:
    """For a question that is answered elsewhere, such as in a later stage."""
    return ()


def no_reason(setup: Setup) -> None:
    """For a question that is asked of every model and corpus."""


@dataclass(frozen=True)
class Question:
    """Measures that belong together, how their metrics are made, and why they may be left out."""

    measures: tuple[str, ...]  # as they are named where they are left out
    make: Callable[[Setup], Sequence[Metric]] = no_metrics
    unless: Callable[[Setup], str | None] = no_reason  # why this run cannot have them, or None


@dataclass(frozen=True)
class InputKind:
    """One kind of inputs, and what is asked of it."""

    make: MakeInputs
    questions: tuple[Question, ...]
    of_corpus: bool = True  # whether the inputs are counted as sentences of the corpus
    # First and last (exclusive) sentence that the inputs of a shard depend on, if not its own.
    reach: Reach | None = None

    def metrics(self, setup: Setup) -> tuple[Metric, ...]:
        """The metrics of all questions that this run can have."""
        metrics: list[Metric] = []
        for question in self.questions:
            if question.unless(setup) is None:
                metrics += question.make(setup)
        return tuple(metrics)


def why_no_decoder(setup: Setup) -> str | None:
    """Why a decoder is not measured."""
    return NO_DECODER if setup.model.is_encoder_decoder else None


DECODER = Question(("stack decoder", "stack cross"), unless=why_no_decoder)


def make_parts(inputs: Sequence[InputKind], setup: Setup) -> tuple[Part, ...]:
    """The kinds of inputs that any metric reads, with their metrics."""
    parts: list[Part] = []
    for kind in inputs:
        metrics = kind.metrics(setup)
        if metrics:
            parts.append(Part(kind.make, metrics, kind.of_corpus, kind.reach))
    return tuple(parts)


@cache
def parts_of(inputs: tuple[InputKind, ...]) -> Callable[[Setup], tuple[Part, ...]]:
    """What makes the parts of a run; the same function for the same kinds of inputs."""
    return partial(make_parts, inputs)


def find_left_out(inputs: Sequence[InputKind], setup: Setup) -> dict[str, str]:
    """The measures that this run cannot have, each with the reason."""
    left_out: dict[str, str] = {}
    for kind in inputs:
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
