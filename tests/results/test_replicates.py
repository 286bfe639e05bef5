"""Errors by leaving out groups equal a plain jackknife; intervals keep within their range."""

import math

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

from headscope.results import replicates
from headscope.results.replicates import Estimate

SEEDS = st.integers(0, 2**32 - 1)


def sums(seed: int, groups: int = 7, items: int = 3) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    y = random.gamma(2, 1, (groups, items)) * (random.random((groups, items)) < 0.8)
    return y * random.random((groups, items)), y


def plain_error(values: list[float]) -> float:
    """The grouped jackknife of a textbook."""
    k, mean = len(values), sum(values) / len(values)
    return math.sqrt((k - 1) / k * sum((value - mean) ** 2 for value in values))


@given(SEEDS)
@settings(max_examples=50, deadline=None)
def test_the_error_of_a_ratio_is_that_of_a_plain_jackknife_over_groups_with_data(seed: int) -> None:
    x, y = sums(seed)
    found = replicates.ratio_replicates(x, y)
    error = replicates.standard_error(found, replicates.informed(y))
    for item in range(y.shape[1]):
        known = [group for group in range(len(y)) if y[group, item] > 0]
        if len(known) < 2:
            assert np.isnan(error[item])
            continue
        left = [
            sum(x[g, item] for g in known if g != out) / sum(y[g, item] for g in known if g != out)
            for out in known
        ]
        assert found[0, item] == pytest.approx(sum(x[:, item]) / sum(y[:, item]), rel=1e-12)
        assert error[item] == pytest.approx(plain_error(left), rel=1e-9, abs=1e-12)


@given(SEEDS)
@settings(max_examples=30, deadline=None)
def test_errors_of_differences_and_correlations_follow_from_their_replicates(seed: int) -> None:
    random = np.random.default_rng(seed)
    x, y = random.random((9, 2, 12)), 1 + random.random((9, 2, 12))  # group measure head
    found = replicates.ratio_replicates(x, y)

    def ratio(out: int | None, measure: int) -> np.ndarray:
        kept = [group for group in range(9) if group != out]
        return x[kept, measure].sum(0) / y[kept, measure].sum(0)

    for statistic in (
        lambda a, b: float(a.mean() - b.mean()),
        lambda a, b: float(np.corrcoef(a, b)[0, 1]),
        lambda a, b: float(np.argmax(a) == np.argmax(b)),
    ):
        values = np.array([statistic(*of_replicate) for of_replicate in found])
        left = [statistic(ratio(out, 0), ratio(out, 1)) for out in range(9)]
        assert values[0] == pytest.approx(statistic(ratio(None, 0), ratio(None, 1)), abs=1e-12)
        error = replicates.standard_error(values, 9)
        assert error == pytest.approx(plain_error(left), abs=1e-9)


def test_a_label_in_one_group_has_no_error_and_still_an_interval() -> None:
    x, y = np.array([[1.0], [0.0], [0.0]]), np.array([[1.0], [0.0], [0.0]])
    found = replicates.ratio_replicates(x, y)
    groups = replicates.informed(y)
    error = replicates.standard_error(found, groups)
    assert np.isnan(error)
    low, high = replicates.share_interval(found[0], error, groups, y.sum(0), counted=True)
    assert low == pytest.approx(1 / (1 + 1.959964**2), rel=1e-4)  # Wilson's, of one of one
    assert high == 1


@given(st.floats(0, 1), st.floats(0, 0.5), st.integers(2, 32), st.floats(0.5, 1e6))
@settings(max_examples=200, deadline=None)
def test_intervals_of_shares_hold_the_value_and_keep_within_0_and_1(
    share: float, error: float, groups: int, weight: float
) -> None:
    for counted in (False, True):
        low, high = replicates.share_interval(
            np.array(share), np.array(error), groups, np.array(weight), counted=counted
        )
        assert 0 <= low <= share <= high <= 1
        assert high > low


@given(st.floats(0, 1), st.floats(0, 1), st.floats(-1, 1), st.integers(2, 400))
@settings(max_examples=200, deadline=None)
def test_intervals_of_differences_keep_within_their_range(
    a: float, b: float, r: float, count: int
) -> None:
    def of(share: float) -> Estimate:
        low, high = replicates.share_interval(
            np.array(share), np.array(np.nan), count, np.array(float(count)), counted=True
        )
        return Estimate(np.array(share), np.array(np.nan), low, high)

    low, high = replicates.difference_interval(of(a), of(b), min(r, 0.0))
    assert low <= b - a <= high
    assert high > low
    low, high = replicates.difference_interval(of(a), of(b))
    assert low >= -1 - 1e-12 and high <= 1 + 1e-12


def test_q_values_are_those_of_the_definition() -> None:
    p = np.array([0.01, np.nan, 0.04, 0.03, 0.5])
    expected = [0.01 * 4 / 1, np.nan, 0.04 * 4 / 3, 0.04 * 4 / 3, 0.5]
    np.testing.assert_allclose(replicates.q_values(p), expected)


def test_documents_keep_their_group_wherever_they_are_counted() -> None:
    assert [replicates.group_of(name) for name in ("", "GUM_news_1", "Ⅷ", "\ud800")] == [
        replicates.group_of(name) for name in ("", "GUM_news_1", "Ⅷ", "\ud800")
    ]
    counts = np.bincount([replicates.group_of(f"doc{i}") for i in range(6400)])
    assert len(counts) == replicates.GROUPS and counts.min() > 120


def test_a_result_is_replicated_by_its_sums() -> None:
    random = np.random.default_rng(0)
    x, y = random.random((4, 2, 3, 5)), 1 + random.random((4, 2, 3, 1))
    dims = ("group", "layer", "head")
    data = xr.Dataset(
        {
            "share": (("layer", "head", "tag"), x.sum(0) / y.sum(0)),
            "share_by_layer": (("layer", "tag"), x.sum((0, 2)) / y.sum((0, 2))),
            "share_numerator": ((*dims, "tag"), x),
            "share_denominator": (dims, y[..., 0]),
        },
        coords={"layer": [3, 7], "head": range(3), "tag": list("abcde"), "group": range(4)},
    )
    share = replicates.replicates_of(data, "share")
    by_layer = replicates.replicates_of(data, "share_by_layer")
    assert share.dims == ("replicate", "layer", "head", "tag")
    np.testing.assert_allclose(share.values[0], data["share"].values)
    np.testing.assert_allclose(by_layer.values[0], data["share_by_layer"].values)
    without = np.delete(x, 2, 0).sum(0) / np.delete(y, 2, 0).sum(0)
    np.testing.assert_allclose(share.values[3], without)
    assert replicates.groups_of(data) == 4
