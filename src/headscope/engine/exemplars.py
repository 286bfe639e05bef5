"""The exemplar sentences of a result with their tokens, as a Parquet file that can stand alone."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import xarray as xr

from headscope.files import SHARDS, write_atomically
from headscope.observe.inputs import NO_LABEL, Example
from headscope.studies.study import Setup
from headscope.text.sentence import Sentence

SCHEMA = pa.schema(
    [
        ("layer", pa.int32()),
        ("head", pa.int32()),
        ("rank", pa.int32()),
        ("weight", pa.float64()),
        ("query", pa.int32()),
        ("key", pa.int32()),
        ("query_tag", pa.string()),
        ("key_tag", pa.string()),
        ("key_relation", pa.string()),
        ("sentence", pa.int64()),
        ("id", pa.string()),
        ("document", pa.string()),
        ("text", pa.string()),
        ("tokens", pa.list_(pa.string())),
    ]
)
Prepare = Callable[[int], tuple[Sentence, Example]]


def write_exemplars(path: Path, result: xr.Dataset, setup: Setup, prepare: Prepare) -> None:
    """One row for every head and rank; `prepare` makes the input of a sentence again."""
    rows = [_row(cell, setup, prepare) for cell in _cells(result)]
    with write_atomically(path) as temporary:
        pq.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), temporary)


def _cells(result: xr.Dataset) -> list[dict[str, Any]]:
    names = ("weight", "sentence", "query", "key")
    columns = {name: result[f"exemplar_{name}"].values for name in names}
    layers = result["layer"].values
    return [
        {"layer": int(layers[place[0]]), "head": place[1], "rank": place[2]}
        | {name: columns[name][place].item() for name in names}
        for place in np.ndindex(columns["weight"].shape)
        if columns["sentence"][place] >= 0
    ]


def _row(cell: dict[str, Any], setup: Setup, prepare: Prepare) -> dict[str, Any]:
    sentence, example = prepare(cell["sentence"])
    return cell | {
        "query_tag": _label(example, setup, "tag", cell["query"]),
        "key_tag": _label(example, setup, "tag", cell["key"]),
        "key_relation": _label(example, setup, "deprel", cell["key"]),
        "id": sentence.id,
        "document": sentence.document,
        "text": sentence.text,
        "tokens": list(example.encoded.tokens),
    }


def _label(example: Example, setup: Setup, name: str, token: int) -> str | None:
    code = example.labels[name][token] if name in example.labels else NO_LABEL
    return None if code == NO_LABEL else setup.labels[name][code]
