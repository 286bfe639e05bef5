"""The exemplar sentences of a result with their tokens, as a Parquet file that can stand alone."""

import hashlib
import io
from collections.abc import Callable, Sequence
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import xarray as xr

from headscope.engine.part import Part
from headscope.engine.setup import Setup
from headscope.files import SHARDS, write_bytes
from headscope.metrics.records.examples import FIELDS
from headscope.metrics.records.kinds import RANDOM
from headscope.model.inputs.tokens import display_text
from headscope.observe.inputs import NO_LABEL, Example
from headscope.results.dataset import without_stack
from headscope.results.measure import GRID
from headscope.results.statements import read_statements
from headscope.studies.study import Study
from headscope.text.corpus import Shard
from headscope.text.segments import Excerpt
from headscope.text.sentence import Sentence

SCHEMA = pa.schema(
    [
        ("layer", pa.int32()),
        ("head", pa.int32()),
        ("rank", pa.int32()),
        ("kind", pa.string()),  # of the pairs of a head that is listed for it; null: of any
        ("random", pa.bool_()),  # drawn, not strong
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


def write_exemplars(path: Path, result: xr.Dataset, study: Study, setup: Setup) -> str | None:
    """One row for every head and rank, and for every pick of a head that is listed for a kind.

    Returns the file's checksum; None if the study keeps no exemplars. The tokens are made again,
    for only these few sentences are shown.
    """
    part = next((part for part in study.parts(setup) if _has_exemplars(part)), None)
    if part is None:
        return None
    result = without_stack(result)
    cells = [*_cells(result), *_cells_of_kinds(result)]
    prepare = _prepare(part, setup, [cell["sentence"] for cell in cells])
    rows = [_row(cell, setup, prepare) for cell in cells]
    content = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), content)
    write_bytes(path, content.getvalue(), kept=SHARDS)
    return hashlib.sha256(content.getvalue()).hexdigest()


def _has_exemplars(part: Part) -> bool:
    return any(metric.name == "exemplars" for metric in part.metrics)


def _prepare(part: Part, setup: Setup, wanted: Sequence[int]) -> Prepare:
    """Makes the input of a sentence again."""
    numbers = sorted(set(wanted))
    sentences = dict(zip(numbers, setup.corpus.select(numbers), strict=True))
    at_once = _examples_of(part, setup, list(sentences.values()))
    if at_once is not None:
        made = dict(zip(numbers, at_once, strict=True))
        return lambda number: (sentences[number], made[number])

    @cache
    def prepare(number: int) -> tuple[Sentence, Example]:
        following = [sentences[number], *_rest_of_document(setup, number)]
        example = part.inputs(setup, Excerpt(following), number).examples[0]
        return example.sentence or sentences[number], example

    return prepare


def _examples_of(part: Part, setup: Setup, sentences: Sequence[Sentence]) -> list[Example] | None:
    """The inputs of all sentences, made at once; None where an input is not a single sentence."""
    if setup.context is not None or not sentences:
        return None
    made = list(part.inputs(setup, Excerpt(sentences), 0).examples)
    if len(made) != len(sentences):
        return None
    pairs = zip(made, sentences, strict=True)
    return made if all(example.sentence is sentence for example, sentence in pairs) else None


def _rest_of_document(setup: Setup, number: int) -> list[Sentence]:
    """The sentences that may belong to the same input; none, unless documents are inputs."""
    if setup.context is None:
        return []
    stop = min(number + setup.context, len(setup.corpus))
    following = setup.corpus.read(Shard(0, number, stop))
    document = following[0].document
    return list(takewhile(lambda each: each.document == document, following[1:]))


def _cells(result: xr.Dataset) -> list[dict[str, Any]]:
    columns = {name: result[f"exemplar_{name}"].values for name in FIELDS}
    layers = result["layer"].values
    return [
        {"layer": int(layers[place[0]]), "head": place[1], "rank": place[2]}
        | {"kind": None, "random": False}
        | {name: columns[name][place].item() for name in FIELDS}
        for place in np.ndindex(columns["weight"].shape)
        if columns["sentence"][place] >= 0
    ]


def _cells_of_kinds(result: xr.Dataset) -> list[dict[str, Any]]:
    """The picks of the heads that the result lists for a kind."""
    if "kind_exemplar_weight" not in result:
        return []
    kinds = set(result["kind"].values.tolist())
    listed = {
        (choice.layer, choice.head, choice.kind)
        for choice in read_statements(result).choices
        if choice.kind in kinds
    }
    at = {dim: result.variables[dim].values.tolist() for dim in ("layer", "kind")}
    values = {
        name: result.variables[f"kind_exemplar_{name}"].transpose(*GRID, "kind", "pick").values
        for name in FIELDS
    }
    found = []
    for layer, head, kind in sorted(listed):
        place = at["layer"].index(layer), head, at["kind"].index(kind)
        columns = {name: each[place].tolist() for name, each in values.items()}
        found += [
            {"layer": layer, "head": head, "rank": rank, "kind": kind, "random": pick == RANDOM}
            | {name: column[rank] for name, column in columns.items()}
            for rank, pick in enumerate(result.variables["pick"].values.tolist())
            if columns["sentence"][rank] >= 0
        ]
    return found


def _row(cell: dict[str, Any], setup: Setup, prepare: Prepare) -> dict[str, Any]:
    sentence, example = prepare(cell["sentence"])
    return cell | {
        "query_tag": _label(example, setup, "tag", cell["query"]),
        "key_tag": _label(example, setup, "tag", cell["key"]),
        "key_relation": _label(example, setup, "deprel", cell["key"]),
        "id": sentence.id,
        "document": sentence.document,
        "text": sentence.text,
        "tokens": list(display_text(setup.model.tokenizer, example.encoded.ids)),
    }


def _label(example: Example, setup: Setup, name: str, token: int) -> str | None:
    code = example.labels[name][token] if name in example.labels else NO_LABEL
    return None if code == NO_LABEL else setup.labels[name][code]
