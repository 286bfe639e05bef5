"""How much more of its attention the best head pays to a label than heads do on average."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from headscope.results.findings import Found, find_interval
from headscope.results.selection import HeldOut, hold_out

TWICE = 2.0


@dataclass(frozen=True)
class Factor:
    """Share of a head that was chosen on other documents, and what it is of the mean share."""

    held_out: HeldOut
    replicates: xr.DataArray

    @property
    def found(self) -> Found:
        """The factor with its interval."""
        return find_interval(self.replicates, 0, (0.0, np.inf))


def factor(data: xr.Dataset, name: str, at: Mapping[str, Any]) -> Factor:
    """Best share of a label / mean share over heads; `data` has replicates."""
    best = hold_out(data, name, at)
    shares = data[name].sel(at).transpose("replicate", "layer", "head").values
    share = best.replicates
    with np.errstate(all="ignore"):
        mean = np.nansum(shares, (1, 2)) / np.isfinite(shares).sum((1, 2))
        ratio = np.where(mean > 0, share.values / mean, np.nan)
    return Factor(best, share.copy(data=ratio))


def label_factors(data: xr.Dataset, name: str, axis: str) -> dict[str, Factor]:
    """The factor of every label that is found in both halves, whichever group is left out."""
    found = {str(label): factor(data, name, {axis: label}) for label in data[axis].values.tolist()}
    return {
        label: each for label, each in found.items() if np.isfinite(each.replicates.values).all()
    }
