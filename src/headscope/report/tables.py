"""Tables as CSV and LaTeX files and as they are shown on the page."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headscope.results.statements import Row
from headscope.wording import plain

LONG = 40  # rows; a longer table is folded
WIDE = 17  # columns; a wider table does not fit a printed page
PLUS_MINUS = re.compile(r"\S+ (±|…) \S+")  # a value with its error, or an interval
ERRORS = ("_se", " se")
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


@dataclass(frozen=True)
class ShownTable:
    """A table as it is shown: numbers rounded, errors and intervals in one cell each."""

    title: str
    caption: str
    file: str
    columns: tuple[Cell, ...]
    rows: tuple[ShownRow, ...]

    @property
    def is_long(self) -> bool:
        """Whether it is folded on the page."""
        return len(self.rows) > LONG

    @property
    def is_wide(self) -> bool:
        """Whether it is too wide for a printed page."""
        return len(self.columns) > WIDE


def show_table(rows: Sequence[Row], title: str, caption: str = "", file: str = "") -> ShownTable:
    """The table for readers."""
    joined = [_with_errors(_with_intervals(row)) for row in rows]
    shown = tuple(
        ShownRow(tuple(map(_cell, row.values())), is_faint=bool(row.get("note"))) for row in joined
    )
    columns = tuple(
        Cell(name.replace("_", " "), _kind_of([row.cells[place] for row in shown]))
        for place, name in enumerate(joined[0])
    )
    return ShownTable(title, caption, file, columns, shown)


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
        return f"{value:.2g}".replace("-", "−")
    return (f"{value:.3f}".rstrip("0").rstrip(".") or "0").replace("-", "−")


def _with_errors(row: Row) -> Row:
    """NAME and NAME_se as one cell: value ± standard error."""
    found: dict[str, Any] = {}
    for name, value in row.items():
        error = next((name + mark for mark in ERRORS if name + mark in row), None)
        if error is not None:
            found[name] = _plus_minus(value, row[error])
        elif not name.endswith(ERRORS):
            found[name] = value
    return found


def _plus_minus(value: Any, error: Any) -> Any:
    if not _is_finite(value) or not isinstance(error, int | float):
        return value
    if abs(value) < 0.0005:
        return f"{value:.2g} ± {error:.1g}"
    return f"{value:.3f} ± {error:.{_places(error)}f}"


def _places(error: float) -> int:
    """Three digits after the point, or as many as the first one that is not 0 needs."""
    return min(7, math.ceil(-math.log10(error))) if 0 < error < 0.0005 else 3


def _with_intervals(row: Row) -> Row:
    """NAME low and NAME high as one cell."""
    found: dict[str, Any] = {}
    for name, value in row.items():
        start = name.removesuffix("low")
        if name.endswith("low") and f"{start}high" in row:
            ends = value, row[f"{start}high"]
            known = all(map(_is_finite, ends))
            found[f"{start}interval"] = f"{ends[0]:.3f} … {ends[1]:.3f}" if known else "–"
        elif not (name.endswith("high") and f"{name.removesuffix('high')}low" in row):
            found[name] = value
    return found


def _is_finite(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _cell(value: Any) -> Cell:
    if isinstance(value, float):
        return Cell(show_number(value), "number")
    if isinstance(value, int) and not isinstance(value, bool):
        return Cell(f"{value:,}", "number")
    return Cell(str(value), "number" if PLUS_MINUS.fullmatch(str(value)) else "text")


def _kind_of(cells: Sequence[Cell]) -> str:
    return "number" if all(cell.kind == "number" for cell in cells) else "text"


def _latex_row(cells: Sequence[Cell]) -> str:
    return " & ".join(_latex(cell.text) for cell in cells) + r" \\"


def _latex(text: str) -> str:
    line = " ".join(plain(text).split())  # an empty line would end the table's paragraph
    return "".join(LATEX.get(letter, letter) for letter in line)
