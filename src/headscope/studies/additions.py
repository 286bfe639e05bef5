"""What any study may have in addition, each by an option.

portrait      what each head looks at, in a sentence, and how much of its attention that explains
weights       raw attention and attention weighted by value norms: does the sink survive?
importance    how much each head matters to the loss, beside what heads measure
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from math import prod
from typing import TYPE_CHECKING, Any

import xarray as xr

from headscope.engine.measure import shards_of_documents
from headscope.engine.question import InputKind, MakeInputs, Question, Reach
from headscope.engine.setup import Setup
from headscope.metrics.gradient import MASKED_SHARE
from headscope.metrics.importance import MEASURES, HeadImportance, mean_outputs, why_no_importance
from headscope.metrics.metric import Metric
from headscope.portrait.cost import MEASURES as COST_MEASURES
from headscope.portrait.cost import CostStage
from headscope.portrait.stage import MEASURES as PORTRAIT_MEASURES
from headscope.portrait.stage import PortraitStage
from headscope.results.claims import Claim, Evidence, NotMeasured, Replicates, claim, on_all
from headscope.results.intervals import CORRELATION, Quantity, find_interval
from headscope.results.measure import BY_LAYER, further_axes, measure_names, select, slices
from headscope.results.replicates import groups_of
from headscope.results.statements import Tabulation
from headscope.results.tables import MeasureColumn, Measured, measured_cells
from headscope.studies.option import Option
from headscope.studies.shared import syntax
from headscope.studies.study import Study

if TYPE_CHECKING:
    from headscope.metrics.importance import Means
    from headscope.model.inputs.batch import Batch
    from headscope.observe.batch import AnnotatedBatch

WEIGHTS = Option(
    "weights",
    str,
    "raw",
    "attention as it is, times the norm of what each token gives, or the main measures of both",
    choices=("raw", "norm", "both"),
)
HALF = 0.5
FLOOR = 0.1  # of attention, below which there is nothing that could shrink
_NOTES = {
    "norm": "Every weight a[i, j] is here a[i, j]·‖v_j W_O‖, each row divided by its sum "
    "(Kobayashi et al. 2020); gradients are those of the weights as they are. ",
    "both": "Measures whose name ends in norm are of a[i, j]·‖v_j W_O‖, each row divided by its "
    "sum (Kobayashi et al. 2020). ",
}
Sliced = tuple[str, Mapping[str, str]]  # a measure, and where


PORTRAIT = Option("portrait", bool, True, "whether every head gets a portrait: a sentence")

COST = Option(
    "cost", int, 0, "texts on which it is measured what replacing a head by its mean costs", least=0
)


def with_portrait(study: Study, *, raw: bool = False) -> Study:
    """The study with portraits of all heads, by an option that is on; `raw` reads no annotation.

    With annotation, "syntax or position?" is a figure and two claims.
    """
    return replace(
        study,
        options=(*study.options, PORTRAIT, COST),
        later_stages=(
            *study.later_stages,
            PortraitStage(study.bos, raw),
            CostStage(study.bos, raw),
        ),
        measures=(*study.measures, *PORTRAIT_MEASURES, *COST_MEASURES),
        figures=study.figures if raw else (*study.figures, syntax.FIGURE),
        claims=study.claims if raw else (*study.claims, *syntax.CLAIMS),
    )


def note(result: xr.Dataset) -> str:
    """How the weights of a result are read, where it is not as they are."""
    return _NOTES.get(result.attrs.get("weights", "raw"), "")


def layer_table(columns: Mapping[str, Sliced]) -> Tabulation:
    """Both readings of some measures, the first of them always, by layer, heads pooled."""
    first, _ = next(iter(columns.values()))
    return Tabulation(
        "readings",
        "Attention and value norms",
        "Pooled over the heads of each layer: shares of attention, and of attention times the norm "
        "of what each token gives (‖a·v W_O‖).",
        (f"{first}_norm",),
        lambda result: [
            {"layer": layer} | _layer_cells(result.sel(layer=layer), columns)
            for layer in result["layer"].values.tolist()
        ],
    )


def _layer_cells(place: xr.Dataset, columns: Mapping[str, Sliced]) -> dict[str, Measured]:
    row: dict[str, Measured] = {}
    known = {t: (name, at) for t, (name, at) in columns.items() if f"{name}_norm" in place}
    for title, (name, at) in known.items():
        for end, variable in (("", name), (" norm", f"{name}_norm")):
            column = MeasureColumn(variable, at=at)
            (row[f"{title}{end}"],) = measured_cells(place, column, BY_LAYER, ())
    return row


def sink_claim(what: str, name: str, at: Mapping[str, str]) -> Claim:
    """Whether less than half is left of what raw attention pays."""

    @claim(
        f"Weighted by value norms, {what} gets less than half of its attention.",
        "Kobayashi et al. 2020: values of special tokens are small",
        below=HALF,
        of=Quantity("×", least=0.0),
    )
    def sink_shrinks(data: Replicates) -> Evidence:
        """Mean over heads with norms / mean over heads without."""
        if f"{name}_norm" not in data:
            raise NotMeasured("value norms were not read; --weights both reads them, too")
        raw, norm = (data.at(read, **at).mean(("layer", "head")) for read in (name, f"{name}_norm"))
        given, attended = float(on_all(norm)), float(on_all(raw))
        if attended < FLOOR:
            raise NotMeasured(f"{what} gets only {attended:.3f} of attention")
        return Evidence(
            norm / raw, f"{given:.3f} weighted by value norms, {attended:.3f} of attention"
        )

    return sink_shrinks


NAMES = tuple(measure.name for measure in MEASURES)
IMPORTANCE = Option(
    "importance", bool, False, "whether the loss without each head is computed: two passes a head"
)
FEW = 3  # a measure with more slices than this has no row of its own for each
SHARD = 256  # sentences read at a time


def importance(inputs: MakeInputs, reach: Reach | None = None) -> Question:
    """What the loss says of every head on these inputs, where it was asked for."""

    def make(setup: Setup) -> tuple[Metric, ...]:
        if not setup.options["importance"]:
            return ()
        share = setup.options.get("masked_share", MASKED_SHARE)
        kind = InputKind(inputs, (), reach=reach)

        @cache
        def means() -> "Means":
            return mean_outputs(setup.model, _batches(setup, kind), setup.seed, share)

        return (HeadImportance(setup.grid, means, setup.seed, share),)

    return Question(NAMES, make, why_importance_is_missing)


def why_importance_is_missing(setup: Setup) -> str | None:
    """Why importance is missing, where it was asked for."""
    return why_no_importance(setup.model) if setup.options["importance"] else None


def _batches(setup: Setup, kind: InputKind) -> "Iterator[tuple[Batch, AnnotatedBatch]]":
    """All inputs of the corpus, as the engine makes its batches."""
    model = setup.model
    corpus, is_whole = setup.corpus, setup.context is not None
    for shard in shards_of_documents(corpus, SHARD) if is_whole else corpus.shards(SHARD):
        columns = kind.read(setup, shard, setup.corpus.read(shard)).columns
        for rows in model.buckets(columns.lengths.tolist(), setup.batch_tokens):
            cut = columns.cut(rows, pad=model.pad, is_causal=model.is_causal).to(model.device)
            yield cut.batch, cut.annotated


def correlation_rows(result: xr.Dataset) -> list[dict[str, Any]]:
    """For every measure of heads, how it goes together with importance over all heads."""
    data, groups = Replicates(result), groups_of(result)
    return [
        _correlation_row(data, groups, each.title, each.measure.name, each.at)
        for name in measure_names(result)
        if name not in NAMES and prod(map(len, further_axes(result, name).values())) <= FEW
        for each in slices(result, name)
    ]


def _correlation_row(
    data: Replicates, groups: int, title: str, name: str, at: Mapping[str, str]
) -> dict[str, Any]:
    row: dict[str, Any] = {"measure": title}
    for other in NAMES:
        r = xr.corr(select(data[name], at), data[other], ("layer", "head"))
        row[other] = find_interval(r, groups, CORRELATION)
    return row


IMPORTANCE_TABLE = Tabulation(
    "importance",
    "Importance and what heads do",
    "Correlation over heads between each measure and what the loss says of a head: removal (its "
    "output set to zero), mean_replacement (set to its mean), gate_importance. 95 % intervals.",
    NAMES,
    correlation_rows,
)
