"""What is said of a result: tables, judged claims and chosen heads, computed once and kept with it.

A study declares how each is made; the engine makes them when the run is finished and writes them
into `result.nc`. Report, explorer, comparison and demo read them from there and compute nothing.
"""

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import xarray as xr

from headscope.errors import RunError
from headscope.results.findings import Finding, Verdict, judge
from headscope.results.roles import HeadRole, HeadRoles, describe_heads

ATTRIBUTE = "statements"  # of the Dataset
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Table:
    """Rows with the same columns; a value is text, a number or NaN where there is none."""

    name: str
    title: str
    caption: str
    rows: tuple[Row, ...]
    file: str  # of the CSV file, without ending


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
    heads: tuple[HeadRoles, ...] = ()  # what each head looks at

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
    rows: Callable[[xr.Dataset], Sequence[Row]]
    file: str = ""  # name of the CSV file where it is not that of the table


def make_statements(
    tables: Iterable[Tabulation],
    findings: Iterable[Finding],
    choices: Callable[[xr.Dataset], Sequence[Choice]],
    result: xr.Dataset,
) -> Statements:
    """Everything that the declarations of a study say of a result."""
    made = (_tabulate(table, result) for table in tables if _has(result, table.needs))
    return Statements(
        tuple(table for table in made if table.rows),
        tuple(_judge(finding, result) for finding in findings),
        tuple(choices(result)),
        describe_heads(result),
    )


def write_statements(result: xr.Dataset, statements: Statements) -> xr.Dataset:
    """The result with what is said of it."""
    said = json.dumps(_plain(asdict(statements)), ensure_ascii=False, allow_nan=False)
    return result.assign_attrs({ATTRIBUTE: said})


def read_statements(result: xr.Dataset) -> Statements:
    """What is said of a result that was read from its file."""
    said = json.loads(result.attrs.get(ATTRIBUTE, "{}"))
    if "heads" not in said:
        raise RunError(
            "This result says nothing of its heads: it was made by an older headscope. Run the "
            "same `headscope study` command again with a new --out."
        )
    return Statements(
        tuple(_read_table(table) for table in said["tables"]),
        tuple(JudgedClaim(**claim) for claim in said["findings"]),
        tuple(Choice(**choice) for choice in said["choices"]),
        tuple(_read_roles(each) for each in said["heads"]),
    )


def _has(result: xr.Dataset, needs: Iterable[str]) -> bool:
    return all(name in result for name in needs)


def _tabulate(table: Tabulation, result: xr.Dataset) -> Table:
    rows = tuple(table.rows(result))
    return Table(table.name, table.title, table.caption, rows, table.file or table.name)


def _judge(finding: Finding, result: xr.Dataset) -> JudgedClaim:
    found = judge(finding, result)
    return JudgedClaim(finding.claim, finding.published, found.value, found.verdict, finding.rule)


def _plain(value: Any) -> Any:
    """The value as JSON has it: what is not a finite number becomes null."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _read_table(said: dict[str, Any]) -> Table:
    rows = tuple(
        {name: math.nan if value is None else value for name, value in row.items()}
        for row in said["rows"]
    )
    return Table(said["name"], said["title"], said["caption"], rows, said["file"])


def _read_roles(said: dict[str, Any]) -> HeadRoles:
    return HeadRoles(**(said | {"roles": tuple(HeadRole(**role) for role in said["roles"])}))
