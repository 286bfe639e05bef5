"""Heads as classifiers, in three tables: relations, coreference, trees (Clark et al. 2019)."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr

from headscope.server.baselines import baseline_of
from headscope.server.head_name import head_name
from headscope.server.jsonable import number
from headscope.server.measures import plain_label
from headscope.server.published import COREFERENCE, COREFERENCE_BASELINES, PARSING, RELATIONS
from headscope.server.refusal import RefusedError

Table = dict[str, Any]
RELATION_COLUMNS = (
    "relation", "words", "head", "direction", "accuracy", "baseline", "margin", "published",
)  # fmt: skip


def probe_tables(data: xr.Dataset) -> list[Table]:
    """The tables that the result has numbers for, or a RefusedError."""
    tables = [table for build in (_relations, _coreference, _parsing) for table in build(data)]
    if not tables:
        raise RefusedError(
            409, "This run has no probes; `headscope study clark2019` on an annotated corpus has."
        )
    return tables


def _relations(data: xr.Dataset) -> Iterator[Table]:
    if "relation_accuracy" not in data:
        return
    array = data["relation_accuracy"].transpose("relation", "layer", "head", "direction")
    rows = [_relation(data, array, place) for place in range(array.sizes["relation"])]
    yield {
        "title": "Table 1: the best head for each relation",
        "note": "Chosen and scored on the same words; the baseline is the best fixed offset.",
        "columns": RELATION_COLUMNS,
        "rows": [row for row in rows if row is not None],
    }


def _relation(data: xr.Dataset, array: xr.DataArray, place: int) -> list[Any] | None:
    values = array.values[place]
    if not np.isfinite(values).any():
        return None
    relation = str(array["relation"].values[place])
    layer, head, direction = np.unravel_index(np.nanargmax(values), values.shape)
    way = str(array["direction"].values[direction])
    accuracy = float(values[layer, head, direction])
    baseline = baseline_of(data, "relation_accuracy", {"direction": way, "relation": relation})
    published = RELATIONS.get(relation)
    return [
        relation,
        _count(data, relation),
        head_name(int(array["layer"].values[layer]), int(array["head"].values[head])),
        plain_label(way),
        accuracy,
        None if baseline is None else baseline.value,
        None if baseline is None else accuracy - baseline.value,
        None if published is None else published / 100,
    ]


def _count(data: xr.Dataset, relation: str) -> int | None:
    if "relation_count" not in data:
        return None
    found = number(data["relation_count"].sel(relation=relation))
    return None if found is None else int(found)


def _coreference(data: xr.Dataset) -> Iterator[Table]:
    if "coref_accuracy" not in data:
        return
    mentions = [str(one) for one in data["mention"].values]
    rows = [*_coreference_baselines(data, mentions), *_coreference_heads(data, mentions)]
    yield {
        "title": "Table 2: coreference",
        "note": "How often the most attended word is a true antecedent. Published: head 5-4 of "
        "BERT-base.",
        "columns": ["system", "head", *mentions, "published, all"],
        "rows": rows,
    }


def _coreference_baselines(data: xr.Dataset, mentions: list[str]) -> Iterator[list[Any]]:
    if "coref_baseline" not in data:
        return
    for system in map(str, data["system"].values):
        own = data["coref_baseline"].sel(system=system)
        values = [number(own.sel(mention=mention)) for mention in mentions]
        published = COREFERENCE_BASELINES.get(system, {}).get("all")
        yield [plain_label(system), None, *values, None if published is None else published / 100]


def _coreference_heads(data: xr.Dataset, mentions: list[str]) -> Iterator[list[Any]]:
    for candidates in map(str, data["candidates"].values):
        array = (
            data["coref_accuracy"].sel(candidates=candidates).transpose("layer", "head", "mention")
        )
        overall = array.sel(mention="all").values if "all" in mentions else array.values[..., 0]
        if not np.isfinite(overall).any():
            continue
        layer, head = np.unravel_index(np.nanargmax(overall), overall.shape)
        name = head_name(int(array["layer"].values[layer]), int(array["head"].values[head]))
        values = [number(value) for value in array.values[layer, head]]
        yield [f"best head among {candidates}", name, *values, COREFERENCE["all"] / 100]


def _parsing(data: xr.Dataset) -> Iterator[Table]:
    if "parsing_uas" not in data:
        return
    errors = data.get("parsing_uas_se")
    rows = []
    for place, probe in enumerate(map(str, data["probe"].values)):
        published = PARSING.get(probe)
        error = None if errors is None else number(errors.values[place])
        value = number(data["parsing_uas"].values[place])
        rows.append(
            [plain_label(probe), value, error, None if published is None else published / 100]
        )
    yield {
        "title": "Table 3: attention probes",
        "note": "Unlabelled attachment score without punctuation.",
        "columns": ["probe", "UAS", "± standard error", "published"],
        "rows": rows,
    }
