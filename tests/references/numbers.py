"""Results as numbers and labels alone, for tests that hold two of them against each other."""

import xarray as xr

from headscope.results.claims import JudgedClaim


def without_words(result: xr.Dataset) -> xr.Dataset:
    """The result without attributes. Its own `drop_attrs` merges every variable anew: seconds."""
    bare = result.copy(deep=False)
    for variable in (bare, *bare.variables.values()):
        variable.attrs = {}
    return bare


def same_numbers(left: xr.Dataset, right: xr.Dataset) -> None:
    """Both have the same variables, labels and values, bit for bit."""
    xr.testing.assert_identical(without_words(left), without_words(right))


def interval_of(judged: JudgedClaim) -> tuple[float, float, float]:
    """Value and ends of the interval of a claim that has all three."""
    assert judged.value is not None and judged.low is not None and judged.high is not None
    return judged.value, judged.low, judged.high
