"""What is said of a result: tables, judged claims and chosen heads, computed once and kept with it.

A study declares how each is made; the engine makes them when the run is finished and writes them
into `result.nc`. Report, explorer, comparison and demo read them from there and compute nothing.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np
import xarray as xr

from headscope.errors import RunError
from headscope.head import name_head
from headscope.results.claims import Claim, JudgedClaim, Replicates, Verdict, judge
from headscope.results.inspection import INTEGER, read_json
from headscope.results.intervals import Interval
from headscope.results.tables import (
    BESIDE,
    Column,
    MeasureColumn,
    head_rows,
    layer_rows,
    tabulate,
)

ATTRIBUTE = "statements"  # of the Dataset
Cell = str | int | float | bool | None  # of a row as it is stored
Row = Mapping[str, Cell]
# A verdict on one claim and on several.
VERDICTS: Mapping[Verdict, tuple[str, str]] = {
    "yes": ("holds", "hold"),
    "no": ("does not hold", "do not hold"),
    "unclear": ("is unclear", "are unclear"),
    "untrained too": ("holds for untrained networks, too", "hold for untrained networks, too"),
    "not measured": ("was not measured", "were not measured"),
    "for comparison": ("is for comparison", "are for comparison"),
}
_CLAIM_WORDS = ("claim", "published", "measured", "holds", "rule")  # of a claim in a table
FILE_NAME = re.compile(r"\w[\w .-]{0,99}")  # a plain name: nothing is written outside the run


@dataclass(frozen=True)
class Table:
    """Rows with the same columns; a value is text, a number or NaN where there is none."""

    name: str
    title: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]  # plain cells under the names of the columns
    file: str  # of the CSV file, without ending
    narrow: tuple[str, ...] = ()  # the columns that fit a column of a paper


@dataclass(frozen=True)
class Choice:
    """A head worth looking at, for which table, and why; its exemplars are pairs of one kind."""

    table: str
    layer: int
    head: int
    why: str
    kind: str = ""  # of `results.examples`; none where any pair will do


@dataclass(frozen=True)
class Statements:
    """All that is said of one result."""

    tables: tuple[Table, ...] = ()
    findings: tuple[JudgedClaim, ...] = ()
    choices: tuple[Choice, ...] = ()

    def table(self, name: str) -> Table | None:
        """The table of that name, None where the result has nothing for it."""
        return next((table for table in self.tables if table.name == name), None)


@dataclass(frozen=True)
class Tabulation:
    """How a table is made of a result that has all the variables it needs."""

    name: str
    title: str
    caption: str
    needs: tuple[str, ...]
    rows: Callable[
        [xr.Dataset], Sequence[Mapping[str, Any]]
    ]  # with typed cells; see `results.tables`
    file: str = ""  # name of the CSV file where it is not that of the table
    narrow: tuple[str, ...] = ()  # the columns that fit a column of a paper


MadeColumns = Callable[[xr.Dataset], Sequence[MeasureColumn]]


def layers_table(caption: str, columns: MadeColumns) -> Tabulation:
    """The pooled values of every layer."""

    def rows(result: xr.Dataset) -> list[dict[str, Any]]:
        return layer_rows(result, columns(result))

    return Tabulation("layers", "Layers", caption, (), rows)


def heads_table(columns: MadeColumns, name: Callable[[int, int], str] = name_head) -> Tabulation:
    """The values of every head."""

    def rows(result: xr.Dataset) -> list[dict[str, Any]]:
        return head_rows(result, columns(result), name)

    return Tabulation("heads", "Heads", "Every head.", (), rows)


def make_statements(
    tables: Iterable[Tabulation],
    claims: Iterable[Claim],
    choices: Callable[[xr.Dataset], Sequence[Choice]],
    result: xr.Dataset,
    untrained: Mapping[str, float | None] = MappingProxyType({}),
) -> Statements:
    """Everything that the declarations of a study say of a result.

    `untrained` has the statistic of every claim for networks of random weights, by its sentence.
    """
    made: list[Table] = []
    for table in tables:
        if all(name in result for name in table.needs):
            columns, rows = tabulate(table.rows(result))
            file = table.file or table.name
            if rows:
                made.append(
                    Table(table.name, table.title, table.caption, columns, rows, file, table.narrow)
                )
    data = Replicates(result)
    judged = tuple(judge(claim, data, untrained.get(claim.sentence)) for claim in claims)
    return Statements(tuple(made), judged, tuple(choices(result)))


def tally(claims: Iterable[JudgedClaim]) -> str:
    """How many claims hold: "18 hold, 7 do not hold, 4 are unclear, 3 were not measured"."""
    counts = Counter(claim.holds for claim in claims)
    parts: list[str] = []
    for verdict, (one, several) in VERDICTS.items():
        if counts[verdict]:
            parts.append(f"{counts[verdict]} {one if counts[verdict] == 1 else several}")
    return ", ".join(parts)


def claim_rows(claims: Iterable[JudgedClaim]) -> list[dict[str, Any]]:
    """Claims as rows of a table; NaN where there is no number."""
    rows = []
    for claim in claims:
        value, low, high, threshold = (
            math.nan if number is None else number
            for number in (claim.value, claim.low, claim.high, claim.threshold)
        )
        words = {name: getattr(claim, name) for name in _CLAIM_WORDS}
        rows.append({**words, "value": Interval(value, low, high), "threshold": threshold})
    return rows


def write_statements(result: xr.Dataset, statements: Statements) -> xr.Dataset:
    """The result with what is said of it."""
    said = json.dumps(_plain(asdict(statements)), ensure_ascii=False, allow_nan=False)
    return result.assign_attrs({ATTRIBUTE: said})


def read_statements(result: xr.Dataset) -> Statements:
    """What is said of a result that was read from its file."""
    if ATTRIBUTE not in result.attrs:
        raise RunError(
            "This result says nothing of its heads: it was made by an older headscope. Run the "
            "same `headscope study` command again with a new --out."
        )
    text = result.attrs[ATTRIBUTE]
    return _parse(text) if isinstance(text, str) else _parse.__wrapped__(text)


@lru_cache(maxsize=4)  # a page asks several times, and checking every value is slow
def _parse(text: object) -> Statements:
    what = "What the result says of itself"
    said = read_json(text, Statements, what)
    files = [*(table.file for table in said.tables), *(choice.table for choice in said.choices)]
    if not all(map(FILE_NAME.fullmatch, files)):
        raise RunError(f"{what} names a file outside the run.")
    return replace(said, tables=tuple(map(_read_table, said.tables)))


def _plain(value: Any) -> Any:
    """The value as JSON has it: what is not a finite number becomes null."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _read_table(table: Table) -> Table:
    """The table with NaN for null; refuses rows of other columns than it names."""
    names = tuple(column.name for column in table.columns)
    if not names or not table.rows or {tuple(row) for row in table.rows} != {names}:
        raise RunError("A table of the result has rows of different columns.")
    for column in table.columns:
        if column.kind in BESIDE and column.of not in names:
            raise RunError("A table of the result has an interval of a column that it lacks.")
    rows: list[Row] = []
    for row in table.rows:
        if any(isinstance(value, int) and abs(value) > INTEGER for value in row.values()):
            raise RunError("A table of the result has a number of too many digits.")
        rows.append({name: math.nan if value is None else value for name, value in row.items()})
    return replace(table, rows=tuple(rows))
