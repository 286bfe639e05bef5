"""The tables of vig2019 besides the exemplars: heads, layers, tags and relations in numbers."""

from typing import Any

import numpy as np
import xarray as xr

from headscope.head import name_head
from headscope.results.columns import Column, columns_of, head_cells
from headscope.results.replicates import replicated
from headscope.results.slices import values_at
from headscope.results.statements import Tabulation
from headscope.studies.vig2019.choices import best_and_mean, factor

COLUMNS = (
    Column("null_share"),
    Column("dependency_alignment", at={"form": "either"}),
    Column("dependency_expected", at={"form": "either"}),
    Column("variability"),
    Column("distance"),
    Column("entropy"),
)
HELD_OUT = (
    "Held out: chosen on half of the documents and scored on the other, with 95 % intervals; "
    "factor: best share / mean share."
)


def head_rows(result: xr.Dataset) -> list[dict[str, Any]]:
    """One row per head with every value and its standard error."""
    columns = columns_of(result, COLUMNS)
    return [
        {"head": name_head(layer, head)} | head_cells(result, columns, layer, head)
        for layer in result["layer"].values.tolist()
        for head in result["head"].values.tolist()
    ]


def layer_rows(result: xr.Dataset) -> list[dict[str, Any]]:
    """One row per layer: pooled values and means of head values."""
    columns = [
        each for each in columns_of(result, COLUMNS) if f"{each.variable}_by_layer" in result
    ]
    return [
        {"layer": layer}
        | {key: value for each in columns for key, value in _layer_cells(result, each, layer)}
        for layer in result["layer"].values.tolist()
    ]


def _layer_cells(result: xr.Dataset, column: Column, layer: int) -> list[tuple[str, float]]:
    names = [f"{column.variable}{suffix}" for suffix in ("_by_layer", "_by_layer_se", "_head_mean")]
    known = [name for name in names if name in result]
    place = {"layer": layer, **column.at}
    return [(name, float(values_at(result, name, place))) for name in known]


def tag_rows(result: xr.Dataset) -> list[dict[str, Any]]:
    """One row per tag: frequency, mean shares, and the most specialised heads."""
    data = replicated(result, ("pos_to", "pos_from"))
    order = np.argsort(-result["tag_frequency"].values, kind="stable")
    return [_tag_row(data, tag) for tag in result["tag"].values[order].tolist()]


def _tag_row(data: xr.Dataset, tag: str) -> dict[str, Any]:
    frequency = float(values_at(data, "tag_frequency", {"tag": tag}))
    row: dict[str, Any] = {"tag": tag, "frequency": frequency}
    for variable, name in (("pos_to", "to"), ("pos_from", "from")):
        cells = _best_cells(data, variable, {"tag": tag})
        row |= {f"{name}_{key}": value for key, value in cells.items()}
    return row


def relation_rows(result: xr.Dataset) -> list[dict[str, Any]]:
    """One row per relation: frequency, mean share, and the most specialised head."""
    data = replicated(result, ("deprel_to",))
    order = np.argsort(-result["deprel_frequency"].values, kind="stable")
    return [
        {
            "relation": label,
            "frequency": float(values_at(data, "deprel_frequency", {"deprel": label})),
            **_best_cells(data, "deprel_to", {"deprel": label}),
        }
        for label in result["deprel"].values[order].tolist()
    ]


def _best_cells(data: xr.Dataset, variable: str, at: dict[str, str]) -> dict[str, Any]:
    """The head that pays most to a label: here, and of the documents that did not choose it."""
    layer, head, best, mean = best_and_mean(data, variable, at)
    held_out = factor(data, variable, at)
    elsewhere, times = held_out.held_out.find(), held_out.found
    return {
        "mean": mean,
        "even": float(values_at(data, f"{variable}_even", at)),
        "best": best,
        "head": name_head(layer, head),
        "factor": best / mean if mean > 0 else np.nan,
        "held_out": elsewhere.value,
        "low": elsewhere.low,
        "high": elsewhere.high,
        "held_out_factor": times.value,
        "factor_low": times.low,
        "factor_high": times.high,
    }


TABLES = (
    Tabulation(
        "tags",
        "Parts of speech",
        "How often each tag occurs, what heads pay to and from it on average, what even attention "
        "would pay, and the head that pays most. " + HELD_OUT,
        ("pos_to", "pos_from"),
        tag_rows,
    ),
    Tabulation(
        "relations",
        "Relations",
        "How often each relation occurs, what its tokens receive on average and from even "
        "attention, and the head that pays most. " + HELD_OUT,
        ("deprel_to",),
        relation_rows,
    ),
    Tabulation(
        "layers",
        "Layers",
        "Values pooled over the heads of each layer with standard errors, and plain means of the "
        "head values.",
        (),
        layer_rows,
    ),
    Tabulation("heads", "Heads", "Every head with its standard errors.", (), head_rows),
)
