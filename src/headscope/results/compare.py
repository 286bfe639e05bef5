"""Two runs side by side: what differs, head by head, and by more than chance.

The interval of a difference takes the two runs as independent and their errors as normal:
(b − a) ± z·√(se_a² + se_b²). Runs over the same texts are not independent; their interval is then
wider than it need be.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from scipy import stats

from headscope.errors import RunError
from headscope.files import replacing
from headscope.results.measure import GRID, Measure, measure_names, measure_of
from headscope.results.run import read_run
from headscope.results.slices import plain_label
from headscope.results.spreadsheet import to_csv


@dataclass(frozen=True)
class MeasureDifference:
    """One measure in both runs, over the labels that both have."""

    measure: Measure
    first: xr.DataArray  # layer head …
    second: xr.DataArray
    difference: xr.DataArray  # second − first
    low: xr.DataArray  # NaN where a run has no standard errors
    high: xr.DataArray
    effect: xr.DataArray  # difference in standard deviations over the heads of both runs

    @property
    def name(self) -> str:
        """The variable's name."""
        return self.measure.name


@dataclass(frozen=True)
class Comparison:
    """All measures that two runs share."""

    first: str
    second: str
    confidence: float
    measures: tuple[MeasureDifference, ...]
    notes: tuple[str, ...]  # what could not be compared, in sentences


@dataclass(frozen=True)
class Row:
    """One head and one slice of a measure, as a line of the table."""

    measure: str
    at: tuple[str, ...]  # labels of the further dimensions
    layer: int
    head: int
    first: float
    second: float
    difference: float
    low: float
    high: float
    effect: float
    title: str = ""  # of the measure and the slice, for readers

    @property
    def is_clear(self) -> bool:
        """Whether the interval leaves out zero."""
        return self.low > 0 or self.high < 0


def compare(first: str | Path, second: str | Path, *, confidence: float = 0.95) -> Comparison:
    """The differences of two run directories."""
    a, b = (read_run(each).data for each in (first, second))
    return compare_results(a, b, names=(str(first), str(second)), confidence=confidence)


def compare_results(
    a: xr.Dataset, b: xr.Dataset, *, names: tuple[str, str], confidence: float = 0.95
) -> Comparison:
    """The differences of two results of one study; refuses what cannot be held side by side."""
    _check_comparable(a, b, names)
    shared = [name for name in measure_names(a) if name in measure_names(b)]
    if not shared:
        raise RunError(f"{names[0]} and {names[1]} share no measure of heads.")
    z = float(stats.norm.ppf(0.5 + confidence / 2))
    measures = tuple(_difference(a, b, name, z) for name in shared)
    return Comparison(*names, confidence, measures, tuple(_notes(a, b, names, shared)))


def largest(comparison: Comparison, most: int | None = None) -> list[Row]:
    """The largest differences first; all of them if `most` is None.

    Large is what the interval guarantees: its end nearest to zero, in standard deviations over
    heads. So a rare label with a wild difference and a wide interval does not come first. What may
    be nothing, or has no interval, follows by the size of its effect.
    """
    sure = np.concatenate([_sure(one).ravel() for one in comparison.measures])
    effect = np.concatenate([np.abs(one.effect.values).ravel() for one in comparison.measures])
    sizes = [one.effect.size for one in comparison.measures]
    owner = np.repeat(np.arange(len(sizes)), sizes)
    first = np.concatenate([[0], np.cumsum(sizes)])
    order = np.lexsort((-np.nan_to_num(effect), -sure))[:most]
    rows = (_row(comparison.measures[owner[i]], int(i - first[owner[i]])) for i in order)
    return [row for row in rows if np.isfinite(row.difference)]


def clear_and_all(comparison: Comparison) -> tuple[int, int]:
    """How many intervals leave out zero, and how many intervals there are."""
    clear = sum(int(((one.low > 0) | (one.high < 0)).sum()) for one in comparison.measures)
    return clear, sum(int(np.isfinite(one.low).sum()) for one in comparison.measures)


def write_csv(comparison: Comparison, path: Path) -> int:
    """Write every row, largest effect first; the number of rows."""
    rows = largest(comparison)
    content = to_csv([field.name for field in fields(Row)], map(_cells, rows))
    try:
        with replacing(path) as temporary:
            temporary.write_bytes(content)
    except OSError as error:
        raise RunError(f"{path} cannot be written: {error.strerror}.") from error
    return len(rows)


def _check_comparable(a: xr.Dataset, b: xr.Dataset, names: tuple[str, str]) -> None:
    studies = [str(data.attrs.get("study", "unknown")) for data in (a, b)]
    if studies[0] != studies[1]:
        raise RunError(
            f"{names[0]} is a run of {studies[0]}, {names[1]} of {studies[1]}; "
            "compare runs of one study."
        )
    shapes = [" × ".join(str(data.sizes.get(dim, 0)) for dim in GRID) for data in (a, b)]
    if shapes[0] != shapes[1]:
        raise RunError(
            f"{names[0]} has {shapes[0]} layers × heads, {names[1]} {shapes[1]}: heads of "
            "different models have no partner. Compare models with the same layers and heads."
        )


def _difference(a: xr.Dataset, b: xr.Dataset, name: str, z: float) -> MeasureDifference:
    dims = (*GRID, *(dim for dim in a[name].dims if dim not in GRID))
    first, second = xr.align(a[name].transpose(*dims), b[name], join="inner")
    second = second.transpose(*dims)
    difference = second - first
    margin = z * np.hypot(_errors(a, name, first), _errors(b, name, second))
    spread = xr.concat([first, second], "run").std(("run", *GRID), skipna=True)
    effect = xr.where(spread > 0, difference / spread, 0.0).transpose(*dims)
    low, high = difference - margin, difference + margin
    return MeasureDifference(measure_of(b, name), first, second, difference, low, high, effect)


def _errors(data: xr.Dataset, name: str, like: xr.DataArray) -> xr.DataArray:
    if f"{name}_se" not in data:
        return xr.full_like(like, np.nan, dtype=float)
    return data[f"{name}_se"].reindex_like(like).transpose(*like.dims)


def _notes(
    a: xr.Dataset, b: xr.Dataset, names: tuple[str, str], shared: list[str]
) -> Iterator[str]:
    for data, name in ((a, names[0]), (b, names[1])):
        alone = sorted(set(measure_names(data)) - set(shared))
        if alone:
            yield f"Only {name} has {', '.join(alone)}."
    for dim in sorted({str(dim) for name in shared for dim in a[name].dims if dim not in GRID}):
        apart = sorted({*map(str, a[dim].values)} ^ {*map(str, b[dim].values)})
        if apart:
            yield f"Only one of the runs has {dim} {', '.join(apart)}."
    bare = [name for name in shared if not (f"{name}_se" in a and f"{name}_se" in b)]
    if bare:
        yield f"Without standard errors, hence without interval: {', '.join(bare)}."


def _sure(one: MeasureDifference) -> np.ndarray:
    """What the interval guarantees of the effect: 0 where it includes zero or does not exist."""
    least = np.maximum(one.low.values, -one.high.values)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.abs(one.effect.values / one.difference.values)
    return np.nan_to_num(np.maximum(least, 0.0) * share)


def _row(one: MeasureDifference, flat: int) -> Row:
    index = np.unravel_index(flat, one.difference.shape)
    layer, head, *rest = index
    labels = [
        str(one.difference[dim].values[i])
        for dim, i in zip(one.difference.dims[2:], rest, strict=True)
    ]
    value: dict[str, Any] = {
        name: float(getattr(one, name).values[index])
        for name in ("first", "second", "difference", "low", "high", "effect")
    }
    layers, heads = one.difference["layer"].values, one.difference["head"].values
    named = ", ".join(map(plain_label, labels))
    title = f"{one.measure.title}: {named}" if named else one.measure.title
    place = int(layers[layer]), int(heads[head])
    return Row(one.name, tuple(labels), *place, **value, title=title)


def _cells(row: Row) -> list[Any]:
    values = vars(row) | {"at": ", ".join(row.at)}
    return ["" if value != value else value for value in values.values()]
