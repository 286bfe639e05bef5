"""Whether two properties of heads go together (Pearson's r over all heads)."""

import numpy as np
import xarray as xr
from scipy import stats

from headscope.metrics.metric import Axis, Variables, label

FEWEST = 3  # with two heads every r is ±1


def correlation(left: np.ndarray, right: np.ndarray) -> tuple[float, float]:
    """Pearson's r and its p over the heads that have both values; NaN where it is undefined."""
    left, right = np.ravel(left), np.ravel(right)
    known = np.isfinite(left) & np.isfinite(right)
    left, right = left[known], right[known]
    if len(left) < FEWEST or np.ptp(left) == 0 or np.ptp(right) == 0:
        return np.nan, np.nan
    r, p = stats.pearsonr(left, right)
    return float(r), float(p)  # pyright: ignore[reportArgumentType]


def correlations(pairs: dict[str, tuple[xr.DataArray, xr.DataArray]]) -> Variables:
    """`correlation(pair)` and `correlation_p(pair)` of the named pairs of variables.

    Variables: correlation, correlation_p
    Formula: Pearson's r over all heads, and the probability of so large an r by chance
    Reference: Vig & Belinkov 2019, text on Figs. 11 and 12
    Range: −1 to 1; 0 to 1
    Cost: from the variables alone
    """
    found = np.array([correlation(a.values, b.values) for a, b in pairs.values()]).reshape(-1, 2)
    axis = Axis("pair", tuple(pairs))
    return {"correlation": label(found[:, 0], axis), "correlation_p": label(found[:, 1], axis)}
