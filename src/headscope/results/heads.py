"""Heads of a result: those that exist, those with the largest values, and layers by depth.

What each head of a finished run looks at, as a table; chosen by role or layer.
"""

import math
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Bool

from headscope.errors import RunError
from headscope.head import Head, name_head
from headscope.results.findings import NotMeasured
from headscope.results.roles import HeadRole, HeadRoles
from headscope.results.run import read_finished
from headscope.results.slices import MARK
from headscope.results.statements import read_statements

COLUMNS = ["head", "layer", "number", "role", "kind", "slice", "value", "low", "high", "baseline",
           "strength", "q", "share", "sentence"]  # fmt: skip


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


def names_where(result: xr.Dataset, chosen: Bool[np.ndarray, "layer head"]) -> list[str]:
    """The names of some heads."""
    layers = result["layer"].values
    return [name_head(int(layers[layer]), int(head)) for layer, head in np.argwhere(chosen)]


def layers_between(result: xr.Dataset | xr.DataArray, first: float, last: float) -> list[int]:
    """Layers whose place lies between two fractions of the depth; at least one."""
    layers = result["layer"].values.tolist()
    start = min(math.floor(first * len(layers) + 0.5), len(layers) - 1)
    return layers[start : max(start + 1, math.ceil(last * len(layers)))]


def split_layers(
    result: xr.Dataset | xr.DataArray, first: float, last: float, few: str
) -> tuple[list[int], list[int]]:
    """Layers between two fractions of the depth, and all others, of which there must be some."""
    inside = layers_between(result, first, last)
    rest = [layer for layer in result["layer"].values.tolist() if layer not in inside]
    if not rest:
        raise NotMeasured(few)
    return inside, rest


def name_layers(layers: list[int]) -> str:
    """Consecutive layers in words: layer 0, layers 2–4."""
    return f"layer {layers[0]}" if len(layers) == 1 else f"layers {layers[0]}–{layers[-1]}"


def whole(values: xr.DataArray) -> xr.DataArray:
    """A measure on everything, of one that may also be known without each group."""
    return values.isel(replicate=0) if "replicate" in values.dims else values


def known(values: xr.DataArray, why: str) -> xr.DataArray:
    """The values; where they are not known on everything it is not measured, for that reason."""
    if not np.isfinite(whole(values)):
        raise NotMeasured(why)
    return values


def nth_largest(values: xr.DataArray, place: int) -> xr.DataArray:
    """The value at a place of the order, the largest first at 1; NaN where there are fewer."""
    dims = [dim for dim in values.dims if dim != "replicate"]

    def pick(array: np.ndarray) -> np.ndarray:
        flat = array.reshape(*array.shape[: array.ndim - len(dims)], -1)
        known = np.sort(np.nan_to_num(flat, nan=-np.inf), axis=-1)
        found = (
            known[..., -place] if place <= known.shape[-1] else np.full(known.shape[:-1], np.nan)
        )
        return np.where(np.isfinite(found), found, np.nan)

    return xr.apply_ufunc(pick, values, input_core_dims=[dims])


def majority_gap(values: xr.DataArray, count: int, layers: list[int]) -> xr.DataArray:
    """Positive exactly if more than half of the `count` largest values lie in some layers.

    Of the n largest at least m lie inside if the m-th largest inside is larger than the
    (n − m + 1)-th largest outside; the difference of the two varies smoothly with the data.
    """
    need = count // 2 + 1
    inside, outside = values.sel(layer=layers), values.drop_sel(layer=layers)
    return nth_largest(inside, need) - nth_largest(outside, count - need + 1)


def lead(by_layer: xr.DataArray, layers: list[int]) -> xr.DataArray:
    """The largest value of some layers − the largest of the others."""
    return majority_gap(by_layer, 1, layers)


def heads(run: str | Path, *, role: str | None = None, layer: int | None = None) -> pd.DataFrame:
    """What each head of a finished run looks at, as a table: a row for each head and role.

    A head without a clear role has one row, without a role. `role` keeps the roles whose kind,
    words or slice has this text in it, `layer` the heads of one layer.
    """
    found = choose(read_statements(read_finished(run).data).heads, role=role, layer=layer)
    return pd.DataFrame([row for one in found for row in _rows(one, role)], columns=COLUMNS)


def choose(
    found: Iterable[HeadRoles], *, role: str | None = None, layer: int | None = None
) -> list[HeadRoles]:
    """The heads of a layer, and those with a role; a layer or role that none has is refused."""
    every = list(found)
    kept = [one for one in every if layer in (None, one.layer)]
    if every and not kept:
        layers = sorted({one.layer for one in every})
        raise RunError(f"There is no layer {layer}; there are {layers[0]} to {layers[-1]}.")
    kept = [one for one in kept if role is None or any(fits(each, role) for each in one.roles)]
    if every and not kept:
        kinds = sorted({each.kind for one in every for each in one.roles})
        raise RunError(
            f"No head has a role {role!r}; the kinds in this run are {', '.join(kinds) or 'none'}."
        )
    return kept


def fits(role: HeadRole, text: str) -> bool:
    """Whether a role is of this kind, or has this label or these words."""
    labels = role.spec.lower().split(MARK)
    asked = text.lower()
    return asked == role.kind or asked in labels or asked in role.words.lower()


def _rows(one: HeadRoles, asked: str | None) -> Iterator[dict[str, object]]:
    about = {"head": one.name, "layer": one.layer, "number": one.head, "share": one.share,
             "sentence": one.sentence}  # fmt: skip
    for each in one.roles:
        if asked is None or fits(each, asked):
            numbers = {name: getattr(each, name) for name in COLUMNS[6:12]}
            yield about | {"role": each.words, "kind": each.kind, "slice": each.spec} | numbers
    if not one.roles:
        yield about
