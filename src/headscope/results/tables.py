"""Tables of a result: what every column holds, and the tables of all heads and of all layers.

A maker of rows puts typed cells into them: a plain number or text, an `Interval`, a `Measured`
value with its margin of error, the name of a head, a note. The columns of the stored table follow
from them, so that pages and reports read types and never what a column is called.

As CSV a spreadsheet opens them as data: no text in them is taken for a formula.
"""

import csv
import io
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import xarray as xr

from headscope.head import name_head
from headscope.results.intervals import Interval
from headscope.results.measure import BY_LAYER, GRID, MARK, heads_of, measure_names, values_at
from headscope.results.replicates import margin_of
from headscope.wording import is_number

HEAD_MEAN = "_head_mean"
# What the cells are. A margin and the ends of an interval are `of` a column of the same table, a
# value and what is made of it are of a slice of a measure.
Kind = Literal["text", "head", "note", "number", "published", "value", "by layer", "head mean",
               "margin", "low", "high"]  # fmt: skip
MEASURE_KINDS = ("value", "by layer", "head mean")
BESIDE = {"margin": "margin of error", "low": "low", "high": "high"}  # after the column's name
_KINDS: dict[str, Kind] = {"": "value", BY_LAYER: "by layer", HEAD_MEAN: "head mean"}
_BEGINS_FORMULA = ("=", "+", "-", "@", "\t", "\r")
# A signed number with its interval, as claims state it: with "…" outside quotes it is no formula.
_OWN_INTERVAL = re.compile(r"[+-][\d.]+ (?:[%×] |\w+ )?\([+−]?[\d.]+ … ")


@dataclass(frozen=True)
class Column:
    """What a column of a stored table holds, and of what; the name heads the CSV."""

    name: str
    kind: Kind = "text"
    of: str = ""


class HeadName(str):
    """A cell: the name of a head, maybe with that of the paper or with a value behind it."""


class Note(str):
    """A cell: why a row says little; empty where it says enough."""


class InPaper(float):
    """A cell: the value that the paper has there, NaN where it has none."""


@dataclass(frozen=True)
class Measured:
    """A cell: a number of a slice of a measure with its margin of error, None where it has none."""

    value: float
    margin: float | None
    of: str  # the slice, NAME~LABEL
    kind: Kind = "value"


@dataclass(frozen=True)
class MeasureColumn:
    """A slice of a measure under the name that it has in a table."""

    variable: str
    name: str = ""  # that of the variable if not given
    at: Mapping[str, str] = field(default_factory=dict)

    @property
    def heading(self) -> str:
        return self.name or self.variable

    @property
    def spec(self) -> str:
        return MARK.join((self.variable, *self.at.values()))


def tabulate(
    rows: Sequence[Mapping[str, Any]],
) -> tuple[tuple[Column, ...], tuple[dict[str, Any], ...]]:
    """The columns of rows with typed cells, and the rows with plain ones under their names."""
    columns: list[Column] = []
    plain: tuple[dict[str, Any], ...] = tuple({} for _ in rows)
    for name in rows[0] if rows else ():
        for column, values in _columns_of([row[name] for row in rows], name):
            columns.append(column)
            for row, value in zip(plain, values, strict=True):
                row[column.name] = value
    return tuple(columns), plain


def _columns_of(cells: Sequence[Any], name: str) -> Iterable[tuple[Column, list[Any]]]:
    """The column of cells that are alike, and those beside it."""
    values = [each.value if isinstance(each, Interval | Measured) else each for each in cells]
    measured = next((each for each in cells if isinstance(each, Measured)), None)
    if measured is not None:
        yield Column(name, measured.kind, measured.of), values
        if measured.margin is not None:
            yield _beside(name, "margin"), [each.margin for each in cells]
        return
    yield Column(name, _kind_of(values)), values
    if any(isinstance(each, Interval) for each in cells):
        for end in ("low", "high"):
            yield _beside(name, end), [getattr(each, end, math.nan) for each in cells]


def _beside(name: str, kind: Literal["margin", "low", "high"]) -> Column:
    return Column(f"{name} {BESIDE[kind]}", kind, name)


def _kind_of(values: Sequence[Any]) -> Kind:
    if any(isinstance(each, InPaper) for each in values):
        return "published"
    if all(_is_plain_number(each) for each in values):
        return "number"
    if any(isinstance(each, HeadName) for each in values):
        return "head"
    return "note" if any(isinstance(each, Note) for each in values) else "text"


def _is_plain_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def measure_columns(result: xr.Dataset, chosen: Iterable[MeasureColumn]) -> list[MeasureColumn]:
    """The chosen columns that the result has, then every other measure of whole heads."""
    known = [column for column in chosen if column.variable in result]
    shown = {column.variable for column in known}
    for name in measure_names(result):
        if name not in shown and set(result[name].dims) == set(GRID):
            known.append(MeasureColumn(name))
    return known


def head_rows(
    result: xr.Dataset,
    columns: Sequence[MeasureColumn],
    name: Callable[[int, int], str] = name_head,
) -> list[dict[str, Any]]:
    """A row for each head: its behaviour if it has one, and every value with its margin."""
    cells: dict[str, list[Any]] = {"head": [HeadName(name(*head)) for head in heads_of(result)]}
    if "behaviour" in result:
        behaviour = result.variables["behaviour"].transpose(*GRID).values
        cells["behaviour"] = [str(label) for label in behaviour.ravel().tolist()]
    for column in columns:
        cells[column.heading] = measured_cells(result, column, "", GRID)
    return rows_of(cells)


def layer_rows(result: xr.Dataset, columns: Sequence[MeasureColumn]) -> list[dict[str, Any]]:
    """A row for each layer: every value that is pooled over its heads, with its margin."""
    cells: dict[str, list[Any]] = {"layer": result.variables["layer"].values.tolist()}
    for column in columns:
        if column.variable + BY_LAYER in result:
            cells[column.heading] = measured_cells(result, column, BY_LAYER, GRID[:1])
    return rows_of(cells)


def measured_cells(
    result: xr.Dataset, column: MeasureColumn, suffix: str, dims: tuple[str, ...]
) -> list[Measured]:
    """A slice of a measure, or of its pooled values, along some dimensions."""
    values = column_at(result, column.variable + suffix, dims, column.at)
    margins: Sequence[float | None] = [None] * len(values)
    margin = margin_of(result, column.variable, suffix)
    if margin is not None:
        margins = column_at(xr.Dataset({"margin": margin}), "margin", dims, column.at)
    kind = _KINDS[suffix]
    return [
        Measured(value, own, column.spec, kind) for value, own in zip(values, margins, strict=True)
    ]


def rows_of(cells: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Rows of a table that is given column by column."""
    return [dict(zip(cells, row, strict=True)) for row in zip(*cells.values(), strict=True)]


def column_at(
    result: xr.Dataset, name: str, dims: tuple[str, ...], at: Mapping[str, Any] | None = None
) -> list[float]:
    """All values of a variable at some labels, the last of the dimensions running fastest.

    What does not differ along a dimension is repeated.
    """
    array = values_at(result, name, at or {})
    whole = array.set_dims({dim: result.sizes[dim] for dim in dims})
    return whole.values.astype(float).ravel().tolist()


def to_csv(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> bytes:
    """One line per row below the header, if any; what is no number is an empty cell or a text."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    if header:
        writer.writerow(map(_cell, header))
    writer.writerows(map(_cell, row) for row in rows)
    return buffer.getvalue().encode("utf-8")


def _cell(value: Any) -> Any:
    """A text that a spreadsheet would compute gets an apostrophe, which it does not show."""
    if not isinstance(value, str) or not value.startswith(_BEGINS_FORMULA):
        return value
    if is_number(value) or _OWN_INTERVAL.match(value):
        return value
    return f"'{value}"
