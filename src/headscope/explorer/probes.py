"""Heads as classifiers, in three tables: relations, coreference, trees (Clark et al. 2019)."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr

from headscope.explorer.baselines import baseline_of
from headscope.explorer.head_name import head_name
from headscope.explorer.jsonable import number
from headscope.explorer.measures import plain_label
from headscope.explorer.published import COREFERENCE, COREFERENCE_BASELINES, PARSING, RELATIONS
from headscope.explorer.refusal import RefusedError

Table = dict[str, Any]
RELATION_COLUMNS = (
    "relation", "words", "head", "direction", "accuracy", "low", "high", "held out", "baseline",
    "margin", "BERT-base",
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
    known = [row for row in rows if row is not None]
    yield {
        "title": "Table 1: the best head for each relation",
        "note": "Chosen and scored on the same words, with its 95 % interval; held out: chosen on "
        "one half of the sentences, scored on the other. The baseline is the best fixed offset.",
        "columns": list(RELATION_COLUMNS),
        "rows": sorted(known, key=lambda row: -(row[1] or 0)),  # of rare ones little is known
    }


def _relation(data: xr.Dataset, array: xr.DataArray, place: int) -> list[Any] | None:
    values = array.values[place]
    if not np.isfinite(values).any():
        return None
    relation = str(array["relation"].values[place])
    layer, head, direction = np.unravel_index(np.nanargmax(values), values.shape)
    way = str(array["direction"].values[direction])
    accuracy = float(values[layer, head, direction])
    found = baseline_of(data, "relation_accuracy", {"direction": way, "relation": relation})
    baseline = None if found is None else found.value
    at = {"relation": place, "layer": layer, "head": head, "direction": direction}
    return [
        relation,
        _count(data, relation),
        head_name(int(array["layer"].values[layer]), int(array["head"].values[head])),
        plain_label(way),
        accuracy,
        *_bounds(data, "relation_accuracy_ci", at),
        _held_out(data, place),
        baseline,
        None if baseline is None else accuracy - baseline,
        _share(RELATIONS.get(relation)),
    ]


def _bounds(data: xr.Dataset, name: str, at: dict[str, Any]) -> list[float | None]:
    """Low and high end of an interval, where the result has it."""
    if name not in data:
        return [None, None]
    ends = data[name].isel(at)
    return [number(ends.sel(bound=end)) for end in ("low", "high")]


def _held_out(data: xr.Dataset, relation: int) -> float | None:
    """Accuracy of heads chosen on one half and scored on the other, both ways together."""
    if "relation_correct" not in data:
        return None
    correct = data["relation_correct"].isel(relation=relation)
    correct = correct.transpose("half", "layer", "head", "direction").values
    scored = data["relation_scored"].isel(relation=relation).transpose("half", "direction").values
    right = total = 0.0
    for half in range(2):
        with np.errstate(invalid="ignore", divide="ignore"):
            shares = np.nan_to_num(correct[half] / scored[half], nan=-1.0)
        chosen = np.unravel_index(shares.argmax(), shares.shape)
        right += correct[1 - half][chosen]
        total += scored[1 - half][chosen[2]]
    return right / total if total else None


def _share(percent: float | None) -> float | None:
    return None if percent is None else percent / 100


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
        "note": "How often the most attended word is a true antecedent; the interval is of all.",
        "columns": ["system", "head", *mentions, "low", "high", "BERT-base, all"],
        "rows": rows,
    }


def _coreference_baselines(data: xr.Dataset, mentions: list[str]) -> Iterator[list[Any]]:
    if "coref_baseline" not in data:
        return
    for system in map(str, data["system"].values):
        own = data["coref_baseline"].sel(system=system)
        values = [number(own.sel(mention=mention)) for mention in mentions]
        published = COREFERENCE_BASELINES.get(system, {}).get("all")
        yield [plain_label(system), None, *values, None, None, _share(published)]


def _coreference_heads(data: xr.Dataset, mentions: list[str]) -> Iterator[list[Any]]:
    for place, candidates in enumerate(map(str, data["candidates"].values)):
        array = (
            data["coref_accuracy"].sel(candidates=candidates).transpose("layer", "head", "mention")
        )
        overall = array.sel(mention="all").values
        if not np.isfinite(overall).any():
            continue
        layer, head = np.unravel_index(np.nanargmax(overall), overall.shape)
        name = head_name(int(array["layer"].values[layer]), int(array["head"].values[head]))
        values = [number(value) for value in array.values[layer, head]]
        at = {"layer": layer, "head": head, "candidates": place, "mention": mentions.index("all")}
        bounds = _bounds(data, "coref_accuracy_ci", at)
        yield [f"best head among {candidates}", name, *values, *bounds, _share(COREFERENCE["all"])]


def _parsing(data: xr.Dataset) -> Iterator[Table]:
    if "parsing_uas" not in data:
        return
    vectors = data.attrs.get("parsing_vectors")
    yield {
        "title": "Table 3: attention probes",
        "note": "Unlabelled attachment score without punctuation, mean over seeds; 95 % interval."
        + (f" Word vectors: {vectors}." if vectors else ""),
        "columns": ["probe", "UAS", "low", "high", "sd over seeds", "BERT-base"],
        "rows": [_probe(data, place) for place in range(data.sizes["probe"])],
    }


def _probe(data: xr.Dataset, place: int) -> list[Any]:
    probe = str(data["probe"].values[place])
    spread = data.get("parsing_uas_sd")
    return [
        plain_label(probe),
        number(data["parsing_uas"].values[place]),
        *_bounds(data, "parsing_uas_ci", {"probe": place}),
        None if spread is None else number(spread.values[place]),
        _share(PARSING.get(probe)),
    ]
