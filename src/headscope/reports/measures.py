"""Every measure of a result in words and small maps, whichever study or metric made it."""

from base64 import b64encode
from dataclasses import dataclass

import numpy as np
import xarray as xr
from matplotlib.figure import Figure as Drawing

from headscope.head import name_head
from headscope.plots import thumbnail
from headscope.plots.heatmap import Panel, draw_panels
from headscope.reports.tables import show_number
from headscope.results.measure import (
    ATTRIBUTE,
    GRID,
    Measure,
    Published,
    Slice,
    baseline_of,
    measure_names,
    measure_of,
    plain_label,
    slices,
)
from headscope.results.ranks import top_heads
from headscope.studies.study import Figure


@dataclass(frozen=True)
class ShownSlice:
    """How the heads differ in one slice of a measure."""

    title: str
    label: str
    picture: str  # a data URL
    lowest: str
    highest: str
    mean: str
    baseline: str
    published: str


@dataclass(frozen=True)
class ShownMeasure:
    """A measure with what the result has of it."""

    measure: Measure
    remarks: str
    slices: tuple[ShownSlice, ...]
    range: str  # of a measure that is not one of heads


def show_measures(result: xr.Dataset) -> list[ShownMeasure]:
    """All measures that the result declares, those of heads first."""
    shown: list[ShownMeasure] = []
    for name in measure_names(result):
        measure = measure_of(result, name)
        of_heads = tuple(_show_slice(result, one) for one in slices(result, name))
        shown.append(ShownMeasure(measure, _remarks(measure), of_heads, ""))
    of_heads = {one.measure.name for one in shown}
    for name, array in result.data_vars.items():
        if ATTRIBUTE in array.attrs and name not in of_heads:
            measure = measure_of(result, str(name))
            shown.append(ShownMeasure(measure, _remarks(measure), (), _range(array, measure)))
    return shown


def general_figures(result: xr.Dataset) -> tuple[Figure, ...]:
    """A map for every measure with one number per head, for studies that draw nothing else."""
    names = [name for name in measure_names(result) if set(result[name].dims) == set(GRID)]
    return tuple(_figure(measure_of(result, name)) for name in names)


def _figure(measure: Measure) -> Figure:
    def draw(result: xr.Dataset) -> Drawing:
        title = f"{measure.title} in {measure.unit}" if measure.unit else measure.title
        return draw_panels([Panel.of(result, measure.name, title)], 1, "by layer")

    return Figure(measure.name, measure.title, measure.meaning, (measure.name,), draw)


def _remarks(measure: Measure) -> str:
    parts = [f"Unit: {measure.unit}." if measure.unit else ""]
    parts += [f"More: {measure.more}." if measure.more else ""]
    parts += [f"{measure.reference}." if measure.reference.strip("–") else ""]
    return " ".join(filter(None, parts))


def _show_slice(result: xr.Dataset, one: Slice) -> ShownSlice:
    low, high = top_heads(-one.values, 1)[0], top_heads(one.values, 1)[0]
    finite = one.values.values[np.isfinite(one.values.values)]
    baseline = baseline_of(result, one)
    return ShownSlice(
        title=one.title,
        label=", ".join(map(plain_label, one.at.values())),
        picture="data:image/png;base64," + b64encode(thumbnail(one.values)).decode(),
        lowest=f"{show_number(-low[2])} in {name_head(low[0], low[1])}",
        highest=f"{show_number(high[2])} in {name_head(high[0], high[1])}",
        mean=show_number(float(finite.mean()) if finite.size else np.nan),
        baseline="" if baseline is None else f"{show_number(baseline.value)} ({baseline.means})",
        published="" if one.published is None else write_published(one.published),
    )


def write_published(published: Published) -> str:
    """What a paper reports, and where."""
    value = "" if published.value is None else f"{show_number(published.value)}, "
    return f"{value}{published.says} ({published.source})"


def _range(array: xr.DataArray, measure: Measure) -> str:
    values = "; ".join(map(write_published, measure.published))
    paper = f" Published: {values}." if values else ""
    if array.dtype.kind not in "fiu" or (array.dtype.kind in "iu" and not measure.unit):
        return paper.strip()  # names, or numbers that name something
    finite = array.values[np.isfinite(array.values)]
    if not finite.size:
        return f"No value in this run.{paper}"
    if finite.size == 1:
        return f"{show_number(float(finite.item()))}.{paper}"
    low, high = show_number(float(finite.min())), show_number(float(finite.max()))
    return f"From {low} to {high} over {finite.size:,} values.{paper}"
