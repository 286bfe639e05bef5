"""The score of the best head on documents that did not choose it.

A head picked from hundreds because it scores best is expected to score less on new data. So the
groups with even numbers choose a head that is scored on those with odd numbers, and the other way
round. The sums of both are added: what is left is the score of a head that was chosen elsewhere.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float, Int

from headscope.results.intervals import ANY, SHARE, Interval, find_interval
from headscope.results.measure import values_at
from headscope.results.replicates import aligned, informed, ratio_replicates

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

    def find(self, *, is_share: bool = True) -> Interval:
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
    above, below = aligned(x, y)
    dims = tuple(str(dim) for dim in x.dims if dim != "group")
    return GroupSums(dims, above, np.broadcast_to(below, above.shape))


def hold_out(
    data: xr.Dataset, name: str, at: Mapping[str, Any] | None = None, *, sign: int = 1
) -> HeldOut:
    """The head with the largest ratio of a measure, or the smallest for sign −1, held out."""
    sums = sums_at(data, name, at)
    x, y = (each.reshape(len(each), -1, 1) for each in (sums.numerator, sums.denominator))
    chosen, above, below = score_elsewhere(x, y, sign)
    shape = sums.numerator.shape[1:]
    by_even, by_odd = (_labels(data, sums.dims, _unravel(place, shape)) for (place,) in chosen)
    return HeldOut((by_even, by_odd), above[:, 0], below[:, 0])


def hold_out_each(data: xr.Dataset, name: str, axis: str) -> GroupSums:
    """For every label of an axis the head with the largest ratio of a measure, held out."""
    sums = sums_at(data, name)
    last = 1 + sums.dims.index(axis)
    groups, labels = len(sums.numerator), sums.numerator.shape[last]
    x, y = (
        np.moveaxis(each, last, -1).reshape(groups, -1, labels)
        for each in (sums.numerator, sums.denominator)
    )
    _, above, below = score_elsewhere(x, y)
    return GroupSums((axis,), above, below)


def score_elsewhere(
    x: Float[np.ndarray, "group place item"],
    y: Float[np.ndarray, "group place item"],
    sign: int = 1,
) -> tuple[
    Int[np.ndarray, "half item"],
    Float[np.ndarray, "group item"],
    Float[np.ndarray, "group item"],
]:
    """For every item the places that both halves of the groups choose, and the sums of every group
    at the place that the other half chose; −1 and NaN where a half has nothing to choose by.
    """
    chosen = np.stack([_choose(x[half::2], y[half::2], sign) for half in range(2)])
    # Item by item in memory, so that each is added up as it would be alone.
    above, below = (np.full((x.shape[2], len(x)), np.nan).T for _ in range(2))
    for half, place in enumerate(chosen):
        others, item = slice(1 - half, None, 2), np.flatnonzero(place >= 0)
        for scored, sums in ((above, x), (below, y)):
            scored[others, item] = sums[others][:, place[item], item]
    return chosen, above, below


def _choose(
    x: Float[np.ndarray, "group place item"], y: Float[np.ndarray, "group place item"], sign: int
) -> Int[np.ndarray, "item"]:
    """The place of every item where the ratio is largest; −1 where there is no ratio."""
    above, below = x.sum(0), y.sum(0)
    with np.errstate(all="ignore"):
        ratio = np.where(below > 0, sign * above / below, np.nan)
    known = np.isfinite(ratio)
    best = np.where(np.isnan(ratio), -np.inf, ratio).argmax(0)
    return np.where(known.any(0), best, -1)


def _unravel(place: int, shape: tuple[int, ...]) -> tuple[int, ...] | None:
    if place < 0:
        return None
    return tuple(int(number) for number in np.unravel_index(place, shape))


def _labels(data: xr.Dataset, dims: tuple[str, ...], place: tuple[int, ...] | None) -> Place | None:
    """The labels of a place along some axes."""
    if place is None:
        return None
    return {
        dim: data.variables[dim].values[number].item()
        for dim, number in zip(dims, place, strict=True)
    }
