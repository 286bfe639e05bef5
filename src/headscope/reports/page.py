"""The report as one HTML page that needs nothing but itself: no script, no network.

```
first page    the map of heads, ten sentences, how many claims hold
then          the claims, the paper's figures and tables in its order, what the paper does not have
folded        exemplars, further tables, every measure
at the end    what was run, what is not in the numbers, how to read them
```
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from headscope.engine.question import say_left_out
from headscope.reports.exemplars import Group
from headscope.reports.measures import ShownMeasure, write_published
from headscope.reports.tables import ShownTable, show_table
from headscope.results import dataset as results
from headscope.results.evidence import PLACES
from headscope.results.head_map import HeadMap, MapCell
from headscope.results.measure import measure_of, plain_label
from headscope.results.run import Run
from headscope.results.statements import JudgedClaim, tally
from headscope.results.tables import tabulate
from headscope.studies.study import Figure, Study
from headscope.theme import INK, PAGE, ROLES, role_variable
from headscope.wording import counted, model_title

BAR_HEIGHT = 24.0  # of a bar for all of a head's weight
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
    "claims": "Claims",
    "figures": "Figures",
    "tables": "Tables",
    "exemplars": "Examples",
    "measures": "Measures",
}
_NUMBER = re.compile(r"figure(A?)0*([1-9]\d*)")  # of a figure of the paper; A: of its appendix


@dataclass(frozen=True)
class ShownFigure:
    """A figure of the page; its SVG takes the page's text colour, in the light and in the dark."""

    figure: Figure
    file: str
    note: str = ""  # on this run
    published: str = ""  # what the paper reports of its measures

    @property
    def caption(self) -> str:
        """Everything below the figure but its number and title."""
        return " ".join(part for part in (self.figure.caption, self.note, self.published) if part)

    @property
    def svg(self) -> Markup:
        """The drawing; matplotlib has escaped the texts in it."""
        return Markup(self.file.replace(INK, "currentColor"))

    @property
    def is_wide(self) -> bool:
        """Whether it may leave the column."""
        width = re.search(r'width="([0-9.]+)pt"', self.file)
        return width is not None and float(width[1]) > TEXT_WIDTH

    @property
    def number(self) -> str:
        """The paper's number of the figure, where it has one."""
        number = _NUMBER.fullmatch(self.figure.name)
        return f"{number[1]}{number[2]}" if number else ""

    @property
    def is_of_appendix(self) -> bool:
        """Whether it is in the paper's appendix; such figures are folded."""
        return self.number.startswith("A")

    @property
    def order(self) -> tuple[bool, str, int]:
        """Its place in the paper; what the paper does not have comes last."""
        number = _NUMBER.fullmatch(self.figure.name)
        return (False, number[1], int(number[2])) if number else (True, "", 0)


@dataclass(frozen=True)
class Chapter:
    """Everything the page shows of one run."""

    run: Run
    study: Study | None  # None where it cannot be imported
    heads: HeadMap | None  # None where there are no portraits
    claims: Sequence[JudgedClaim]
    figures: Sequence[ShownFigure]
    tables: Sequence[ShownTable]
    measures: Sequence[ShownMeasure]
    exemplars: Sequence[Group]
    method: str  # how to read the numbers

    @property
    def model(self) -> str:
        """The model's name as a title has it."""
        return model_title(self.run.model or str(self.run.data.attrs.get("model", "unknown")))

    @property
    def sees_ahead(self) -> bool:
        """Whether the map has bars of tokens behind the query."""
        return self.heads is not None and PLACES.index("+1") in self.heads.seen

    @property
    def eyebrow(self) -> str:
        """The study, and after which paper."""
        paper = f"{self.study.citation.partition(')')[0]})" if self.study else ""
        return f"{self.run.study} · after {paper}" if paper else self.run.study

    @property
    def tally(self) -> str:
        """How many of the paper's claims hold."""
        return tally(self.claims)

    @property
    def in_paper(self) -> list[ShownFigure]:
        """The figures that the paper has, in its order."""
        return sorted((one for one in self.figures if one.number), key=lambda one: one.order)

    @property
    def not_in_paper(self) -> list[ShownFigure]:
        """The other figures."""
        return [one for one in self.figures if not one.number]

    @property
    def paper_tables(self) -> list[ShownTable]:
        """The tables that the paper has, in its order."""
        return sorted((one for one in self.tables if one.is_of_paper), key=lambda one: one.file)

    @property
    def further_tables(self) -> list[ShownTable]:
        """The other tables."""
        return [one for one in self.tables if not one.is_of_paper]

    @property
    def sections(self) -> list[tuple[str, str]]:
        """Name and title of every section that has something to show."""
        shown = [(name, title) for name, title in SECTIONS.items() if getattr(self, name)]
        return [*shown, ("method", "What was run")]

    @property
    def facts(self) -> str:
        """The run in one line."""
        result = self.run.data
        layers, heads = result.sizes["layer"], result.sizes["head"]
        kind = "causal" if result.attrs.get("is_causal") else "bidirectional"
        inputs = counted(int(result.attrs.get("sentences", 0)), self.study_unit)
        tokens = counted(int(result.attrs.get("tokens", 0)), "tokens")
        mean = f"{result.attrs.get('mean_tokens', 0):.1f} each"
        size = f"{counted(layers, 'layers')} × {counted(heads, 'heads')}"
        return f"{size}, {kind} · {inputs} · {tokens}, {mean}"

    @property
    def study_unit(self) -> str:
        """What the inputs of the study are called."""
        return self.study.unit if self.study else "inputs"

    @property
    def missing(self) -> list[str]:
        """What was not read and what was not measured, with the reasons."""
        result = self.run.data
        lines = [
            f"{count:,} × skipped: {SKIP_REASONS.get(why, why)}."
            for why, count in results.read_attribute(result, "skipped").items()
        ]
        lines += say_left_out(results.read_attribute(result, "left_out")).values()
        return [*lines, *self.run.remarks]

    @property
    def settings(self) -> ShownTable:
        """run.json as a table."""
        settings = [pair for pair in _flatten(self.run.settings) if pair[0] != "model sketch"]
        rows = [{"setting": name, "value": value} for name, value in settings]
        return show_table(*tabulate(rows), "What was run")


@dataclass(frozen=True)
class Bar:
    """A part of a bar on the map: what one place gets in one ink, in units of the picture."""

    x: float
    y: float
    height: float
    ink: str


def draw_bars(heads: HeadMap, cell: MapCell) -> list[Bar]:
    """The bars of a head: what its name accounts for at the foot, everything else above it.

    Heights go by the square root, so that small weights are seen.
    """
    sink, named, other = cell.bars
    bars: list[Bar] = []
    for number, place in enumerate(heads.seen):
        total = sink[place] + named[place] + other[place]
        foot = 0.0
        for ink, weights in (("named", named), ("sink", sink), ("other", other)):
            if weights[place] > 0:
                height = BAR_HEIGHT * math.sqrt(total) * weights[place] / total
                bars.append(Bar(4.0 * number, BAR_HEIGHT - foot - height, height, ink))
                foot += height
    return bars


def published_in(result: Any, figure: Figure) -> str:
    """What the paper reports of the measures that a figure shows."""
    values: list[str] = []
    for name in figure.needs:
        for published in measure_of(result, name).published:
            labels = "".join(f"{plain_label(label)}: " for label in published.at.values())
            values.append(f"{labels}{write_published(published)}")
    return f"Published: {'; '.join(values)}." if values else ""


def render(chapters: Sequence[Chapter]) -> str:
    """The whole page."""
    title = " · ".join(f"{chapter.run.study}: {chapter.model}" for chapter in chapters)
    css = Markup(
        _templates()
        .get_template("page.css")
        .render(variables=_variables, roles=map(role_variable, ROLES))
    )
    page = _templates().get_template("page.html")
    return page.render(title=title, css=css, chapters=chapters)


def render_part(name: str, *arguments: object) -> str:
    """One macro of parts.html, such as a table."""
    return str(getattr(_templates().get_template("parts.html").module, name)(*arguments))


@cache
def _templates() -> Environment:
    environment = Environment(
        loader=PackageLoader("headscope.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {"counted": counted, "role_class": role_variable, "draw_bars": draw_bars}
    return environment


def _variables(scheme: str) -> Markup:
    return Markup(" ".join(f"--{name}: {colour};" for name, colour in PAGE[scheme].items()))


def _flatten(settings: dict[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    flat: list[tuple[str, str]] = []
    for name, value in settings.items():
        if isinstance(value, dict):
            flat += _flatten(value, f"{prefix}{name} ")
        else:
            flat.append((f"{prefix}{name}", "–" if value is None else str(value)))
    return flat
