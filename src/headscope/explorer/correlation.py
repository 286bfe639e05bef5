"""Whether two measures go together over the heads."""

from typing import Any

import numpy as np
import xarray as xr
from scipy import stats

from headscope.explorer.jsonable import number
from headscope.explorer.measures import cut

FEWEST = 3  # with two heads every r is ±1


def correlation(data: xr.Dataset, x: str, y: str) -> dict[str, Any]:
    """Pearson's r, its p, and the number of heads that have both values."""
    left, right = cut(data, x).values.values.ravel(), cut(data, y).values.values.ravel()
    known = np.isfinite(left) & np.isfinite(right)
    left, right = left[known], right[known]
    if len(left) < FEWEST or np.ptp(left) == 0 or np.ptp(right) == 0:
        return {"r": None, "p": None, "heads": len(left)}
    r, p = stats.pearsonr(left, right)
    return {"r": number(r), "p": number(p), "heads": len(left)}
