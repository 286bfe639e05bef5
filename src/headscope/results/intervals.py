"""Statistics with their 95 % intervals, and how such numbers are written.

The interval of a statistic comes from its values with and without each group of documents
(`headscope.results.replicates`).
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import xarray as xr
from jaxtyping import Float, Int

from headscope.results.replicates import (
    FEWEST_GROUPS,
    ROUNDING,
    interval,
    share_interval,
    standard_error,
)
from headscope.wording import counted

FEW_GROUPS = "{} with data for it, fewer than {}: the error is unknown"
ALMOST_ONE = 1 - 1e-6  # a correlation of one has no finite z
NO_SPREAD = "it is exactly the same without any group of documents, so it has no error"


@dataclass(frozen=True)
class Quantity:
    """What a number is: its unit, its range, and whether it is written with its sign."""

    unit: str = ""
    least: float = -np.inf
    most: float = np.inf
    is_signed: bool = False
    is_share: bool = False  # a share has an interval even where every group gives 0, or 1
    in_percent: bool = False
    scale: Literal["", "log", "fisher"] = ""  # on which its error is alike to both sides

    def write(self, number: float, digits: int = 2) -> str:
        """A number without its unit: −0.03, +4.1."""
        times = 100 if self.in_percent else 1
        return f"{times * number:{'+' if self.is_signed else ''}.{digits}f}".replace("-", "−")


ANY = Quantity()
SIGNED = Quantity(is_signed=True)
SIZE = Quantity(least=0.0)
SHARE = Quantity("", 0.0, 1.0, is_share=True)
PERCENT = Quantity("%", 0.0, 1.0, is_share=True, in_percent=True)
DIFFERENCE = Quantity("", -1.0, 1.0, is_signed=True)  # of two shares
PERCENT_DIFFERENCE = Quantity("%", -1.0, 1.0, is_signed=True, in_percent=True)
CORRELATION = Quantity("", -1.0, 1.0, is_signed=True, scale="fisher")
TIMES = Quantity("×", 0.0, scale="log")


@dataclass(frozen=True)
class Interval:
    """A statistic with its 95 % interval, NaN where its error is unknown."""

    value: float
    low: float = np.nan
    high: float = np.nan
    trouble: str = ""  # why there is no interval


def find_interval(
    replicates: xr.DataArray | xr.Variable, groups: int, quantity: Quantity = ANY
) -> Interval:
    """A statistic with its interval, from its values with and without each group.

    Attributes of the statistic may say how many `groups` have data for it, and of a share the
    `weight` that it is a share of, and whether that `is_counted` in words.
    """
    values = np.atleast_1d(replicates.values).astype(float)
    if "replicate" not in replicates.dims:
        return Interval(float(values[0]))
    k = np.array([int(replicates.attrs.get("groups", groups))])
    weight = np.array([replicates.attrs.get("weight", k[0])])
    is_counted = bool(replicates.attrs.get("is_counted", False))
    (single,) = find_intervals(values[:, None], k, quantity, weight, is_counted=is_counted)
    return single


def find_intervals(
    values: Float[np.ndarray, "replicate item"],
    groups: Int[np.ndarray, "item"],
    quantity: Quantity = ANY,
    weight: Float[np.ndarray, "item"] | Int[np.ndarray, "item"] | None = None,
    *,
    is_counted: bool = False,
) -> list[Interval]:
    """Several statistics with their intervals; of shares `weight` is what they are shares of."""
    error = standard_error(values, groups)
    if quantity.is_share:
        total = groups if weight is None else weight
        low, high = share_interval(values[0], error, groups, total, counted=is_counted)
    else:
        low, high = _on_scale(values, groups, quantity)
    intervals: list[Interval] = []
    for place, value in enumerate(values[0].tolist()):
        if groups[place] < FEWEST_GROUPS:
            trouble = FEW_GROUPS.format(counted(int(groups[place]), "groups"), FEWEST_GROUPS)
            intervals.append(Interval(value, trouble=trouble))
        else:
            ends = float(low[place]), float(high[place])
            is_exact = error[place] <= ROUNDING and not quantity.is_share
            if is_exact:
                intervals.append(Interval(value, value, value, NO_SPREAD))
            else:  # rounding alone crosses the value
                intervals.append(Interval(value, min(ends[0], value), max(ends[1], value)))
    return intervals


def _on_scale(
    values: Float[np.ndarray, "replicate item"], groups: Int[np.ndarray, "item"], quantity: Quantity
) -> tuple[Float[np.ndarray, "item"], Float[np.ndarray, "item"]]:
    """value ± t·error on the scale of the quantity: Fisher's z of correlations, logs of factors."""
    with np.errstate(all="ignore"):
        if quantity.scale == "fisher":
            values = np.arctanh(values.clip(-ALMOST_ONE, ALMOST_ONE))
        elif quantity.scale == "log":
            values = np.log(values)
        low, high = interval(values[0], standard_error(values, groups), groups)
        if quantity.scale == "fisher":
            low, high = np.tanh(low), np.tanh(high)
        elif quantity.scale == "log":
            low, high = np.exp(low), np.exp(high)
        low, high = np.maximum(low, quantity.least), np.minimum(high, quantity.most)
    return low, high


def resampled_interval(draws: xr.DataArray | xr.Variable, groups: int) -> Interval:
    """A rank or count with the middle 95 % of its draws of groups with replacement."""
    value, *drawn = draws.values.tolist()
    if groups < FEWEST_GROUPS:
        return Interval(value, trouble=FEW_GROUPS.format(counted(groups, "groups"), FEWEST_GROUPS))
    low, high = np.nanquantile(drawn, (0.025, 0.975))
    return Interval(value, float(min(low, value)), float(max(high, value)))


def write_interval(estimate: Interval, quantity: Quantity = ANY) -> str:
    """2.07 × (2.02 … 2.12): as many digits as the interval leaves, per cent of shares."""
    times = 100 if quantity.in_percent else 1
    value, low, high = (times * end for end in (estimate.value, estimate.low, estimate.high))
    reach, digits = max(value - low, high - value), 1 if quantity.in_percent else 2
    if reach > 0:
        digits = int(np.clip(np.ceil(-np.log10(reach)), 1, 6))
    text = f"{quantity.write(estimate.value, digits)} {quantity.unit}".rstrip()
    if np.isfinite(low):
        ends = (quantity.write(end, digits) for end in (estimate.low, estimate.high))
        text += f" ({' … '.join(ends)})"
    return text


def percent(share: float) -> str:
    """A share as it stands in words."""
    return f"{100 * share:.1f} %"
