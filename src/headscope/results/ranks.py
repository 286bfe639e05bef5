"""Heads by the size of a measure, and layers by their depth."""

import math
from collections.abc import Iterable, Sequence

import numpy as np
import xarray as xr
from jaxtyping import Bool

from headscope.errors import RunError
from headscope.head import Head, name_head


def check_heads(heads: Iterable[tuple[int, int]], result: xr.Dataset) -> list[Head]:
    """Refuse heads that the model does not have."""
    named = [Head(*head) for head in heads]
    layers, count = result["layer"].values.tolist(), result.sizes["head"]
    for layer, head in named:
        if layer not in layers or head >= count:
            raise RunError(
                f"{name_head(layer, head)} is no head of this model, whose heads are "
                f"{name_head(layers[0], 0)} to {name_head(layers[-1], count - 1)}."
            )
    return named


def top_heads(values: xr.DataArray, count: int) -> list[tuple[int, int, float]]:
    """Layer, head and value of the heads with the largest values; unknown values come last."""
    flat = values.transpose("layer", "head").values
    order = np.argsort(-np.nan_to_num(flat, nan=-np.inf), axis=None, kind="stable")[:count]
    places = [np.unravel_index(place, flat.shape) for place in order]
    layers = values["layer"].values
    return [(int(layers[layer]), int(head), float(flat[layer, head])) for layer, head in places]


def names_where(result: xr.Dataset, chosen: Bool[np.ndarray, "layer head"]) -> list[str]:
    """The names of some heads."""
    layers = result["layer"].values
    return [name_head(int(layers[layer]), int(head)) for layer, head in np.argwhere(chosen)]


def layers_between(layers: Sequence[int], first: float, last: float) -> list[int]:
    """Layers that lie between two fractions of the depth; at least one."""
    start = min(math.floor(first * len(layers) + 0.5), len(layers) - 1)
    return list(layers[start : max(start + 1, math.ceil(last * len(layers)))])


def name_layers(layers: Sequence[int]) -> str:
    """Consecutive layers in words: layer 0, layers 2–4."""
    return f"layer {layers[0]}" if len(layers) == 1 else f"layers {layers[0]}–{layers[-1]}"


def nth_largest(values: xr.DataArray, place: int) -> xr.DataArray:
    """The value at a place of the order, the largest first at 1; NaN where there are fewer."""
    dims = [dim for dim in values.dims if dim != "replicate"]

    def pick(array: np.ndarray) -> np.ndarray:
        flat = array.reshape(*array.shape[: array.ndim - len(dims)], -1)
        ordered = np.sort(np.nan_to_num(flat, nan=-np.inf), axis=-1)
        if place > ordered.shape[-1]:
            return np.full(ordered.shape[:-1], np.nan)
        return np.where(np.isfinite(ordered[..., -place]), ordered[..., -place], np.nan)

    return xr.apply_ufunc(pick, values, input_core_dims=[dims])


def majority_gap(values: xr.DataArray, count: int, layers: Sequence[int]) -> xr.DataArray:
    """Positive exactly if more than half of the `count` largest values lie in some layers.

    Of the n largest at least m lie inside if the m-th largest inside is larger than the
    (n − m + 1)-th largest outside; the difference of the two varies smoothly with the data.
    """
    need = count // 2 + 1
    inside, outside = values.sel(layer=list(layers)), values.drop_sel(layer=list(layers))
    return nth_largest(inside, need) - nth_largest(outside, count - need + 1)


def lead(by_layer: xr.DataArray, layers: Sequence[int]) -> xr.DataArray:
    """The largest value of some layers − the largest of the others."""
    return majority_gap(by_layer, 1, layers)
