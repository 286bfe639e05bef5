"""Differences of measures between two runs, with their intervals, from replicates of both.

Heads stand beside heads, by number or by partner, and layers beside layers at the same depth.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal

import numpy as np
import xarray as xr
from jaxtyping import Float

from headscope.results.compare.matching import Matching
from headscope.results.measure import GRID, Measure, heads_of, measure_of
from headscope.results.replicates import (
    ROUNDING,
    Estimate,
    are_counts,
    correlation,
    difference_interval,
    interval,
    p_of_interval,
    q_together,
    replicated,
    share_interval,
    standard_error,
)

Array = np.ndarray
By = Literal["auto", "index", "matched", "depth"]
Kind = Literal["heads", "layers"]
KINDS: tuple[Kind, ...] = ("heads", "layers")
Pair = tuple[str, str]  # what stands side by side: two heads, or two layers of the same depth


@dataclass(frozen=True)
class Sample:
    """A measure of one run at some heads or layers, and again without each group of documents."""

    replicates: Float[Array, "replicate place item"]  # one replicate alone has no error
    groups: Float[Array, "place item"]  # that have data
    weight: Float[Array, "place item"]  # the denominator
    counted: bool  # whether numerators and denominators are counts

    @property
    def value(self) -> Float[Array, "place item"]:
        return self.replicates[0]

    @property
    def error(self) -> Float[Array, "place item"]:
        """Standard error; NaN where there are no replicates."""
        if len(self.replicates) == 1:
            return np.full(self.value.shape, np.nan)
        return standard_error(self.replicates, self.groups)

    def take(self, places: Sequence[int], axis: int) -> "Sample":
        """At some heads or layers (axis −2), or of some labels (axis −1), in this order."""
        at = (..., list(places), *[slice(None)] * (-1 - axis))
        return Sample(self.replicates[at], self.groups[at], self.weight[at], self.counted)


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
    return Sample(values, groups.astype(float), weight, are_counts(x.values, y.values))


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
    left, right = (sample.take(each.tolist(), axis=-2) for each in (low, high))
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


@dataclass(frozen=True)
class MeasureDifference:
    """One measure at every pair, over the labels that both runs have."""

    measure: Measure
    labels: tuple[tuple[str, ...], ...]  # of the further dimensions, one for each item
    found: Difference  # pair item
    effect: np.ndarray  # difference in standard deviations over all pairs of both runs
    q: np.ndarray


@dataclass(frozen=True)
class Part:
    """All shared measures at the same pairs."""

    kind: Kind
    pairs: tuple[Pair, ...]
    measures: tuple[MeasureDifference, ...]


@dataclass(frozen=True)
class Sides:
    """Both results, and how their measures are held against each other."""

    a: xr.Dataset
    b: xr.Dataset
    same_texts: bool
    confidence: float
    names: Sequence[str]

    def part(self, kind: Kind, pairs: Sequence[Pair], first: "_View", second: "_View") -> Part:
        measures = (self._difference(name, first, second) for name in self.names)
        return Part(kind, tuple(pairs), tuple(one for one in measures if one is not None))

    def _difference(self, name: str, first: "_View", second: "_View") -> MeasureDifference | None:
        labels, left, right = _shared_labels(self.a, self.b, name)
        a, b = first.sample(name, left), second.sample(name, right)
        if a is None or b is None or not labels:
            return None
        measure = measure_of(self.b, name)
        found = differ(a, b, measure.unit == "share", self.same_texts, self.confidence)
        spread = _spread(np.concatenate([found.first, found.second]))
        with np.errstate(all="ignore"):
            effect = np.where(spread > 0, found.difference / spread, 0.0)
        return MeasureDifference(measure, labels, found, effect, np.full(effect.shape, np.nan))


@dataclass(frozen=True)
class _View:
    """The measures of one run at the pairs of a part."""

    result: xr.Dataset  # with replicates
    sums: xr.Dataset
    suffix: str = ""
    heads: tuple[int, ...] = ()  # places of the heads in layer × head
    depths: tuple[float, ...] = ()  # or places between layers

    def sample(self, name: str, items: Sequence[int]) -> Sample | None:
        whole = sample_of(self.result, self.sums, name, self.suffix)
        if whole is None:
            return None
        chosen = whole.take(self.heads, axis=-2) if self.heads else mixed(whole, self.depths)
        return chosen.take(items, axis=-1)


def make_part(way: By, sides: Sides, matching: Matching | None) -> Part:
    """All measures at the pairs that a way to compare gives."""
    views = [(replicated(side, sides.names), side) for side in (sides.a, sides.b)]
    if way == "depth":
        depths = _depths(sides.a.sizes["layer"], sides.b.sizes["layer"])
        first, second = (
            _View(result, side, "_by_layer", depths=places)
            for (result, side), places in zip(views, depths, strict=True)
        )
        return sides.part("layers", _layer_pairs(sides.a, sides.b, depths), first, second)
    heads = [heads_of(side) for side in (sides.a, sides.b)]
    if matching is None or way == "index":
        together = list(zip(*heads, strict=True))
    else:
        together = sorted((one.first, one.second) for one in matching.matches if one.is_good)
    if not together:
        return Part("heads", (), ())
    pairs = [(str(left), str(right)) for left, right in together]
    first, second = (
        _View(*view, heads=tuple(map(known.index, chosen)))
        for view, known, chosen in zip(views, heads, zip(*together, strict=True), strict=True)
    )
    return sides.part("heads", pairs, first, second)


def _depths(first: int, second: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Places between the layers of both networks at the depths of the one with fewer layers."""
    fewest = min(first, second)
    middles = [(layer + 0.5) / fewest for layer in range(fewest)]
    return tuple(
        tuple(min(max(depth * count - 0.5, 0.0), count - 1.0) for depth in middles)
        for count in (first, second)
    )  # pyright: ignore[reportReturnType]


def _layer_pairs(
    a: xr.Dataset, b: xr.Dataset, depths: tuple[tuple[float, ...], tuple[float, ...]]
) -> list[Pair]:
    names = [
        [_layer_name(place, side["layer"].values.tolist()) for place in places]
        for side, places in zip((a, b), depths, strict=True)
    ]
    return list(zip(*names, strict=True))


def _layer_name(place: float, layers: Sequence[int]) -> str:
    low, high = int(np.floor(place)), int(np.ceil(place))
    number = layers[low] + (place - low) * (layers[high] - layers[low])
    return f"layer {number:.3g}"


def _shared_labels(
    a: xr.Dataset, b: xr.Dataset, name: str
) -> tuple[tuple[tuple[str, ...], ...], list[int], list[int]]:
    """The labels of the items of both runs, and where each run has them."""
    tables = [_items(side[name]) for side in (a, b)]
    shared = [labels for labels in tables[0] if labels in tables[1]]
    dims = [str(dim) for dim in a[name].dims if dim not in GRID]
    shown = tuple(tuple(labels[sorted(dims).index(dim)] for dim in dims) for labels in shared)
    return shown, [tables[0][each] for each in shared], [tables[1][each] for each in shared]


def _items(array: xr.DataArray) -> dict[tuple[str, ...], int]:
    """Place of each item by its labels; dimensions in the order of their names."""
    further = sorted(str(dim) for dim in array.dims if dim not in GRID)
    labels = product(*([str(label) for label in array[dim].values] for dim in further))
    return {each: place for place, each in enumerate(labels)}


def _spread(values: np.ndarray) -> np.ndarray:
    """Standard deviation along the first axis over what is known; 0 where nothing is."""
    known = np.isfinite(values)
    filled, count = np.where(known, values, 0.0), np.maximum(known.sum(0), 1)
    apart = np.where(known, filled - filled.sum(0) / count, 0.0)
    return np.sqrt((apart**2).sum(0) / count)


def with_q(parts: Sequence[Part]) -> tuple[Part, ...]:
    """Corrected for everything that is listed, heads and layers together."""
    q = iter(q_together([one.found.p for part in parts for one in part.measures]))
    return tuple(
        replace(part, measures=tuple(replace(one, q=next(q)) for one in part.measures))
        for part in parts
    )
