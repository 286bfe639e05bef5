"""Proportions of counted words with confidence intervals."""

from collections.abc import Mapping

import numpy as np
import xarray as xr
from jaxtyping import Float

from headscope.metrics.metric import Axis
from headscope.results.replicates import informed, share_interval

Z95 = 1.959963984540054  # the 97.5 % point of the normal distribution
BOUND = Axis("bound", ("low", "high"))


def counted(total: np.ndarray) -> np.ndarray:
    """The counts, or NaN everywhere if nothing at all was counted: nothing is not zero."""
    return total if total.sum() > 0 else np.full(total.shape, np.nan)


def accuracy(correct: np.ndarray, total: np.ndarray) -> np.ndarray:
    """correct / total, NaN where nothing was counted."""
    correct, total = np.broadcast_arrays(np.asarray(correct, float), np.asarray(total, float))
    return np.divide(correct, total, out=np.full(total.shape, np.nan), where=total > 0)


def interval_variable(found: Mapping[str, xr.DataArray], name: str) -> xr.DataArray:
    """The 95 % interval of a share of counted words along a last dimension `bound`."""
    share, numerator = found[name], found[f"{name}_numerator"]
    words = found[f"{name}_denominator"].broadcast_like(numerator).transpose(*numerator.dims).values
    ends = share_interval(
        share.values, found[f"{name}_se"].values, informed(words), words.sum(0), counted=True
    )
    wide = share.expand_dims({BOUND.name: list(BOUND.labels)}, axis=-1)
    return wide.copy(data=np.stack(ends, axis=-1))


def wilson(correct: np.ndarray, total: np.ndarray, z: float = Z95) -> Float[np.ndarray, "2 *item"]:
    """Lower and upper end of Wilson's score interval (Wilson 1927), NaN where nothing was counted.

    (p + z²/2n ± z √(p(1 − p)/n + z²/4n²)) / (1 + z²/n): unlike p ± z·se it stays within 0 … 1 and
    says something of proportions that are 0 or 1. Only for words that are independent; where sums
    of groups are known, `share_interval` is right.
    """
    share = accuracy(correct, total)
    n = np.where(np.isnan(share), np.nan, np.asarray(total, float))
    middle = share + z**2 / (2 * n)
    reach = z * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    bounds = np.stack([middle - reach, middle + reach]) / (1 + z**2 / n)
    return np.clip(bounds, 0.0, 1.0)  # rounding alone leaves the range
