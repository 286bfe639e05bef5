"""The best of many heads, chosen on half of the groups of documents and scored on the other.

A head picked from hundreds because it scores best is expected to score less on new data. So the
groups with even numbers choose a head that is scored on those with odd numbers, and the other way
round. The sums of both are added: what is left is the score of a head that was chosen elsewhere.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from headscope.results.findings import ANY, SHARE, Found, find_interval
from headscope.results.replicates import informed, ratio_replicates
from headscope.results.slices import values_at

Place = dict[str, Any]  # the label of every axis that was chosen from
Places = tuple[Place | None, Place | None]  # chosen by the even, by the odd groups


@dataclass(frozen=True)
class HeldOut:
    """Sums of every group for the head that the other half of the groups chose."""

    places: Places
    numerator: Float[np.ndarray, "group"]
    denominator: Float[np.ndarray, "group"]

    @property
    def replicates(self) -> xr.DataArray:
        """The score on everything, and without each group, the choices left as they are."""
        return ratio_over_groups(self.numerator, self.denominator)

    def find(self, *, is_share: bool = True) -> Found:
        """The score with its interval."""
        return find_interval(self.replicates, 0, SHARE if is_share else ANY)


def ratio_over_groups(
    x: Float[np.ndarray, "group"], y: Float[np.ndarray, "group"], *, is_counted: bool = False
) -> xr.DataArray:
    """Σx / Σy on everything and without each group, with what its interval is to know of it."""
    known = {"groups": int(informed(y)), "weight": float(y.sum()), "is_counted": is_counted}
    return xr.DataArray(ratio_replicates(x, y), dims="replicate", attrs=known)


@dataclass(frozen=True)
class GroupSums:
    """Numerator and denominator of a measure for every group, at some labels of its axes."""

    dims: tuple[str, ...]  # after the groups
    numerator: Float[np.ndarray, "group *item"]
    denominator: Float[np.ndarray, "group *item"]


def sums_at(data: xr.Dataset, name: str, at: Mapping[str, Any] | None = None) -> GroupSums:
    """The sums of a measure; the denominator in the shape of the numerator."""
    x, y = (values_at(data, f"{name}_{part}", at or {}) for part in ("numerator", "denominator"))
    x = x.transpose("group", ...)
    y = y.transpose(*(dim for dim in x.dims if dim in y.dims))
    shape = [size if dim in y.dims else 1 for dim, size in zip(x.dims, x.shape, strict=True)]
    wide = np.broadcast_to(y.values.reshape(shape), x.shape)
    return GroupSums(tuple(map(str, x.dims[1:])), x.values, wide)


def hold_out(
    data: xr.Dataset, name: str, at: Mapping[str, Any] | None = None, *, sign: int = 1
) -> HeldOut:
    """The head with the largest ratio of a measure, or the smallest for sign −1, held out."""
    sums = sums_at(data, name, at)
    x, y = sums.numerator, sums.denominator
    chosen = [choose(x[half::2], y[half::2], sign) for half in range(2)]
    above, below = np.full(len(x), np.nan), np.full(len(x), np.nan)
    for half, place in enumerate(chosen):
        if place is not None:
            others = slice(1 - half, None, 2)
            above[others], below[others] = x[(others, *place)], y[(others, *place)]
    by_even, by_odd = (_labels(data, sums.dims, place) for place in chosen)
    return HeldOut((by_even, by_odd), above, below)


def choose(
    x: Float[np.ndarray, "group *item"], y: Float[np.ndarray, "group *item"], sign: int = 1
) -> tuple[int, ...] | None:
    """Where the ratio of the sums over these groups is largest; of equals the first.

    None where the groups have no data to choose by.
    """
    above, below = x.sum(0), y.sum(0)
    with np.errstate(all="ignore"):
        ratio = np.where(below > 0, sign * above / below, np.nan)
    if not np.isfinite(ratio).any():
        return None
    place = np.unravel_index(int(np.nanargmax(ratio)), ratio.shape)
    return tuple(int(number) for number in place)


def _labels(data: xr.Dataset, dims: tuple[str, ...], place: tuple[int, ...] | None) -> Place | None:
    """The labels of a place along some axes."""
    if place is None:
        return None
    return {
        dim: data.variables[dim].values[number].item()
        for dim, number in zip(dims, place, strict=True)
    }
