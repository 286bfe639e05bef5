"""What a study is: its inputs, metrics, figures, tables and published values, declared together."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import xarray as xr

from headscope.engine.measure import REMEDY, MeasureShards, metrics_of
from headscope.engine.question import InputKind, Part, find_left_out, make_parts, parts_of
from headscope.engine.setup import Setup
from headscope.engine.stage import Stage
from headscope.errors import RunError
from headscope.metrics.metric import Metric
from headscope.model.inputs.frame import Bos
from headscope.model.model import Model
from headscope.model.untrained import why_no_untrained
from headscope.results.claims import Claim
from headscope.results.measure import Measure, Published
from headscope.results.statements import Choice, Tabulation
from headscope.studies.draw import draw_sentences
from headscope.studies.option import Option
from headscope.studies.untrained import UNTRAINED, UntrainedNetworks
from headscope.text.corpus import Corpus
from headscope.text.readers.lines import Layout

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing


@dataclass(frozen=True)
class Figure:
    """A figure of the report; drawn if the result has all the variables it needs."""

    name: str  # figure05, figureA1
    title: str
    caption: str
    needs: tuple[str, ...]
    draw: Callable[[xr.Dataset], "Drawing"]
    note: Callable[[xr.Dataset], str] = lambda result: ""  # what is to be said of this result


@dataclass(frozen=True)
class Study:
    """One published study, ready to run on any captured model; what follows `inputs` may be left
    out of a declaration."""

    name: str
    title: str
    citation: str
    question: str  # one sentence for the head of the report
    inputs: tuple[InputKind, ...]
    options: Sequence[Option] = ()
    labels: Callable[[Corpus], dict[str, tuple[str, ...]]] = lambda corpus: {}
    later_stages: tuple[Stage[Any], ...] = ()  # after the corpus is measured, before `derive`
    derive: Callable[[xr.Dataset], xr.Dataset] = lambda result: result
    measures: tuple[Measure, ...] = ()  # of the variables that no metric makes
    shown_first: tuple[str, ...] = ()  # two measures that pages begin with
    figures: tuple[Figure, ...] = ()
    tables: tuple[Tabulation, ...] = ()
    claims: tuple[Claim, ...] = ()
    published: Mapping[str, tuple[Published, ...]] = field(default_factory=dict)  # by measure
    choices: Callable[[xr.Dataset], Sequence[Choice]] = lambda result: ()
    choice_titles: Mapping[str, str] = field(default_factory=dict)  # by table of chosen heads
    notes: Callable[[xr.Dataset], str] = lambda result: ""  # how to read the numbers
    unit: str = "sentences"  # what its inputs are
    drawn: str = "sentences"  # what a sample of a corpus counts
    # What is read of a corpus: how many sentences (None: all), with which seed and options.
    draw: Callable[[Corpus, int | None, int, Mapping[str, Any]], Corpus] = draw_sentences
    check: Callable[[Setup], None] = lambda setup: None  # refuses what cannot work, before a run
    # The options of a run with those filled in that depend on the model.
    settle: Callable[[Model, Corpus, Mapping[str, Any]], Mapping[str, Any]] = (
        lambda model, corpus, options: options
    )
    # Whether inputs begin with the BOS token, where `auto` is more than what the tokenizer adds.
    bos: Callable[[Setup], Bos] = lambda setup: setup.bos
    # How raw text becomes sentences unless it is said; see `headscope.read_corpus`.
    layout: Layout | None = None
    # What to do about a corpus that no input could be made of.
    remedy: str = REMEDY
    # Options of the demo's run, by bundled model; a minute on two cores is for all runs together.
    demo: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def sample_size(self, **given: int | None) -> int | None:
        """How many to draw, as `sentences` or by this study's own name for what is counted."""
        counts = {name: count for name, count in given.items() if count is not None}
        for name in counts:
            if name not in ("sentences", self.drawn):
                raise RunError(
                    f"{self.name} draws {self.drawn}, not {name}; say how many of those."
                )
        if len(counts) > 1:
            raise RunError(f"Say how many {self.drawn} to draw, or sentences, not both.")
        return next(iter(counts.values()), None)

    def parts(self, setup: Setup) -> tuple[Part, ...]:
        """Inputs of every kind, with the metrics that read them."""
        return make_parts(self.inputs, setup)

    def left_out(self, setup: Setup) -> dict[str, str]:
        """What this model or corpus cannot support, with the reason."""
        left_out = find_left_out(self.inputs, setup)
        reason = why_no_untrained(setup.model) if setup.options.get(UNTRAINED.name) else None
        return left_out if reason is None else {**left_out, UNTRAINED.name: reason}

    def with_options(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """All options of a run: the defaults, and what was given instead, checked."""
        options = {option.name: option for option in self.options}
        for name in given:
            if name not in options:
                near = get_close_matches(name, options, n=1)
                listed = f"it has {', '.join(options) or 'none'}."
                hint = f"did you mean {near[0]}?" if near else listed
                raise RunError(f"{self.name} has no option {name!r}; {hint}")
        defaults = {name: option.default for name, option in options.items()}
        return defaults | {name: options[name].read(value) for name, value in given.items()}

    def stages(self, setup: Setup) -> tuple[Stage[Any], ...]:
        """All work of a run, in its order."""
        parts = parts_of(self.inputs)
        stages = MeasureShards(parts, self.remedy), *self.later_stages
        if setup.options.get(UNTRAINED.name):
            stages += (UntrainedNetworks(parts, self.derive, self.claims),)
        return stages

    def metrics(self, setup: Setup) -> dict[str, Metric]:
        """All metrics of all parts by name."""
        return metrics_of(self.parts(setup))
