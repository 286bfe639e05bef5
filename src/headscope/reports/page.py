"""The report as one HTML page that needs nothing but itself: no script, no network.

Every measure of a result is on it in words and small maps, whichever study or metric made it.
"""

import math
import re
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from headscope.head import name_head
from headscope.plots import thumbnail
from headscope.plots.heatmap import Panel, draw_panels
from headscope.reports.parts import Group, ShownTable, show_number, show_table
from headscope.results import dataset as results
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
from headscope.results.roles import NOTHING, HeadRoles
from headscope.results.run import Run
from headscope.results.statements import JudgedClaim
from headscope.results.tables import HeadName, tabulate
from headscope.studies.study import Figure, Study
from headscope.theme import INK, PAGE
from headscope.wording import model_title

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

TEXT_WIDTH = 600.0  # points of the page's column: wider figures may leave it
SKIP_REASONS = {
    "too long": "longer than the model takes",
    "empty": "no token",
    "alignment: straddles": "a token covers parts of two words",
    "alignment: shared": "two words are written as one",
    "alignment: differs": "a word is not in the text at its place",
    "alignment: uncovered": "a letter of a word is in no token",
}
SECTIONS = {
    "heads": "Heads",
    "findings": "Findings",
    "figures": "Figures",
    "exemplars": "Exemplars",
    "tables": "Tables",
    "measures": "Measures",
}


@dataclass(frozen=True)
class ShownFigure:
    """A figure of the page; its SVG takes the page's text colour, in the light and in the dark."""

    figure: Figure
    file: str
    note: str = ""  # on this run

    @property
    def caption(self) -> str:
        return f"{self.figure.caption} {self.note}".strip()

    @property
    def svg(self) -> Markup:
        """The drawing; matplotlib has escaped the texts in it."""
        return Markup(self.file.replace(INK, "currentColor"))

    @property
    def is_wide(self) -> bool:
        """Whether it may leave the column."""
        found = re.search(r'width="([0-9.]+)pt"', self.file)
        return found is not None and float(found[1]) > TEXT_WIDTH

    @property
    def number(self) -> str:
        """The paper's number of the figure, where it has one."""
        number = self.figure.name.removeprefix("figure")
        return "" if number == self.figure.name else f"Figure {number.lstrip('0')}: "


@dataclass(frozen=True)
class Chapter:
    """Everything the page shows of one run."""

    run: Run
    study: Study | None  # None where it cannot be imported
    heads: Sequence[HeadRoles]
    findings: Sequence[JudgedClaim]
    figures: Sequence[ShownFigure]
    tables: Sequence[ShownTable]
    measures: "Sequence[ShownMeasure]"
    exemplars: Sequence[Group]
    method: str  # how to read the numbers

    @property
    def model(self) -> str:
        """The model's name as a title has it."""
        return model_title(self.run.model or str(self.run.data.attrs.get("model", "unknown")))

    @property
    def heads_table(self) -> ShownTable:
        """What each head looks at, those with a role first."""
        ordered = sorted(self.heads, key=lambda one: not one.roles)
        rows = [
            {
                "head": HeadName(one.name),
                "looks at": one.sentence.removeprefix(f"{one.name}: "),
                "share": math.nan if one.share is None else one.share,
            }
            for one in ordered
        ]
        return show_table(*tabulate(rows), "What each head looks at")

    @property
    def eyebrow(self) -> str:
        """The study, and after which paper."""
        paper = f"{self.study.citation.partition(')')[0]})" if self.study else ""
        return f"{self.run.study} · after {paper}" if paper else self.run.study

    @property
    def sections(self) -> list[tuple[str, str]]:
        """Name and title of every section that has something to show."""
        found = [(name, title) for name, title in SECTIONS.items() if getattr(self, name)]
        return [*found, ("method", "What was run")]

    @property
    def facts(self) -> list[tuple[str, str]]:
        """The run in four numbers."""
        result = self.run.data
        counted = {name: result.attrs.get(name, 0) for name in ("sentences", "tokens")}
        kind = "causal" if result.attrs.get("is_causal") else "bidirectional"
        unit = self.study.unit if self.study else "inputs"
        layers, heads = result.sizes["layer"], result.sizes["head"]
        return [
            ("Model", self.model),
            ("Heads", f"{layers} {'layer' if layers == 1 else 'layers'} × {heads}, {kind}"),
            (unit.capitalize(), f"{counted['sentences']:,}"),
            ("Tokens", f"{counted['tokens']:,}, {result.attrs.get('mean_tokens', 0):.1f} each"),
        ]

    @property
    def missing(self) -> list[str]:
        """What was not read and what was not measured, with the reasons."""
        result = self.run.data
        skipped, left_out = results.skipped(result), results.left_out(result)
        return [
            *(f"{count:,} × skipped: {SKIP_REASONS.get(why, why)}."
              for why, count in skipped.items()),
            *(f"Without {name}: {why}." for name, why in left_out.items()),
            *self.run.notes,
        ]  # fmt: skip

    @property
    def settings(self) -> ShownTable:
        """run.json as a table."""
        known = [each for each in _flatten(self.run.about) if each[0] != "model sketch"]
        rows = [{"setting": name, "value": value} for name, value in known]
        return show_table(*tabulate(rows), "What was run")


def render(chapters: Sequence[Chapter]) -> str:
    """The whole page."""
    title = " · ".join(f"{chapter.run.study}: {chapter.model}" for chapter in chapters)
    css = Markup(_templates().get_template("page.css").render(variables=_variables))
    page = _templates().get_template("page.html")
    return page.render(title=title, css=css, chapters=chapters, nothing=NOTHING)


def render_part(name: str, *arguments: object) -> str:
    """One macro of parts.html, such as a table."""
    return str(getattr(_templates().get_template("parts.html").module, name)(*arguments))


@cache
def _templates() -> Environment:
    return Environment(
        loader=PackageLoader("headscope.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _variables(scheme: str) -> Markup:
    return Markup(" ".join(f"--{name}: {colour};" for name, colour in PAGE[scheme].items()))


def _flatten(settings: dict[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for name, value in settings.items():
        if isinstance(value, dict):
            found += _flatten(value, f"{prefix}{name} ")
        else:
            found.append((f"{prefix}{name}", "–" if value is None else str(value)))
    return found


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
        said = [f"From {self.lowest} to {self.highest}, mean {self.mean}."]
        said += [f"Baseline: {self.baseline}."] if self.baseline else []
        said += [f"Published: {self.published}."] if self.published else []
        return " ".join(said)


@dataclass(frozen=True)
class ShownMeasure:
    """A measure with what the result has of it."""

    measure: Measure
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
        title = f"{measure.title} in {measure.unit}" if measure.unit else measure.title
        return draw_panels([Panel.of(result, measure.name, title)], 1, "by layer")

    return Figure(measure.name, measure.title, measure.meaning, (measure.name,), draw)


def _show(result: xr.Dataset, name: str, *, is_of_heads: bool) -> ShownMeasure:
    measure = measure_of(result, name)
    shown = tuple(_slice(result, each) for each in slices(result, name)) if is_of_heads else ()
    values = "" if is_of_heads else _range(result[name], measure)
    return ShownMeasure(measure, _remarks(measure), shown, values)


def _remarks(measure: Measure) -> str:
    said = [f"Unit: {measure.unit}." if measure.unit else ""]
    said += [f"More: {measure.more}." if measure.more else ""]
    said += [f"{measure.reference}." if measure.reference.strip("–") else ""]
    return " ".join(filter(None, said))


def _slice(result: xr.Dataset, one: Slice) -> ShownSlice:
    low, high = top_heads(-one.values, 1)[0], top_heads(one.values, 1)[0]
    known = one.values.values[np.isfinite(one.values.values)]
    mean = float(known.mean()) if known.size else math.nan
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
    if array.dtype.kind not in "fiu" or (array.dtype.kind in "iu" and not measure.unit):
        return paper.strip()  # names, or numbers that name something
    known = array.values[np.isfinite(array.values)]
    if not known.size:
        return f"No value in this run.{paper}"
    if known.size == 1:
        return f"{show_number(float(known.item()))}.{paper}"
    low, high = show_number(float(known.min())), show_number(float(known.max()))
    return f"From {low} to {high} over {known.size:,} values.{paper}"
