"""The exemplar sentences of a run: a file of rows, one for every head and rank.

Heads that the run lists for a kind of pairs have further rows, which name that kind: the strongest
pairs of it, and one drawn at random.

`result.nc` has the file's checksum, so that sentences of another run, or rotten ones, are noticed.
"""

import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import xarray as xr

from headscope.errors import RunError
from headscope.files import checksum
from headscope.results.inspection import check_text, require_file, said

FILE = "exemplars.parquet"
CHECKSUM = "exemplars_sha256"  # attribute of the result
Exemplar = dict[str, Any]

ROWS, VALUES, BYTES = 2_000_000, 100_000_000, 2**31  # the most that a file may say it holds
WHOLE = ("layer", "head", "rank", "query", "key")
TEXTS = ("text", "id", "document", "query_tag", "key_tag", "key_relation", "kind")
REMEDY = "run the study again into the same RUN, which writes it again"


def read_exemplars(path: Path) -> list[Exemplar]:
    """The rows of an exemplar file, every one of them checked."""
    if not (path.exists() or path.is_symlink()):
        raise RunError(f"{path.parent} has no exemplars: its study keeps none.")
    try:
        require_file(path)
        rows = _read(path)
        for row in rows:
            _check(row)
    except Exception as error:  # Arrow fails on foreign content in many ways
        raise RunError(f"{path.name} cannot be read ({said(error)}); {REMEDY}.") from error
    return rows


def exemplars_of(result: xr.Dataset, path: Path) -> list[Exemplar]:
    """The exemplars that belong to a result; none if its study keeps none."""
    expected, is_there = result.attrs.get(CHECKSUM), path.exists() or path.is_symlink()
    if expected is None and not is_there:
        return []
    if not is_there:
        raise RunError(f"{path.name} is missing; {REMEDY}.")
    require_file(path)
    if checksum(path) != expected:
        raise RunError(
            f"{path.name} cannot be read (it is damaged, or not of this result); {REMEDY}."
        )
    rows = read_exemplars(path)
    _check_heads(rows, result)
    return rows


def _read(path: Path) -> list[Exemplar]:
    with path.open("rb") as content, pq.ParquetFile(content) as file:
        _check_columns(file)
        known = (*WHOLE, *TEXTS, "weight", "random", "sentence", "tokens")
        names = [name for name in known if name in file.schema_arrow.names]
        unknown = {**dict.fromkeys(TEXTS[1:]), "random": False}
        return [unknown | row for row in file.read(columns=names).to_pylist()]


def _check_columns(file: pq.ParquetFile) -> None:
    """Refuse what is of other types, or says that it unpacks to far too much, before reading."""
    about, schema = file.metadata, file.schema_arrow
    groups = [about.row_group(number) for number in range(about.num_row_groups)]
    parts = [group.column(place) for group in groups for place in range(group.num_columns)]
    size = sum(part.total_uncompressed_size for part in parts)
    if about.num_rows > ROWS or size > BYTES or sum(part.num_values for part in parts) > VALUES:
        raise RunError("it says that it holds more than a run can have")
    wrong = [name for name in WHOLE if not pa.types.is_integer(schema.field(name).type)]
    wrong += [name for name in ("weight",) if not pa.types.is_floating(schema.field(name).type)]
    wrong += [] if schema.field("tokens").type in _lists_of_texts() else ["tokens"]
    wrong += [] if pa.types.is_string(schema.field("text").type) else ["text"]
    if wrong:
        raise RunError(f"its {wrong[0]} is of another type")


def _lists_of_texts() -> tuple[Any, ...]:
    return pa.list_(pa.string()), pa.list_(pa.field("item", pa.string()))


def _check(row: Exemplar) -> None:
    if any(not isinstance(row[name], int) or row[name] < 0 for name in WHOLE):
        raise RunError("a number of it is missing or below 0")
    tokens, places = row["tokens"], (row["query"], row["key"])
    if not tokens or not all(isinstance(token, str) for token in tokens):
        raise RunError("a sentence of it has no tokens")
    if not all(place < len(tokens) for place in places):
        raise RunError("a marked token of it is behind the end of the sentence")
    if not isinstance(row["weight"], float) or not math.isfinite(row["weight"]):
        raise RunError("a weight of it is not a number")
    if not isinstance(row["random"], bool):
        raise RunError("it does not say whether a sentence of it was drawn at random")
    if not isinstance(row["text"], str):
        raise RunError("a sentence of it has no text")
    for text in (*tokens, *(row[name] for name in TEXTS[1:] if row[name] is not None)):
        check_text(text if isinstance(text, str) else "", "it")


def _check_heads(rows: list[Exemplar], result: xr.Dataset) -> None:
    layers, heads = (set(result[dim].values.tolist()) for dim in ("layer", "head"))
    if any(row["layer"] not in layers or row["head"] not in heads for row in rows):
        raise RunError(f"{FILE} cannot be read (it is of heads that are not there); {REMEDY}.")
