"""Naming heads, reading their names, and finding the heads with the largest values."""

import re
from collections.abc import Iterable

import numpy as np
import xarray as xr

from headscope.errors import RunError

_NAME = re.compile(r"^\s*[Ll]?\s*\(?(\d+)\s*[Hh.,-]\s*(\d+)\)?\s*$")


def name_head(layer: int, head: int) -> str:
    """L4H11, counting from 0."""
    return f"L{layer}H{head}"


def name_both(layer: int, head: int) -> str:
    """L7H9 (paper 8-10): Clark et al. count layers and heads from 1."""
    return f"{name_head(layer, head)} (paper {layer + 1}-{head + 1})"


def read_head(name: str) -> tuple[int, int]:
    """Layer and head of L4H11, 4.11, 4-11 or (4, 11)."""
    found = _NAME.match(name)
    if found is None:
        raise RunError(f"{name!r} names no head; write it as L4H11 or 4.11, counting from 0.")
    return int(found[1]), int(found[2])


def check_heads(heads: Iterable[tuple[int, int]], result: xr.Dataset) -> list[tuple[int, int]]:
    """Refuse heads that the model does not have."""
    asked = list(heads)
    layers, count = result["layer"].values.tolist(), result.sizes["head"]
    for layer, head in asked:
        if layer not in layers or head >= count:
            raise RunError(
                f"{name_head(layer, head)} is no head of this model, whose heads are "
                f"{name_head(layers[0], 0)} to {name_head(layers[-1], count - 1)}."
            )
    return asked


def top_heads(values: xr.DataArray, count: int) -> list[tuple[int, int, float]]:
    """Layer, head and value of the heads with the largest values; unknown values come last."""
    flat = values.transpose("layer", "head").values
    order = np.argsort(-np.nan_to_num(flat, nan=-np.inf), axis=None, kind="stable")[:count]
    places = [np.unravel_index(place, flat.shape) for place in order]
    layers = values["layer"].values
    return [(int(layers[layer]), int(head), float(flat[layer, head])) for layer, head in places]
