"""How much each head matters to the loss, as an option of any study, beside what heads measure."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from headscope.metrics.gradient import MASKED_SHARE
from headscope.metrics.importance import MEASURES, HeadImportance, mean_outputs, why_no_importance
from headscope.results.findings import CORRELATION, find_interval
from headscope.results.measure import further_axes, measure_names, select, slices
from headscope.results.replicates import groups_of, replicated
from headscope.results.statements import Tabulation
from headscope.studies.option import Option
from headscope.studies.study import Part, Setup
from headscope.text.corpus import Shard
from headscope.text.segments import documents_of

if TYPE_CHECKING:
    from headscope.metrics.importance import Means
    from headscope.model.inputs.batch import Batch
    from headscope.observe.batch import AnnotatedBatch

NAMES = tuple(measure.name for measure in MEASURES)
OPTION = Option(
    "importance", bool, False, "whether the loss without each head is computed: two passes a head"
)
FEW = 3  # a measure with more slices than this has no row of its own for each
SHARD = 256  # sentences read at a time


def left_out(setup: Setup) -> dict[str, str]:
    """The measures of importance and why they are missing, where they were asked for."""
    if not setup.options["importance"]:
        return {}
    reason = why_no_importance(setup.model)
    return {} if reason is None else dict.fromkeys(NAMES, reason)


def with_importance(setup: Setup, part: Part) -> Part:
    """The part with the metric of importance on its inputs, where it was asked for."""
    if not setup.options["importance"] or why_no_importance(setup.model) is not None:
        return part
    share = setup.options.get("masked_share", MASKED_SHARE)

    @cache
    def means() -> "Means":
        return mean_outputs(setup.model, _batches(setup, part), setup.seed, share)

    metric = HeadImportance(setup.grid, means, setup.seed, share)
    return replace(part, metrics=(*part.metrics, metric))


def _batches(setup: Setup, part: Part) -> "Iterator[tuple[Batch, AnnotatedBatch]]":
    """All inputs of the corpus, as the engine makes its batches."""
    model = setup.model
    for shard in setup.corpus.shards(SHARD) if setup.context is None else _of_documents(setup):
        columns = part.read(setup, shard, setup.corpus.read(shard)).columns
        for rows in model.buckets(columns.lengths.tolist(), setup.batch_tokens):
            cut = columns.cut(rows, pad=model.pad, is_causal=model.is_causal).to(model.device)
            yield cut.batch, cut.annotated


def _of_documents(setup: Setup) -> Iterator[Shard]:
    """Some whole documents at a time: where they are inputs, they must not be cut."""
    begin = end = 0
    for _, end in documents_of(setup.corpus):
        if end - begin >= SHARD:
            yield Shard(0, begin, end)
            begin = end
    if end > begin:
        yield Shard(0, begin, end)


def correlation_rows(result: xr.Dataset) -> list[dict[str, Any]]:
    """For every measure of heads, how it goes together with importance over all heads."""
    data, groups = replicated(result), groups_of(result)
    return [
        _row(data, groups, each.title, each.measure.name, each.at)
        for name in measure_names(result)
        if name not in NAMES and _count(result, name) <= FEW
        for each in slices(result, name)
    ]


def _row(
    data: xr.Dataset, groups: int, title: str, name: str, at: Mapping[str, str]
) -> dict[str, Any]:
    row: dict[str, Any] = {"measure": title}
    for other in NAMES:
        r = xr.corr(select(data[name], at), data[other], ("layer", "head"))
        row |= find_interval(r, groups, CORRELATION).cells(other, f"{other} ")
    return row


def _count(result: xr.Dataset, name: str) -> int:
    return int(np.prod([len(labels) for labels in further_axes(result, name).values()]))


TABLE = Tabulation(
    "importance",
    "Importance and what heads do",
    "Correlation over heads between each measure and what the loss says of a head: removal (its "
    "output set to zero), mean_replacement (set to its mean), gate_importance. 95 % intervals.",
    NAMES,
    correlation_rows,
)
