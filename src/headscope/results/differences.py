"""The difference of a measure between two runs, with its interval, from replicates of both."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr
from jaxtyping import Float

from headscope.results.measure import GRID
from headscope.results.replicates import (
    ROUNDING,
    Estimate,
    correlation,
    difference_interval,
    interval,
    p_of_interval,
    share_interval,
    standard_error,
)

Array = np.ndarray


@dataclass(frozen=True)
class Sample:
    """A measure of one run at some heads or layers, and again without each group of documents."""

    replicates: Float[Array, "replicate place item"]  # one replicate alone has no error
    groups: Float[Array, "place item"]  # that have data
    weight: Float[Array, "place item"]  # the denominator
    counted: bool  # whether numerators and denominators are counts

    @property
    def value(self) -> Float[Array, "place item"]:
        """On all texts."""
        return self.replicates[0]

    @property
    def error(self) -> Float[Array, "place item"]:
        """Standard error; NaN where there are no replicates."""
        if len(self.replicates) == 1:
            return np.full(self.value.shape, np.nan)
        return standard_error(self.replicates, self.groups)

    def take(self, places: Sequence[int]) -> "Sample":
        """At some heads or layers, in this order."""
        chosen = list(places)
        return Sample(
            self.replicates[:, chosen], self.groups[chosen], self.weight[chosen], self.counted
        )

    def items(self, places: Sequence[int]) -> "Sample":
        """Some of the labels, in this order."""
        chosen = list(places)
        return Sample(
            self.replicates[..., chosen],
            self.groups[..., chosen],
            self.weight[..., chosen],
            self.counted,
        )


@dataclass(frozen=True)
class Difference:
    """Second minus first, with the interval and the p that follows from it; NaN where unknown."""

    first: Float[Array, "place item"]
    second: Float[Array, "place item"]
    difference: Float[Array, "place item"]
    low: Float[Array, "place item"]
    high: Float[Array, "place item"]
    p: Float[Array, "place item"]


def sample_of(
    replicates: xr.Dataset, result: xr.Dataset, name: str, suffix: str = ""
) -> Sample | None:
    """A measure over heads, or pooled over each layer; None where the run does not have it.

    `replicates` is what `replicated` makes of the result.
    """
    if name + suffix not in replicates:
        return None
    places = [dim for dim in GRID if dim in replicates[name + suffix].dims]
    values = _flat(replicates[name + suffix], places)
    if f"{name}_numerator" not in result:
        unknown = np.full(values.shape[1:], np.nan)
        return Sample(values[:1], unknown, unknown, counted=False)
    x, y = result[f"{name}_numerator"], result[f"{name}_denominator"]
    y = y.broadcast_like(x)
    if "head" not in places:
        x, y = x.sum("head"), y.sum("head")
    groups, weight = (_flat(each, places)[0] for each in ((y > 0).sum("group"), y.sum("group")))
    counted = bool(
        (x.values == np.round(x.values)).all() and (y.values == np.round(y.values)).all()
    )
    return Sample(values, groups.astype(float), weight, counted)


def _flat(array: xr.DataArray, places: Sequence[str]) -> Float[Array, "replicate place item"]:
    """Replicates, heads or layers, and all further dimensions in the order of their names."""
    if "replicate" not in array.dims:
        array = array.expand_dims("replicate")
    further = sorted(str(dim) for dim in array.dims if dim not in ("replicate", *places))
    values = array.transpose("replicate", *places, *further).values
    count = int(np.prod(values.shape[1 : 1 + len(places)]))
    return values.reshape(len(values), count, -1)


def mixed(sample: Sample, places: Sequence[float]) -> Sample:
    """Between layers, by a straight line."""
    low = np.floor(places).astype(int)
    high, share = np.ceil(places).astype(int), np.asarray(places) - low
    left, right = sample.take(low.tolist()), sample.take(high.tolist())
    share = share[:, None]
    between = (1 - share) * left.replicates + share * right.replicates
    return Sample(
        np.where(share > 0, between, left.replicates),
        np.minimum(left.groups, right.groups),
        np.minimum(left.weight, right.weight),
        counted=False,
    )


def differ(
    first: Sample, second: Sample, is_share: bool, same_texts: bool, confidence: float
) -> Difference:
    """Second minus first: group by group over the same texts, else as independent."""
    difference = _without_rounding(second.value - first.value, first.value, second.value)
    groups, error = _error(first, second, same_texts)
    if is_share:
        ends = _share_ends(first, second, same_texts, confidence)
    else:
        ends = interval(difference, error, groups, confidence=confidence)
    # Two runs that agree in every group leave nothing to estimate an error from.
    known = ends[1] - ends[0] > ROUNDING
    low, high = (np.where(known, end, np.nan) for end in ends)
    p = p_of_interval(difference, low, high, groups, confidence)
    return Difference(first.value, second.value, difference, low, high, p)


def _without_rounding(difference: Array, first: Array, second: Array) -> Array:
    """Sums in another order end in other digits: values that are equal but for them are equal."""
    size = np.maximum(np.abs(first), np.abs(second))
    return np.where(np.abs(difference) <= ROUNDING * size, 0.0, difference)


def _error(first: Sample, second: Sample, same_texts: bool) -> tuple[Array, Array]:
    """How many groups stand behind the standard error of the difference, and the error itself."""
    a, b = first.error, second.error
    if same_texts and len(first.replicates) == len(second.replicates) > 1:
        groups = np.minimum(first.groups, second.groups)
        return groups, standard_error(second.replicates - first.replicates, groups)
    with np.errstate(all="ignore"):  # degrees of freedom: Welch 1947, Satterthwaite 1946
        spread = a**4 / (first.groups - 1) + b**4 / (second.groups - 1)
        degrees = (a**2 + b**2) ** 2 / spread
    least = np.fmin(first.groups, second.groups)
    return np.where(np.isfinite(degrees), degrees + 1, least), np.hypot(a, b)


def _share_ends(
    first: Sample, second: Sample, same_texts: bool, confidence: float
) -> tuple[Array, Array]:
    together: Array | float = 0.0
    if same_texts and len(first.replicates) == len(second.replicates) > 1:
        together = correlation(first.replicates, second.replicates)
    a, b = (_share(each, confidence) for each in (first, second))
    low, high = difference_interval(a, b, together)
    return np.maximum(low, -1.0), np.minimum(high, 1.0)


def _share(sample: Sample, confidence: float) -> Estimate:
    low, high = share_interval(
        sample.value, sample.error, sample.groups, sample.weight,
        counted=sample.counted, confidence=confidence,
    )  # fmt: skip
    return Estimate(sample.value, sample.error, low, high)
