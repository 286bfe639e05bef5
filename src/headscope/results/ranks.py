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


def share_of_top(values: xr.DataArray, count: int, layers: Sequence[int]) -> xr.DataArray:
    """Of the `count` heads with the largest values, the share that lies in some layers."""
    rows = values.transpose(..., "layer", "head")
    is_inside = np.isin(rows["layer"].values, layers)[:, None] & np.ones(rows.sizes["head"], bool)

    def share(array: np.ndarray) -> np.ndarray:
        flat = np.nan_to_num(array, nan=-np.inf).reshape(*array.shape[:-2], -1)
        top = np.argsort(-flat, axis=-1, kind="stable")[..., :count]
        return is_inside.ravel()[top].mean(-1)

    return xr.apply_ufunc(share, rows, input_core_dims=[["layer", "head"]])


def share_below(values: xr.DataArray, place: dict[str, int]) -> xr.DataArray:
    """The share of all values that are lower than the one at a place."""
    dims = [dim for dim in values.dims if dim != "replicate"]
    return (values < values.sel(place)).mean(dims)


def lead(by_layer: xr.DataArray, layers: Sequence[int]) -> xr.DataArray:
    """The largest value of some layers − the largest of the others."""
    inside, outside = by_layer.sel(layer=list(layers)), by_layer.drop_sel(layer=list(layers))
    return nth_largest(inside, 1) - nth_largest(outside, 1)
