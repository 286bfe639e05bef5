"""A run as files of other tools: CSV and Parquet in long form; trees, graphs and plans of others.

```
index          every file below with what it holds: dimensions, title, unit, formula
heads          one line for each head: a column for each slice of a measure, and its error
variables/     each variable of the result: its coordinates, value, and se and q where it has them
tables/        the tables, claims and chosen heads that are stored with the run
records/       examples, top tokens, maps and writes of heads, where the run keeps them
run.json       what was run on what;   attributes.json   what the result says of itself
```
"""

import json
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, astuple
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import xarray as xr

from headscope.errors import RunError
from headscope.exports.graph import require_composition, write_graph
from headscope.exports.headvis import require_examples, write_headvis
from headscope.exports.kv import require_distances, write_kv
from headscope.files import find_place
from headscope.head import Head
from headscope.results.head_map import map_heads
from headscope.results.heads import rows_of
from headscope.results.inspection import named
from headscope.results.measure import GRID, heads_of, measure_names, measure_of, slices
from headscope.results.records import (
    EXAMPLES,
    INPUTS,
    MAPS,
    SCHEMAS,
    TOP_TOKENS,
    WRITES,
    WRITTEN,
    Records,
)
from headscope.results.run import SETTINGS, Run, read_finished
from headscope.results.statements import claim_rows, read_statements
from headscope.results.tables import tabulate, to_csv

Format = Literal["csv", "parquet", "headvis", "graph", "kv"]
FORMATS: tuple[str, ...] = get_args(Format)
BESIDE = {"se": "_se", "q": "_q"}  # columns beside a value, and the ends of their variables' names
SAID = ("title", "meaning", "unit", "formula", "reference")  # of a measure, in the index
Rows = Iterable[Sequence[Any]]


def export(run: str | Path, out: str | Path, format: Format = "csv") -> Path:
    """Write everything in a finished run into a new or empty folder; the folder."""
    if format not in FORMATS:
        raise RunError(f"There is no format {format!r}; there are {', '.join(FORMATS)}.")
    found, folder = read_finished(run), find_place(out)
    if format == "headvis":
        require_examples(found)
    elif format == "graph":
        require_composition(found.data)
    elif format == "kv":
        require_distances(found.data)
    try:
        _claim(folder)
        if format == "headvis":
            write_headvis(found, folder)
        elif format == "graph":
            write_graph(found.data, folder)
        elif format == "kv":
            write_kv(found.data, folder)
        else:
            write_tables(found, folder, format)
    except OSError as error:
        raise RunError(
            f"The export cannot be written to {folder} ({error.strerror or error}); make room or "
            "choose another with --out."
        ) from error
    return folder


def _claim(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise RunError(
            f"{folder} already has something in it; nothing was changed. "
            "Choose an empty or new directory with --out."
        )


def write_tables(run: Run, folder: Path, ending: str) -> None:
    """Write every table; the index comes last."""
    data = run.data
    entries = [_entry(data, name, f"variables/{name}.{ending}") for name in own_variables(data)]
    for entry in entries:
        _write(folder / entry["file"], long_table(data, entry["variable"]))
    _write(folder / f"heads.{ending}", heads_table(data))
    _write_statements(data, folder / "tables", ending)
    _write_records(run, folder / "records", ending)
    said = {str(name): _plain(value) for name, value in data.attrs.items()}
    for name, content in {SETTINGS: run.settings, "attributes.json": said}.items():
        text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
        (folder / name).write_text(text, encoding="utf-8")
    _write(folder / f"index.{ending}", pa.Table.from_pylist(entries))


def own_variables(data: xr.Dataset) -> list[str]:
    """Every variable but those that are columns beside another."""
    names = [str(name) for name in data.data_vars]
    beside = {f"{name}{end}" for name in names for end in BESIDE.values()}
    return [name for name in names if name not in beside]


def long_table(data: xr.Dataset, name: str) -> pa.Table:
    """One line for each number: its coordinates, the value, and what stands beside it."""
    variable = data.variables[name]
    taken = {"value", *BESIDE} & set(variable.dims)
    if taken:
        raise RunError(f"{named(name)} has a dimension {min(taken)}, the name of a column of ours.")
    columns = {"value": variable}
    for column, end in BESIDE.items():
        beside = data.variables.get(f"{name}{end}")
        if beside is not None and set(beside.dims) == set(variable.dims):
            columns[column] = beside
    labels = {dim: data.variables[dim] for dim in variable.dims if dim in data.variables}
    return _table(xr.Dataset(columns, labels), variable.dims)


def heads_table(data: xr.Dataset) -> pa.Table:
    """One line for each head, a column for each slice of a measure, its error beside it."""
    columns: dict[str, Any] = {"name": (GRID, _names(data))}
    for name in measure_names(data):
        for each in slices(data, name):
            columns[each.spec] = GRID, each.values.values
            if each.errors is not None:
                columns[f"{each.spec}_se"] = GRID, each.errors.transpose(*GRID).values
    table = _table(xr.Dataset(columns, {dim: data.variables[dim] for dim in GRID}), GRID)
    return table.select(["name", *(column for column in table.column_names if column != "name")])


def _names(data: xr.Dataset) -> np.ndarray:
    names = np.array([str(head) for head in heads_of(data)], dtype=object)
    return names.reshape([data.sizes[dim] for dim in GRID])


def _table(data: xr.Dataset, dims: Sequence[Hashable]) -> pa.Table:
    """One line for each place along the dimensions; what is not a number is null."""
    frame = data.to_dataframe(dim_order=list(dims)) if dims else data.to_pandas().to_frame().T
    frame = frame.reset_index(drop=not dims)
    for column in frame.columns:
        if frame[column].dtype.kind == "O":
            frame[column] = frame[column].map(_plain)
    return pa.Table.from_pandas(frame, preserve_index=False)


def _plain(value: Any) -> Any:
    """A value of numpy or HDF5 as Python has it."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value.item() if isinstance(value, np.generic) else value


def _entry(data: xr.Dataset, name: str, file: str) -> dict[str, Any]:
    measure, variable = measure_of(data, name), data.variables[name]
    return {
        "file": file,
        "variable": name,
        "dimensions": ", ".join(map(str, variable.dims)),
        "numbers": int(variable.size),
        **{each: getattr(measure, each) for each in SAID},
    }


def _write(path: Path, table: pa.Table) -> None:
    """As CSV or Parquet, by the ending of the name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        pq.write_table(table, path, compression="zstd")
        return
    columns = [column.to_pylist() for column in table.columns]
    rows = ([_cell(value) for value in row] for row in zip(*columns, strict=True))
    path.write_bytes(to_csv(table.column_names, rows))


def _cell(value: Any) -> Any:
    if isinstance(value, list):
        return json.dumps(value, ensure_ascii=False)
    return "" if value is None else value


def _write_statements(data: xr.Dataset, folder: Path, ending: str) -> None:
    said = read_statements(data)
    kept: dict[str, Sequence[Mapping[str, Any]]] = {one.name: one.rows for one in said.tables}
    kept |= {
        "claims": tabulate(claim_rows(said.findings))[1],
        "chosen_heads": [asdict(one) for one in said.choices],
    }
    if (described := map_heads(data)) is not None:
        kept["what_heads_look_at"] = rows_of(described.cells)
    for name, rows in kept.items():
        if rows:
            _write(folder / f"{name}.{ending}", _from_rows(rows))


def _from_rows(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Stored rows, whose cells of one column may be numbers in some and text in others."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = {name: [_plain(row.get(name)) for row in rows] for name in names}
    return pa.table({name: _mixed(values) for name, values in columns.items()})


def _mixed(values: list[Any]) -> pa.Array:
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array([None if value is None else str(value) for value in values])


def _write_records(run: Run, folder: Path, ending: str) -> None:
    for name in run.records.files:
        folder.mkdir(parents=True, exist_ok=True)
        if ending == "parquet":
            (folder / name).write_bytes((run.records.folder / name).read_bytes())
        else:
            _write_lines(folder / f"{Path(name).stem}.csv", name, run)


def _write_lines(path: Path, name: str, run: Run) -> None:
    """A file of records as CSV, head by head: nothing that is large is held at once."""
    heads, records = heads_of(run.data), run.records
    with path.open("wb") as file:
        file.write(to_csv(_HEADERS.get(name) or SCHEMAS[name].names, ()))
        if name == INPUTS:
            file.write(to_csv((), _input_lines(records, heads)))
            return
        for head in heads:
            file.write(to_csv((), ((*head, *line) for line in _LINES[name](records, head))))


def _example_lines(records: Records, head: Head) -> Rows:
    for one in records.examples(*head):
        for edge in zip(one.query, one.key, one.weight, strict=True):
            yield one.band, one.rank, one.peak, one.input, *edge


def _input_lines(records: Records, heads: Sequence[Head]) -> Rows:
    """Every input that the records name, token by token."""
    named = {one.input for head in heads for one in records.examples(*head)}
    named |= {one.input for head in heads for one in records.points(*head)}
    for number, one in sorted(records.inputs(named).items()):
        tags, relations = (labels or [""] * len(one.tokens) for labels in (one.tags, one.relations))
        for position, labelled in enumerate(zip(one.tokens, tags, relations, strict=True)):
            yield number, one.document, one.id, one.start, position, *labelled


# Where a line is not a row of the file.
_HEADERS = {
    EXAMPLES: (*GRID, "band", "rank", "peak", "input", "query", "key", "weight"),
    INPUTS: ("input", "document", "id", "start", "position", "token", "tag", "relation"),
}
_LINES: dict[str, Callable[[Records, Head], Rows]] = {
    TOP_TOKENS: lambda records, head: (astuple(one) for one in records.top_tokens(*head)),
    EXAMPLES: _example_lines,
    MAPS: lambda records, head: (astuple(one) for one in records.points(*head)),
    WRITES: lambda records, head: (
        astuple(one) for of in WRITTEN for one in records.writes(*head, of)
    ),
}
