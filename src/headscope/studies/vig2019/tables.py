"""The tables of vig2019 besides the exemplars: heads, layers, tags and relations in numbers."""

from typing import Any

import numpy as np
import xarray as xr

from headscope.heads import name_head
from headscope.results.heads import top_heads
from headscope.studies.study import Table

_OF_HEADS = ("null_share", "dependency_alignment", "variability", "distance", "entropy")


def head_rows(result: xr.Dataset) -> list[dict[str, Any]]:
    """One row per head with every value and its standard error."""
    known = [name for name in _OF_HEADS if name in result]
    return [
        {"head": name_head(int(layer), int(head))}
        | {key: value for name in known for key, value in _cell(result, name, layer, head)}
        for layer in result["layer"].values
        for head in result["head"].values
    ]


def _cell(result: xr.Dataset, name: str, layer: int, head: int) -> list[tuple[str, float]]:
    place: dict[str, Any] = {"layer": layer, "head": head}
    if name == "dependency_alignment":
        place["form"] = "either"
    return [(key, float(result[key].sel(place))) for key in (name, f"{name}_se")]


def layer_rows(result: xr.Dataset) -> list[dict[str, Any]]:
    """One row per layer: pooled values and means of head values."""
    known = [name for name in _OF_HEADS if f"{name}_by_layer" in result]
    return [
        {"layer": int(layer)}
        | dict(cell for name in known for cell in _layer_cell(result, name, layer))
        for layer in result["layer"].values
    ]


def _layer_cell(result: xr.Dataset, name: str, layer: int) -> list[tuple[str, float]]:
    place: dict[str, Any] = {"layer": layer}
    if name == "dependency_alignment":
        place["form"] = "either"
    suffixes = ("_by_layer", "_by_layer_se", "_head_mean")
    return [(f"{name}{suffix}", float(result[f"{name}{suffix}"].sel(place))) for suffix in suffixes]


def tag_rows(result: xr.Dataset) -> list[dict[str, Any]]:
    """One row per tag: frequency, mean shares, and the most specialised heads."""
    order = np.argsort(-result["tag_frequency"].values, kind="stable")
    return [_tag_row(result, tag) for tag in result["tag"].values[order]]


def _tag_row(result: xr.Dataset, tag: str) -> dict[str, Any]:
    row: dict[str, Any] = {"tag": tag, "frequency": float(result["tag_frequency"].sel(tag=tag))}
    for variable, name in (("pos_to", "to"), ("pos_from", "from")):
        shares = result[variable].sel(tag=tag)
        layer, head, best = top_heads(shares, 1)[0]
        mean = float(shares.mean())
        row |= {
            f"{name}_mean": mean,
            f"{name}_even": float(result[f"{variable}_even"].sel(tag=tag)),
            f"{name}_best": best,
            f"{name}_head": name_head(layer, head),
            f"{name}_factor": best / mean if mean > 0 else np.nan,
        }
    return row


def relation_rows(result: xr.Dataset) -> list[dict[str, Any]]:
    """One row per relation: frequency, mean share, and the most specialised head."""
    order = np.argsort(-result["deprel_frequency"].values, kind="stable")
    return [_relation_row(result, label) for label in result["deprel"].values[order]]


def _relation_row(result: xr.Dataset, label: str) -> dict[str, Any]:
    shares = result["deprel_to"].sel(deprel=label)
    layer, head, best = top_heads(shares, 1)[0]
    mean = float(shares.mean())
    return {
        "relation": label,
        "frequency": float(result["deprel_frequency"].sel(deprel=label)),
        "mean": mean,
        "even": float(result["deprel_to_even"].sel(deprel=label)),
        "best": best,
        "head": name_head(layer, head),
        "factor": best / mean if mean > 0 else np.nan,
    }


TABLES = (
    Table(
        "tags",
        "Parts of speech",
        "How often each tag occurs, what heads pay to and from it on average, what even attention "
        "would pay, and the head that pays most.",
        ("pos_to", "pos_from"),
        tag_rows,
    ),
    Table(
        "relations",
        "Relations",
        "How often each relation occurs, what its tokens receive on average and from even "
        "attention, and the head that pays most.",
        ("deprel_to",),
        relation_rows,
    ),
    Table(
        "layers",
        "Layers",
        "Values pooled over the heads of each layer with standard errors, and plain means of the "
        "head values.",
        (),
        layer_rows,
    ),
    Table("heads", "Heads", "Every head with its standard errors.", (), head_rows),
)
