"""Layers by relative depth, so that a claim about one model can be held against another."""

import math

import xarray as xr


def layers_between(result: xr.Dataset | xr.DataArray, first: float, last: float) -> list[int]:
    """Layers whose place lies between two fractions of the depth; at least one."""
    layers = result["layer"].values.tolist()
    start = min(math.floor(first * len(layers) + 0.5), len(layers) - 1)
    return layers[start : max(start + 1, math.ceil(last * len(layers)))]
