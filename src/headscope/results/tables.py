"""Tables of all heads and of all layers: one column for each slice of a measure, and its error.

As CSV a spreadsheet opens them as data: no text in them is taken for a formula.
"""

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import xarray as xr

from headscope.head import name_head
from headscope.results.measure import BY_LAYER, GRID, heads_of, measure_names, values_at
from headscope.wording import is_number

_BEGINS_FORMULA = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True)
class Column:
    """A slice of a measure under the name that it has in a table."""

    variable: str
    name: str = ""  # that of the variable if not given
    at: Mapping[str, str] = field(default_factory=dict)

    @property
    def heading(self) -> str:
        return self.name or self.variable


def columns_of(result: xr.Dataset, chosen: Iterable[Column]) -> list[Column]:
    """The chosen columns that the result has, then every other measure of whole heads."""
    known = [column for column in chosen if column.variable in result]
    shown = {column.variable for column in known}
    further = [name for name in measure_names(result) if name not in shown]
    return [*known, *(Column(name) for name in further if set(result[name].dims) == set(GRID))]


def head_rows(
    result: xr.Dataset,
    columns: Sequence[Column],
    name: Callable[[int, int], str] = name_head,
    mark: str = "_se",
) -> list[dict[str, Any]]:
    """A row for each head: its behaviour if it has one, every value, and its standard error."""
    cells: dict[str, list[Any]] = {"head": [name(*head) for head in heads_of(result)]}
    if "behaviour" in result:
        behaviour = result.variables["behaviour"].transpose(*GRID).values
        cells["behaviour"] = [str(each) for each in behaviour.ravel().tolist()]
    return rows_of(cells | _cells(result, columns, "", mark, GRID))


def layer_rows(
    result: xr.Dataset, columns: Sequence[Column], mark: str = "_se"
) -> list[dict[str, Any]]:
    """A row for each layer: every value that is pooled over its heads, and its standard error."""
    pooled = [column for column in columns if column.variable + BY_LAYER in result]
    layers = {"layer": result.variables["layer"].values.tolist()}
    return rows_of(layers | _cells(result, pooled, BY_LAYER, mark, GRID[:1]))


def rows_of(cells: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Rows of a table that is given column by column."""
    return [dict(zip(cells, row, strict=True)) for row in zip(*cells.values(), strict=True)]


def _cells(
    result: xr.Dataset, columns: Sequence[Column], suffix: str, mark: str, dims: tuple[str, ...]
) -> dict[str, list[float]]:
    """The columns of a table by their headings, and those of the errors."""
    cells: dict[str, list[float]] = {}
    for column in columns:
        name = column.variable + suffix
        cells[column.heading] = column_at(result, name, dims, column.at)
        if f"{name}_se" in result:
            cells[f"{column.heading}{mark}"] = column_at(result, f"{name}_se", dims, column.at)
    return cells


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
    if not isinstance(value, str) or not value.startswith(_BEGINS_FORMULA) or is_number(value):
        return value
    return f"'{value}"
