"""Statistics with their 95 % intervals, and how such numbers are written.

The interval of a statistic comes from its values with and without each group of documents
(`headscope.results.replicates`).
"""

from dataclasses import dataclass

import numpy as np
import xarray as xr
from jaxtyping import Float, Int

from headscope.results.replicates import ROUNDING, interval, share_interval, standard_error
from headscope.results.tables import Interval as Cell

ONE_GROUP = "all documents are in one group, so the error is unknown"
NO_SPREAD = "it is the same without any group of documents, so the error is unknown"


@dataclass(frozen=True)
class Quantity:
    """What a number is: its unit, its range, and whether it is written with its sign."""

    unit: str = ""
    least: float = -np.inf
    most: float = np.inf
    is_signed: bool = False
    is_share: bool = False  # a share has an interval even where every group gives 0, or 1
    in_percent: bool = False

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
CORRELATION = Quantity("", -1.0, 1.0)
SIGNED_CORRELATION = Quantity("", -1.0, 1.0, is_signed=True)
TIMES = Quantity("×")


@dataclass(frozen=True)
class Interval:
    """A statistic with its 95 % interval, NaN where its error is unknown."""

    value: float
    low: float = np.nan
    high: float = np.nan
    trouble: str = ""  # why there is no interval

    @property
    def cell(self) -> Cell:
        """The value with its interval, as a cell of a table."""
        return Cell(self.value, self.low, self.high)


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
        low, high = interval(values[0], error, groups, least=quantity.least, most=quantity.most)
    intervals: list[Interval] = []
    for place, value in enumerate(values[0].tolist()):
        if groups[place] < 2:
            intervals.append(Interval(value, trouble=ONE_GROUP))
        else:
            trouble = "" if error[place] > ROUNDING else NO_SPREAD
            intervals.append(Interval(value, float(low[place]), float(high[place]), trouble))
    return intervals


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
