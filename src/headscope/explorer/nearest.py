"""The heads most like a given one: by divergence of their attention, else by their measures."""

from typing import Any

import numpy as np
import xarray as xr

from headscope.explorer.head_name import head_name
from headscope.explorer.measures import further
from headscope.results.compare import measure_names

COUNT = 6


def nearest_heads(data: xr.Dataset, layer: int, head: int) -> dict[str, Any]:
    """The nearest heads with their distances, and what the distance is."""
    own = head_name(layer, head)
    if "head_divergence" in data:
        row = data["head_divergence"].sel(unit=own)
        names, distances = [str(one) for one in row["other"].values], row.values
        basis = "Jensen–Shannon divergence of their attention, summed over all rows"
    else:
        names, table = _standardised(data)
        distances = np.sqrt(((table - table[names.index(own)]) ** 2).mean(1))
        basis = "root mean square difference of the measures, in standard deviations"
    return {"basis": basis, "heads": _closest(own, names, distances)}


def _closest(own: str, names: list[str], distances: np.ndarray) -> list[dict[str, Any]]:
    order = [i for i in np.argsort(distances, kind="stable") if names[i] != own]
    known = [i for i in order if np.isfinite(distances[i])][:COUNT]
    return [{"name": names[i], "distance": float(distances[i])} for i in known]


def _standardised(data: xr.Dataset) -> tuple[list[str], np.ndarray]:
    """Every measure without further dimensions as a column over heads, mean 0 and deviation 1."""
    plain = [name for name in measure_names(data) if not further(data, name)]
    table = np.stack([data[name].transpose("layer", "head").values.ravel() for name in plain], 1)
    table = np.where(np.isfinite(table), table, np.nan)
    spread = np.nanstd(table, 0)
    kept = spread > 0
    scaled = (table[:, kept] - np.nanmean(table[:, kept], 0)) / spread[kept]
    grid = [head_name(int(i), int(j)) for i in data["layer"].values for j in data["head"].values]
    return grid, np.nan_to_num(scaled)
