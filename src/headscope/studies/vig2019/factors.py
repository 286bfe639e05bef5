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
    mean = data[name].sel(at).mean(("layer", "head"))
    share = best.replicates
    return Factor(best, (share / mean.where(mean > 0)).assign_attrs(share.attrs))


def label_factors(data: xr.Dataset, name: str, axis: str) -> dict[str, Factor]:
    """The factor of every label that is found in both halves, whichever group is left out."""
    found = {str(label): factor(data, name, {axis: label}) for label in data[axis].values.tolist()}
    return {
        label: each for label, each in found.items() if np.isfinite(each.replicates.values).all()
    }
