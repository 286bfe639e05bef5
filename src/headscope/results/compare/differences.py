"""The differences of two runs as one table, with intervals from replicates of both.

Heads stand beside heads, by number or by partner, and layers beside layers at the same depth.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

import numpy as np
import xarray as xr
from jaxtyping import Float

from headscope.head import Head
from headscope.results.compare.matching import Matching
from headscope.results.measure import GRID, MARK, heads_of, measure_of, plain_label
from headscope.results.replicates import (
    ROUNDING,
    Estimate,
    are_counts,
    correlation,
    difference_interval,
    interval,
    p_of_interval,
    q_values,
    replicates_of,
    share_interval,
    standard_error,
)

Array = np.ndarray
By = Literal["auto", "index", "matched", "depth"]
Kind = Literal["heads", "layers"]
SMALL_Q = 0.05
COLUMNS = (
    "kind", "measure", "title", "spec", "at", "first_at", "second_at", "place",
    "first", "second", "difference", "low", "high", "p", "effect",
)  # fmt: skip


@dataclass(frozen=True)
class Side:
    """The heads or layers of one run that are compared, in order."""

    result: xr.Dataset
    names: tuple[str, ...]
    places: Float[Array, "place"]  # of heads in layer × head, or between layers
    suffix: str = ""  # "_by_layer" for layers


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


def difference_table(
    a: xr.Dataset,
    b: xr.Dataset,
    names: Sequence[str],
    ways: Sequence[By],
    matching: Matching | None,
    *,
    same_texts: bool,
    confidence: float,
) -> xr.Dataset:
    """Every shared measure at every pair and label in a row: COLUMNS, q and clear.

    q is p corrected for all rows, clear what stands then; `effect` is in standard deviations over
    all pairs of both runs.
    """
    tables: list[dict[str, Array]] = []
    for way in ways:
        first, second = _sides(way, a, b, matching)
        for name in names if first.names else ():
            table = _differences(first, second, name, same_texts, confidence)
            if table is not None:
                tables.append(table)
    columns = {
        name: np.concatenate([np.empty(0), *(table[name] for table in tables)]) for name in COLUMNS
    }
    q = q_values(columns["p"])
    table = xr.Dataset({name: ("row", values) for name, values in columns.items()})
    return table.assign(q=("row", q), clear=("row", q < SMALL_Q))


def _differences(
    first: Side, second: Side, name: str, same_texts: bool, confidence: float
) -> dict[str, Array] | None:
    """The columns of a measure, a pair's labels together; None where a run lacks it."""
    labels, items, other_items = _shared_labels(first.result, second.result, name)
    a, b = sample_of(first, name, items), sample_of(second, name, other_items)
    if a is None or b is None or not labels:
        return None
    measure = measure_of(second.result, name)
    titles = [", ".join(map(plain_label, label)) for label in labels]
    difference, low, high, p = differ(a, b, measure.unit == "share", same_texts, confidence)
    spread = np.ma.masked_invalid(np.concatenate([a.value, b.value])).std(0).filled(0.0)
    with np.errstate(all="ignore"):
        effect = np.where(spread > 0, difference / spread, 0.0)
    places = [
        left if left == right else f"{left} → {right}"
        for left, right in zip(first.names, second.names, strict=True)
    ]
    columns = {
        "kind": np.array("layers" if first.suffix else "heads", object),
        "measure": np.array(name, object),
        "title": _objects([f"{measure.title}: {at}" if at else measure.title for at in titles]),
        "spec": _objects([MARK.join((name, *label)) for label in labels]),
        "at": _objects(labels),
        "first_at": _objects(first.names)[:, None],
        "second_at": _objects(second.names)[:, None],
        "place": _objects(places)[:, None],
        "first": a.value,
        "second": b.value,
        "difference": difference,
        "low": low,
        "high": high,
        "p": p,
        "effect": effect,
    }
    return {
        column: np.broadcast_to(values, difference.shape).ravel()
        for column, values in columns.items()
    }


def _objects(cells: Sequence[object]) -> Array:
    return np.fromiter(cells, dtype=object, count=len(cells))


def sample_of(side: Side, name: str, items: Sequence[int]) -> Sample | None:
    """A measure at the places of a side, between layers by a straight line; None if it has none."""
    result, variable = side.result, name + side.suffix
    if variable not in result:
        return None
    grid = [dim for dim in GRID if dim in result[variable].dims]
    if f"{name}_numerator" not in result:
        values = _flat(result[variable].variable, grid)
        groups = weight = np.full(values.shape, np.nan)
        counted = False
    else:
        values = _flat(replicates_of(result, variable), grid)
        x, y = result[f"{name}_numerator"], result[f"{name}_denominator"]
        y = y.broadcast_like(x)
        counted = not side.suffix and are_counts(x.values, y.values)
        y = y.sum("head") if side.suffix else y
        groups = _flat((y > 0).sum("group").variable, grid).astype(float)
        weight = _flat(y.sum("group").variable, grid)
    low, high = np.floor(side.places).astype(int), np.ceil(side.places).astype(int)
    share = (side.places - low)[:, None]
    left, right = values[:, low][..., items], values[:, high][..., items]
    groups, weight = (
        np.minimum(sums[0, low], sums[0, high])[:, items] for sums in (groups, weight)
    )
    between = np.where(share > 0, (1 - share) * left + share * right, left)
    return Sample(between, groups, weight, counted)


def _flat(array: xr.Variable, grid: Sequence[str]) -> Float[Array, "replicate place item"]:
    """Replicates, heads or layers, and all further dimensions in the order of their names."""
    further = sorted(str(dim) for dim in array.dims if dim not in ("replicate", *grid))
    values = array.transpose(..., *grid, *further).values
    count = int(np.prod([array.sizes[dim] for dim in grid]))
    return values.reshape(array.sizes.get("replicate", 1), count, -1)


def differ(
    first: Sample, second: Sample, is_share: bool, same_texts: bool, confidence: float
) -> tuple[Array, Array, Array, Array]:
    """Second minus first, the ends of its interval, and the p that follows; NaN where unknown.

    Group by group over the same texts, else as independent.
    """
    value, other = first.value, second.value
    size = np.maximum(np.abs(value), np.abs(other))
    # Sums in another order end in other digits: values that are equal but for them are equal.
    difference = np.where(np.abs(other - value) <= ROUNDING * size, 0.0, other - value)
    a, b = first.error, second.error
    paired = same_texts and len(first.replicates) == len(second.replicates) > 1
    if paired:
        groups = np.minimum(first.groups, second.groups)
        error = standard_error(second.replicates - first.replicates, groups)
    else:
        with np.errstate(all="ignore"):  # degrees of freedom: Welch 1947, Satterthwaite 1946
            variances = a**4 / (first.groups - 1) + b**4 / (second.groups - 1)
            degrees = (a**2 + b**2) ** 2 / variances
        fewest = np.fmin(first.groups, second.groups)
        groups, error = np.where(np.isfinite(degrees), degrees + 1, fewest), np.hypot(a, b)
    if is_share:
        together = correlation(first.replicates, second.replicates) if paired else 0.0
        ends = _share(first, confidence), _share(second, confidence)
        low, high = difference_interval(*ends, together)
        low, high = np.maximum(low, -1.0), np.minimum(high, 1.0)
    else:
        low, high = interval(difference, error, groups, confidence=confidence)
    # Two runs that agree in every group leave nothing to estimate an error from.
    known = high - low > ROUNDING
    low, high = np.where(known, low, np.nan), np.where(known, high, np.nan)
    return difference, low, high, p_of_interval(difference, low, high, groups, confidence)


def _share(sample: Sample, confidence: float) -> Estimate:
    low, high = share_interval(
        sample.value, sample.error, sample.groups, sample.weight,
        counted=sample.counted, confidence=confidence,
    )  # fmt: skip
    return Estimate(sample.value, sample.error, low, high)


def _sides(way: By, a: xr.Dataset, b: xr.Dataset, matching: Matching | None) -> tuple[Side, Side]:
    """Both runs at the heads or layers that a way to compare lays side by side."""
    if way == "depth":
        fewest = min(a.sizes["layer"], b.sizes["layer"])
        depths = (np.arange(fewest) + 0.5) / fewest
        return _at_depths(a, depths), _at_depths(b, depths)
    heads, others = heads_of(a), heads_of(b)
    if matching is not None and way == "matched":
        good = sorted((match.first, match.second) for match in matching.matches if match.is_good)
        heads, others = [head for head, _ in good], [head for _, head in good]
    return _at_heads(a, heads), _at_heads(b, others)


def _at_heads(result: xr.Dataset, heads: Sequence[Head]) -> Side:
    places = {head: place for place, head in enumerate(heads_of(result))}
    return Side(result, tuple(map(str, heads)), np.array([places[head] for head in heads]))


def _at_depths(result: xr.Dataset, depths: Float[Array, "place"]) -> Side:
    count = result.sizes["layer"]
    places = np.clip(depths * count - 0.5, 0.0, count - 1.0)
    numbers = np.interp(places, np.arange(count), result["layer"].values)
    return Side(result, tuple(f"layer {x:.3g}" for x in numbers), places, "_by_layer")


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
