"""What is said of a result: tables, judged claims and chosen heads, computed once and kept with it.

A study declares how each is made; the engine makes them when the run is finished and writes them
into `result.nc`. Whoever shows a run reads them from there and computes nothing.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

import xarray as xr

from headscope.errors import RunError

ATTRIBUTE = "statements"  # of the Dataset
Verdict = Literal["yes", "no", "unclear", "not measured", "for comparison"]
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Table:
    """Rows with the same columns; `name` is that of the CSV file."""

    name: str
    title: str
    caption: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class JudgedClaim:
    """A claim of the paper held against the result by a stated rule."""

    claim: str
    published: str
    measured: str
    holds: Verdict
    rule: str


@dataclass(frozen=True)
class Choice:
    """A head worth looking at, for which table, and why."""

    table: str
    layer: int
    head: int
    why: str


@dataclass(frozen=True)
class Statements:
    """All that is said of one result."""

    tables: tuple[Table, ...] = ()
    findings: tuple[JudgedClaim, ...] = ()
    choices: tuple[Choice, ...] = ()

    def table(self, name: str) -> Table | None:
        """The table of that name, None where the result has nothing for it."""
        return next((table for table in self.tables if table.name == name), None)


def write_statements(result: xr.Dataset, statements: Statements) -> xr.Dataset:
    """The result with what is said of it."""
    return result.assign_attrs({ATTRIBUTE: json.dumps(asdict(statements), ensure_ascii=False)})


def read_statements(result: xr.Dataset) -> Statements:
    """What is said of a result that was read from its file."""
    if ATTRIBUTE not in result.attrs:
        raise RunError(
            "This result says nothing of itself: it was made by an older headscope. Delete its "
            "result.nc and run the same `headscope study` command again, which takes the finished "
            "shards."
        )
    said = json.loads(result.attrs[ATTRIBUTE])
    return Statements(
        tuple(Table(**table) for table in said["tables"]),
        tuple(JudgedClaim(**claim) for claim in said["findings"]),
        tuple(Choice(**choice) for choice in said["choices"]),
    )
