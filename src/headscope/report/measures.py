"""Every measure of a result in words and small maps, whichever study or metric made it."""

from base64 import b64encode
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from headscope.head import name_head
from headscope.plots.heatmap import Panel, draw_panels
from headscope.plots.style import thumbnail
from headscope.report.tables import show_number
from headscope.results.heads import top_heads
from headscope.results.measure import (
    ATTRIBUTE,
    GRID,
    Measure,
    Published,
    measure_names,
    measure_of,
)
from headscope.results.slices import Slice, baseline_of, plain_label, slices
from headscope.studies.study import Figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing


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

    @property
    def sentence(self) -> str:
        """All of it in a line."""
        said = [f"From {self.lowest} to {self.highest}, mean {self.mean}."]
        said += [f"Baseline: {self.baseline}."] if self.baseline else []
        said += [f"Published: {self.published}."] if self.published else []
        return " ".join(said)


@dataclass(frozen=True)
class ShownMeasure:
    """A measure with what the result has of it."""

    name: str
    title: str
    meaning: str
    formula: str
    remarks: str
    slices: tuple[ShownSlice, ...]
    range: str  # of a measure that is not one of heads


def show_measures(result: xr.Dataset) -> list[ShownMeasure]:
    """All measures that the result declares, those of heads first."""
    of_heads = measure_names(result)
    others = [
        str(name)
        for name, array in result.data_vars.items()
        if ATTRIBUTE in array.attrs and name not in of_heads
    ]
    return [_show(result, name, is_of_heads=name in of_heads) for name in (*of_heads, *others)]


def general_figures(result: xr.Dataset) -> tuple[Figure, ...]:
    """A map for every measure with one number per head, for studies that draw nothing else."""
    names = [name for name in measure_names(result) if set(result[name].dims) == set(GRID)]
    return tuple(_figure(measure_of(result, name)) for name in names)


def _figure(measure: Measure) -> Figure:
    def draw(result: xr.Dataset) -> "Drawing":
        values = result[measure.name]
        pooled, errors = (f"{measure.name}_by_layer{end}" for end in ("", "_se"))
        by_layer = result[pooled] if pooled in result else values.mean("head")
        title = f"{measure.title} in {measure.unit}" if measure.unit else measure.title
        return draw_panels([Panel(title, values, by_layer, result.get(errors))], 1, "by layer")

    return Figure(measure.name, measure.title, measure.meaning, (measure.name,), draw)


def _show(result: xr.Dataset, name: str, *, is_of_heads: bool) -> ShownMeasure:
    measure = measure_of(result, name)
    shown = tuple(_slice(result, each) for each in slices(result, name)) if is_of_heads else ()
    return ShownMeasure(
        name=name,
        title=measure.title,
        meaning=measure.meaning,
        formula=measure.formula,
        remarks=_remarks(measure),
        slices=shown,
        range="" if is_of_heads else _range(result[name], measure),
    )


def _remarks(measure: Measure) -> str:
    said = [f"Unit: {measure.unit}." if measure.unit else ""]
    said += [f"More: {measure.more}." if measure.more else ""]
    said += [f"{measure.reference}." if measure.reference else ""]
    return " ".join(filter(None, said))


def _slice(result: xr.Dataset, one: Slice) -> ShownSlice:
    low = top_heads(-one.values, 1)[0]
    high = top_heads(one.values, 1)[0]
    known = np.isfinite(one.values.values)
    mean = float(one.values.values[known].mean()) if known.any() else float("nan")
    baseline = baseline_of(result, one)
    return ShownSlice(
        title=one.title,
        label=", ".join(map(plain_label, one.at.values())),
        picture="data:image/png;base64," + b64encode(thumbnail(one.values)).decode(),
        lowest=f"{show_number(-low[2])} in {name_head(low[0], low[1])}",
        highest=f"{show_number(high[2])} in {name_head(high[0], high[1])}",
        mean=show_number(mean),
        baseline="" if baseline is None else f"{show_number(baseline.value)} ({baseline.means})",
        published=_published(one.published),
    )


def _published(published: Published | None) -> str:
    if published is None:
        return ""
    value = "" if published.value is None else f"{show_number(published.value)}, "
    return f"{value}{published.says} ({published.source})"


def _range(array: xr.DataArray, measure: Measure) -> str:
    said = [_published(each) for each in measure.published]
    paper = f" Published: {'; '.join(said)}." if said else ""
    if array.dtype.kind not in "fiu":
        return paper.strip()
    known = array.values[np.isfinite(array.values)]
    if not known.size:
        return f"No value in this run.{paper}"
    if known.size == 1:
        return f"{show_number(float(known.item()))}.{paper}"
    low, high = show_number(float(known.min())), show_number(float(known.max()))
    return f"From {low} to {high} over {known.size:,} values.{paper}"
