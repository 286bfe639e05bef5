"""Tables of all heads and of all layers: one column for each slice of a measure, and its error.

Tables as CSV that a spreadsheet opens as data: no text in them is taken for a formula.
"""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import xarray as xr

from headscope.results.measure import GRID, measure_names
from headscope.results.slices import values_at

BY_LAYER = "_by_layer"
_BEGINS_FORMULA = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True)
class Column:
    """A slice of a measure under the name that it has in a table."""

    variable: str
    name: str = ""  # that of the variable if not given
    at: Mapping[str, str] = field(default_factory=dict)

    @property
    def heading(self) -> str:
        """Its name in the table."""
        return self.name or self.variable


def columns_of(result: xr.Dataset, chosen: Iterable[Column]) -> list[Column]:
    """The chosen columns that the result has, then every other measure of whole heads."""
    known = [column for column in chosen if column.variable in result]
    shown = {column.variable for column in known}
    further = [name for name in measure_names(result) if name not in shown]
    return [*known, *(Column(name) for name in further if set(result[name].dims) == set(GRID))]


def head_cells(
    result: xr.Dataset, columns: Sequence[Column], layer: int, head: int, mark: str = "_se"
) -> dict[str, Any]:
    """The values of one head, each followed by its standard error where there is one."""
    return _cells(result, columns, "", mark, {"layer": layer, "head": head})


def layer_cells(
    result: xr.Dataset, columns: Sequence[Column], layer: int, mark: str = "_se"
) -> dict[str, Any]:
    """The values of one layer, each followed by its standard error where there is one."""
    pooled = [column for column in columns if column.variable + BY_LAYER in result]
    return _cells(result, pooled, BY_LAYER, mark, {"layer": layer})


def _cells(
    result: xr.Dataset, columns: Sequence[Column], suffix: str, mark: str, at: Mapping[str, int]
) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for column in columns:
        name, place = column.variable + suffix, {**at, **column.at}
        row[column.heading] = float(values_at(result, name, place))
        if f"{name}_se" in result:
            row[f"{column.heading}{mark}"] = float(values_at(result, f"{name}_se", place))
    return row


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
    if not isinstance(value, str) or not value.startswith(_BEGINS_FORMULA) or _is_number(value):
        return value
    return f"'{value}"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
