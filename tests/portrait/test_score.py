"""Intervals of what portraits explain hold the truth as often as they say."""

import numpy as np
import pytest
import xarray as xr

from headscope.results.replicates import GROUPS, margin_of, ratio_of

DRAWS, TRUTH = 1500, 0.6


@pytest.mark.parametrize("documents", [40, 120])
def test_intervals_of_explained_cover_95_of_100_draws(documents: int) -> None:
    """Documents differ in length and in how much of their attention is explained; 32 groups."""
    random = np.random.default_rng(documents)
    total = random.gamma(4.0, 25.0, (DRAWS, documents))
    gain = total * random.normal(TRUTH, 0.15, (DRAWS, documents))
    group = random.integers(GROUPS, size=(DRAWS, documents))
    sums = {name: np.zeros((GROUPS, 1, DRAWS)) for name in ("numerator", "denominator")}
    for name, values in (("numerator", gain), ("denominator", total)):
        np.add.at(sums[name][:, 0], (group, np.arange(DRAWS)[:, None]), values)
    dims = ("group", "layer", "head")
    parts = {f"explained_{name}": xr.DataArray(values, dims=dims) for name, values in sums.items()}
    value, error = ratio_of(parts["explained_numerator"], parts["explained_denominator"])
    margin = margin_of(
        xr.Dataset({**parts, "explained": value, "explained_se": error}), "explained"
    )
    assert margin is not None
    covered = float((np.abs(value - TRUTH) <= margin).mean())
    assert 0.93 < covered < 0.97
