"""Tables of the page, and the same as LaTeX."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from headscope.results.statements import Row
from headscope.results.tables import Column
from headscope.wording import plain

MOST_SHOWN = 15  # rows; of a longer table the others are folded
WIDE = 17  # columns; a wider table does not fit a printed page
NARROW = 6  # columns; a wider table does not fit a column of a paper
INTERVAL = " interval"  # ends the heading of an interval, which begins as that of its number
_NUMBER = re.compile(r"table[1-9]\d*")
# What LaTeX would take as a command, and signs that its plain fonts do not have.
LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "→": r"$\to$",
    "±": r"$\pm$", "−": "$-$", "–": "--", "×": r"$\times$", "…": r"\dots{}", "“": "``",
    "”": "''",
}  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """A value in words; numbers stand on the right."""

    text: str
    kind: str  # number or text


@dataclass(frozen=True)
class ShownRow:
    """The cells of a row; one with a note on why it says little is grey."""

    cells: tuple[Cell, ...]
    is_faint: bool
    is_published: bool  # whether the paper has a value for it


@dataclass(frozen=True)
class ShownTable:
    """A table as it is shown: numbers rounded, margins of error and intervals in one cell each."""

    title: str
    caption: str
    file: str
    columns: tuple[Cell, ...]
    rows: tuple[ShownRow, ...]
    on_paper: "ShownTable | None" = None  # fewer columns, of a table that is too wide for paper

    @property
    def first_rows(self) -> tuple[ShownRow, ...]:
        """The rows of the paper, or all of a short table; the others are folded."""
        if len(self.rows) <= MOST_SHOWN:
            return self.rows
        return tuple(row for row in self.rows if row.is_published)

    @property
    def other_rows(self) -> tuple[ShownRow, ...]:
        """The rows that are folded."""
        first = {id(row) for row in self.first_rows}
        return tuple(row for row in self.rows if id(row) not in first)

    @property
    def is_wide(self) -> bool:
        """Whether it is too wide for a printed page."""
        return len(self.columns) > WIDE

    @property
    def is_of_paper(self) -> bool:
        """Whether it has a number in the paper."""
        return _NUMBER.fullmatch(self.file) is not None

    def select(self, names: Sequence[str]) -> "ShownTable":
        """The table with some columns, those that it has."""
        places = [place for place, column in enumerate(self.columns) if column.text in names]
        rows = tuple(
            replace(row, cells=tuple(row.cells[place] for place in places)) for row in self.rows
        )
        return replace(self, columns=tuple(self.columns[place] for place in places), rows=rows)

    def narrow(self, names: Sequence[str]) -> "ShownTable":
        """The columns that fit a column of a paper: those named, or the first without intervals."""
        if names:
            return self.select(names)
        columns = [column.text for column in self.columns if not column.text.endswith(INTERVAL)]
        return self.select(columns[:NARROW])


def show_table(
    columns: Sequence[Column],
    rows: Sequence[Row],
    title: str,
    caption: str = "",
    file: str = "",
) -> ShownTable:
    """The table for readers."""
    names = {(column.of, column.kind): column.name for column in columns}
    headings: list[Cell] = []
    shown: list[list[Cell]] = [[] for _ in rows]
    for column in columns:
        if column.kind in ("margin", "high"):
            continue  # stands with its value, or with the lower end
        margin, high = names.get((column.name, "margin")), names.get((column.of, "high"))
        for cells, row in zip(shown, rows, strict=True):
            value = row[column.name]
            if column.kind == "low" and high is not None:
                cells.append(_interval(value, row[high]))
            elif margin is not None:
                cells.append(_plus_minus(value, row[margin]))
            else:
                cells.append(_cell(value))
        heading = f"{column.of}{INTERVAL}" if column.kind == "low" else column.name
        is_number = all(cells[-1].kind == "number" for cells in shown)
        headings.append(Cell(heading.replace("_", " "), "number" if is_number else "text"))
    notes = [column.name for column in columns if column.kind == "note"]
    published = [column.name for column in columns if column.kind == "published"]
    shown_rows: list[ShownRow] = []
    for cells, row in zip(shown, rows, strict=True):
        is_faint = any(row[name] for name in notes)
        is_published = any(_is_finite(row[name]) for name in published)
        shown_rows.append(ShownRow(tuple(cells), is_faint, is_published))
    return ShownTable(title, caption, file, tuple(headings), tuple(shown_rows))


def to_latex(table: ShownTable) -> bytes:
    """A tabular with the rules of booktabs, to be read by \\input."""
    places = "".join("r" if column.kind == "number" else "l" for column in table.columns)
    lines = [
        r"% \usepackage{booktabs}",
        rf"\begin{{tabular}}{{{places}}}",
        r"\toprule",
        _latex_row(table.columns),
        r"\midrule",
        *(_latex_row(row.cells) for row in table.rows),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return ("\n".join(lines) + "\n").encode("utf-8")


def show_number(value: float) -> str:
    """Three digits after the point, or two significant ones where those would say nothing."""
    if not math.isfinite(value):
        return "–"
    if 0 < abs(value) < 0.0005:
        return with_minus(f"{value:.2g}")
    return with_minus(f"{value:.3f}".rstrip("0").rstrip(".") or "0")


def with_minus(number: str) -> str:
    """A number with the sign that is printed for minus."""
    return number.replace("-", "−")


def _plus_minus(value: Any, margin: Any) -> Cell:
    """0.500 ± 0.010: a value with half of its 95 % interval."""
    if not (_is_finite(value) and _is_finite(margin)):
        return _cell(value)
    if abs(value) < 0.0005:
        return Cell(with_minus(f"{value:.2g} ± {margin:.1g}"), "number")
    return Cell(with_minus(f"{value:.3f} ± {margin:.{_places(margin)}f}"), "number")


def _places(margin: float) -> int:
    """Three digits after the point, or as many as the first one that is not 0 needs."""
    return min(7, math.ceil(-math.log10(margin))) if 0 < margin < 0.0005 else 3


def _interval(low: Any, high: Any) -> Cell:
    is_known = _is_finite(low) and _is_finite(high)
    return Cell(with_minus(f"{low:.3f} … {high:.3f}") if is_known else "–", "number")


def _is_finite(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _cell(value: Any) -> Cell:
    if isinstance(value, float):
        return Cell(show_number(value), "number")
    if isinstance(value, int) and not isinstance(value, bool):
        return Cell(with_minus(f"{value:,}"), "number")
    return Cell(str(value), "text")


def _latex_row(cells: Sequence[Cell]) -> str:
    return " & ".join(_latex(cell.text) for cell in cells) + r" \\"


def _latex(text: str) -> str:
    line = " ".join(plain(text).split())  # an empty line would end the table's paragraph
    return "".join(LATEX.get(letter, letter) for letter in line)
