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


def sums_at(
    data: xr.Dataset, name: str, at: Mapping[str, Any] | None = None
) -> tuple[xr.DataArray, xr.DataArray]:
    """Numerator and denominator of a measure for every group, at some labels of its axes."""
    found = []
    for part in ("numerator", "denominator"):
        array = data[f"{name}_{part}"]
        found.append(array.sel({key: at[key] for key in at or {} if key in array.dims}))
    x, y = xr.broadcast(*found)
    x = x.transpose("group", ...)
    return x, y.transpose(*x.dims)


def hold_out(
    data: xr.Dataset, name: str, at: Mapping[str, Any] | None = None, *, sign: int = 1
) -> HeldOut:
    """The head with the largest ratio of a measure, or the smallest for sign −1, held out."""
    return hold_out_sums(*sums_at(data, name, at), sign=sign)


def hold_out_sums(x: xr.DataArray, y: xr.DataArray, *, sign: int = 1) -> HeldOut:
    """The largest ratio of sums over all axes but `group`, held out."""
    is_odd = np.arange(x.sizes["group"]) % 2 == 1
    places = choose(x[~is_odd], y[~is_odd], sign), choose(x[is_odd], y[is_odd], sign)
    return score(places, x, y)


def choose(x: xr.DataArray, y: xr.DataArray, sign: int = 1) -> Place | None:
    """Where the ratio of the sums over these groups is largest; of equals the first.

    None where the groups have no data to choose by.
    """
    above, below = x.sum("group", skipna=False), y.sum("group", skipna=False)
    with np.errstate(all="ignore"):
        ratio = (sign * above / below.where(below > 0)).fillna(-np.inf)
    if not np.isfinite(ratio.values).any():
        return None
    place = np.unravel_index(int(ratio.values.argmax()), ratio.shape)
    return {
        str(dim): ratio[dim].values[number].item() if dim in ratio.coords else int(number)
        for dim, number in zip(ratio.dims, place, strict=True)
    }


def score(places: Places, x: xr.DataArray, y: xr.DataArray) -> HeldOut:
    """The sums of each half of the groups at the place that the other half chose."""
    return HeldOut(places, cross(places, x), cross(places, y))


def cross(places: Places, sums: xr.DataArray) -> Float[np.ndarray, "group"]:
    """For every group the sum at the place that the other half chose; NaN if it chose none."""
    by_even, by_odd = (
        np.full(sums.sizes["group"], np.nan)
        if place is None
        else sums.sel({key: place[key] for key in place if key in sums.dims}).values
        for place in places
    )
    return np.where(np.arange(sums.sizes["group"]) % 2 == 1, by_even, by_odd).astype(float)
