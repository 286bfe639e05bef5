"""Claims of a paper held against a result, and the heads and layers that they are about.

A finding declares a statistic and a threshold. The statistic is computed with every group of
documents left out in turn, which gives its interval; yes, no and unclear follow from the interval
and nothing else. What a model, a corpus or too short a training cannot show is not measured.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float, Int

from headscope.errors import RunError
from headscope.head import Head, name_head
from headscope.results.replicates import (
    ROUNDING,
    groups_of,
    interval,
    share_interval,
    standard_error,
)
from headscope.results.tables import Interval

Verdict = Literal["yes", "no", "unclear", "not measured", "for comparison"]
SHARE = (0.0, 1.0)
DIFFERENCE = CORRELATION = (-1.0, 1.0)  # of two shares; of two measures
ANY = (-np.inf, np.inf)
PERCENT = "%"  # a unit in which shares are written
ONE_GROUP = "all documents are in one group, so the error is unknown"
NO_SPREAD = "it is the same without any group of documents, so the error is unknown"
Values = TypeVar("Values", xr.DataArray, xr.Variable)


class NotMeasured(Exception):  # noqa: N818  no error: it is an answer
    """Raised by a statistic that a result cannot have; the text says why."""


@dataclass(frozen=True)
class Judgement:
    """A number with its interval, in words, and what follows from it."""

    words: str
    verdict: Verdict
    value: float = np.nan
    low: float = np.nan
    high: float = np.nan


@dataclass(frozen=True)
class Found:
    """A statistic with its 95 % interval, NaN where its error is unknown."""

    value: float
    low: float = np.nan
    high: float = np.nan
    trouble: str = ""  # why there is no interval

    @property
    def cell(self) -> Interval:
        """The value with its interval, as a cell of a table."""
        return Interval(self.value, self.low, self.high)


@dataclass(frozen=True)
class Finding:
    """One claim, what the paper reports, and how a result is judged.

    `statistic` gets the result with all measures along `replicate` and gives a number for each of
    them. Its attributes may say how many `groups` have data for it, if not those of `needs`, and of
    a share the `weight` that it is a share of, and whether that `is_counted` in words.
    """

    claim: str
    published: str
    rule: str
    needs: tuple[str, ...]
    statistic: Callable[[xr.Dataset], xr.DataArray | xr.Variable]
    threshold: float | None = 0.0  # None where nothing is judged
    more: Literal["above", "below"] = "above"  # the side of the threshold that the claim is on
    unit: str = ""
    is_signed: bool = False  # whether the number is a difference, written with its sign
    range: tuple[float, float] = ANY
    words: Callable[[xr.Dataset, Found], str] = lambda data, found: ""


def judge(finding: Finding, data: xr.Dataset) -> Judgement:
    """Hold a claim against a result with replicates; what it lacks is said, not guessed."""
    missing = [name for name in finding.needs if name not in data]
    if missing:
        return Judgement(f"the result has no {missing[0]}", "not measured")
    try:
        replicates = finding.statistic(data)
    except NotMeasured as reason:
        return Judgement(str(reason), "not measured")
    found = find_interval(replicates, _groups(data, finding.needs), finding.range)
    if not np.isfinite(found.value):
        return Judgement("nothing to compute it from", "not measured")
    verdict = _decide(found, finding.threshold, finding.more)
    return Judgement(
        _say(finding, data, found, verdict), verdict, found.value, found.low, found.high
    )


def find_interval(
    replicates: xr.DataArray | xr.Variable, groups: int, limits: tuple[float, float] = ANY
) -> Found:
    """A statistic with its interval, from its values with and without each group."""
    values = np.atleast_1d(replicates.values).astype(float)
    if "replicate" not in replicates.dims:
        return Found(float(values[0]))
    k = np.array([int(replicates.attrs.get("groups", groups))])
    weight = np.array([replicates.attrs.get("weight", k[0])])
    is_counted = bool(replicates.attrs.get("is_counted", False))
    (found,) = find_intervals(values[:, None], k, limits, weight, is_counted=is_counted)
    return found


def find_intervals(
    values: Float[np.ndarray, "replicate item"],
    groups: Int[np.ndarray, "item"],
    limits: tuple[float, float] = ANY,
    weight: Float[np.ndarray, "item"] | Int[np.ndarray, "item"] | None = None,
    *,
    is_counted: bool = False,
) -> list[Found]:
    """Several statistics with their intervals; of shares `weight` is what they are shares of."""
    error = standard_error(values, groups)
    if limits == SHARE:
        whole = groups if weight is None else weight
        low, high = share_interval(values[0], error, groups, whole, counted=is_counted)
    else:
        low, high = interval(values[0], error, groups, least=limits[0], most=limits[1])
    every = zip(values[0], error, low, high, groups, strict=True)
    return [_found(*map(float, each)) for each in every]


def _found(value: float, error: float, low: float, high: float, groups: float) -> Found:
    if groups < 2:
        return Found(value, trouble=ONE_GROUP)
    return Found(value, low, high, "" if error > ROUNDING else NO_SPREAD)


def _groups(data: xr.Dataset, needs: tuple[str, ...]) -> int:
    """How many groups have data for the measures that a finding needs."""
    return groups_of(data, needs)


def _decide(found: Found, threshold: float | None, more: Literal["above", "below"]) -> Verdict:
    if threshold is None:
        return "for comparison"
    if found.trouble == ONE_GROUP:
        return "not measured"
    if found.low > threshold:
        return "yes" if more == "above" else "no"
    if found.high < threshold:
        return "no" if more == "above" else "yes"
    return "unclear"


def _say(finding: Finding, data: xr.Dataset, found: Found, verdict: Verdict) -> str:
    words = finding.words(data, found)
    parts = [write_number(found, finding.unit, is_signed=finding.is_signed), words]
    if found.trouble and not np.isfinite(found.low) and verdict != "for comparison":
        parts.append(found.trouble)
    return "; ".join(part for part in parts if part)


def write_number(found: Found, unit: str = "", *, is_signed: bool = False) -> str:
    """2.07 × (2.02 … 2.12): as many digits as the interval leaves, per cent of shares."""
    times = 100 if unit == PERCENT else 1
    value, low, high = (times * number for number in (found.value, found.low, found.high))
    reach, digits = max(value - low, high - value), 1 if unit == PERCENT else 2
    if reach > 0:
        digits = int(np.clip(np.ceil(-np.log10(reach)), 1, 6))
    form = f"{{:{'+' if is_signed else ''}.{digits}f}}"
    said = f"{form.format(value)} {unit}".rstrip()
    if np.isfinite(low):
        said += f" ({form.format(low)} … {form.format(high)})"
    return said.replace("-", "−")


def percent(share: float) -> str:
    """A share as it stands in words."""
    return f"{100 * share:.1f} %"


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
    layers = _layers(result)
    start = min(math.floor(first * len(layers) + 0.5), len(layers) - 1)
    return layers[start : max(start + 1, math.ceil(last * len(layers)))]


def _layers(result: xr.Dataset | xr.DataArray) -> list[int]:
    places = result.variables if isinstance(result, xr.Dataset) else result.coords
    return places["layer"].values.tolist()


def split_layers(
    result: xr.Dataset | xr.DataArray, first: float, last: float, few: str
) -> tuple[list[int], list[int]]:
    """Layers between two fractions of the depth, and all others, of which there must be some."""
    inside = layers_between(result, first, last)
    rest = [layer for layer in _layers(result) if layer not in inside]
    if not rest:
        raise NotMeasured(few)
    return inside, rest


def name_layers(layers: list[int]) -> str:
    """Consecutive layers in words: layer 0, layers 2–4."""
    return f"layer {layers[0]}" if len(layers) == 1 else f"layers {layers[0]}–{layers[-1]}"


def whole(values: Values) -> Values:
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
