"""Heads of a result: those that exist, those with the largest values, and layers by depth."""

import math
from collections.abc import Iterable

import numpy as np
import xarray as xr

from headscope.errors import RunError
from headscope.heads import Head, name_head


def check_heads(heads: Iterable[tuple[int, int]], result: xr.Dataset) -> list[Head]:
    """Refuse heads that the model does not have."""
    asked = [Head(*each) for each in heads]
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


def layers_between(result: xr.Dataset | xr.DataArray, first: float, last: float) -> list[int]:
    """Layers whose place lies between two fractions of the depth; at least one."""
    layers = result["layer"].values.tolist()
    start = min(math.floor(first * len(layers) + 0.5), len(layers) - 1)
    return layers[start : max(start + 1, math.ceil(last * len(layers)))]
