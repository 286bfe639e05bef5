"""A slice of a measure as plain arrays over heads, cut once and read for every head."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from scipy.stats import rankdata

from headscope.head import Head
from headscope.results.measure import GRID, measure_names
from headscope.results.slices import (
    BaselineValue,
    Slice,
    baseline_of,
    baseline_of_head,
    is_baseline_of_heads,
    slices,
)


@dataclass(frozen=True)
class Column:
    """One number for every head, its error, and its rank among the heads that have a number."""

    chosen: Slice
    values: np.ndarray  # layer head
    errors: np.ndarray | None
    ranks: np.ndarray  # 1 is the largest value
    of: int  # heads that have a value
    mean: float | None
    baseline: BaselineValue | None
    words: int | None  # that a relation was scored on; None for other measures
    own_baselines: bool  # whether every head is held against a value of its own
    places: Mapping[Head, tuple[int, int]]  # of the heads in the arrays

    def baseline_at(self, data: xr.Dataset, head: Head) -> BaselineValue | None:
        """What one head is held against."""
        if not self.own_baselines:
            return self.baseline
        return baseline_of_head(data, self.chosen, head._asdict())


def columns_of(data: xr.Dataset) -> dict[str, tuple[Column, ...]]:
    """The columns of every measure of heads."""
    layers, heads = (data.variables[axis].values.tolist() for axis in GRID)
    places = {Head(a, b): (i, j) for i, a in enumerate(layers) for j, b in enumerate(heads)}
    return {
        name: tuple(_column(data, each, places) for each in slices(data, name))
        for name in measure_names(data)
    }


def number(value: Any) -> float | None:
    """A number as JSON has it: None where it is not finite."""
    plain = float(value)
    return plain if np.isfinite(plain) else None


def _column(data: xr.Dataset, chosen: Slice, places: Mapping[Head, tuple[int, int]]) -> Column:
    values = np.asarray(chosen.values.values, float)
    known = np.isfinite(values)
    ranks = np.zeros(values.shape, int)
    ranks[known] = rankdata(-values[known], method="min")
    return Column(
        chosen=chosen,
        values=values,
        errors=None if chosen.errors is None else chosen.errors.transpose(*GRID).values,
        ranks=ranks,
        of=int(known.sum()),
        mean=number(values[known].mean()) if known.any() else None,
        baseline=baseline_of(data, chosen),
        words=_words(data, chosen),
        own_baselines=is_baseline_of_heads(data, chosen),
        places=places,
    )


def _words(data: xr.Dataset, chosen: Slice) -> int | None:
    if "relation_count" not in data or "relation" not in chosen.at:
        return None
    return int(data["relation_count"].sel(relation=chosen.at["relation"]))
