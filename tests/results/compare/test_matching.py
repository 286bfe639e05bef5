"""Heads are matched by what they do: permutations are found, and strangers stay strangers."""

from itertools import permutations

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

from headscope.errors import RunError
from headscope.head import Head
from headscope.results.compare import matching
from headscope.results.compare.matching import match_heads, shared_profiles
from headscope.results.measure import Measure, attach
from tests.references.grouped import permuted


def result(layers: int, heads: int, seed: int, labels: int = 4) -> xr.Dataset:
    random = np.random.default_rng(seed)
    grid = {"layer": np.arange(layers), "head": np.arange(heads)}
    data = xr.Dataset(
        {
            "entropy": (("layer", "head"), random.random((layers, heads))),
            "pos_to": (("layer", "head", "tag"), random.random((layers, heads, labels))),
        },
        coords=grid | {"tag": [f"T{i}" for i in range(labels)]},
    )
    measures = [Measure(name, name, "", "", "") for name in ("entropy", "pos_to")]
    return attach(data, measures)


@given(st.integers(0, 2**16))
@settings(max_examples=20, deadline=None)
def test_a_permutation_of_all_heads_is_found_whole(seed: int) -> None:
    data = result(4, 6, seed)
    moved, went = permuted(data, seed + 1)
    found = {match.first: match for match in match_heads(data, moved).matches}
    assert [found[Head(i // 6, i % 6)].second for i in range(24)] == went
    assert max(match.distance for match in found.values()) < 1e-6
    assert all(match.is_good for match in found.values())


@given(st.integers(0, 2**16))
@settings(max_examples=15, deadline=None)
def test_the_total_distance_is_the_least_of_all_assignments(seed: int) -> None:
    a, b = result(1, 4, seed), result(2, 2, seed + 1)
    _, profiles, others = shared_profiles(a, b)
    cost = [[float(np.sqrt(np.mean((x - y) ** 2))) for y in others] for x in profiles]
    least = min(sum(cost[i][j] for i, j in enumerate(order)) for order in permutations(range(4)))
    found = match_heads(a, b)
    assert sum(match.distance for match in found.matches) == pytest.approx(least, abs=1e-9)


def test_heads_of_the_larger_network_are_left_alone() -> None:
    large = result(4, 6, 0)
    small = large.isel(layer=[0, 1, 3])
    found = match_heads(large, small)
    assert all(match.first == match.second for match in found.matches)
    assert found.first_alone == tuple(Head(2, head) for head in range(6))
    assert found.second_alone == ()


def test_strangers_are_as_far_apart_as_arbitrary_pairs() -> None:
    found = match_heads(result(6, 8, 0, labels=30), result(6, 8, 1, labels=30))
    assert found.mean_distance > 0.6 * found.arbitrary
    same = match_heads(result(6, 8, 0, labels=30), result(6, 8, 0, labels=30))
    assert same.mean_distance < 1e-6


def test_runs_that_share_too_little_are_refused_with_a_remedy() -> None:
    a, b = result(2, 2, 0)[["entropy"]], result(2, 2, 1)[["pos_to"]]
    with pytest.raises(RunError, match="share too few measures"):
        match_heads(a, b)


def test_slices_that_are_unknown_of_most_heads_are_left_out() -> None:
    a, b = result(2, 3, 0), result(2, 3, 1)
    a["pos_to"][:, :2, 1] = np.nan
    assert "pos_to~T1" not in match_heads(a, b).columns
    assert len(match_heads(a, b).columns) == 4


def test_a_head_of_which_little_is_known_is_matched_by_that_and_one_unknown_stays_alone() -> None:
    a = result(2, 4, 0)
    moved, went = permuted(a, 1)
    a["pos_to"][0, 1, 1:] = np.nan
    a["entropy"][1, 2] = np.nan
    a["pos_to"][1, 2] = np.nan
    found = match_heads(a, moved)
    partner = {match.first: match.second for match in found.matches}
    assert partner[Head(0, 1)] == went[1]
    assert found.first_alone == (Head(1, 2),)
    assert found.second_alone == (went[6],)


def test_slices_whose_errors_exceed_the_differences_of_heads_do_not_count() -> None:
    a, b = result(2, 3, 0), result(2, 3, 1)
    a["entropy_se"] = xr.full_like(a["entropy"].drop_attrs(), 1.0)
    assert "entropy" not in match_heads(a, b).columns


def test_no_match_has_a_chance_of_zero_and_all_are_corrected_together() -> None:
    data = result(4, 6, 0)
    found = match_heads(data, permuted(data, 1)[0])
    fewest = 1 / (matching.STRANGERS * 24 + 1)
    assert [match.chance for match in found.matches] == pytest.approx([fewest] * 24)
    assert [match.q for match in found.matches] == pytest.approx([fewest] * 24)
    strangers = match_heads(result(4, 6, 0), result(4, 6, 1))
    assert all(match.q >= match.chance >= fewest for match in strangers.matches)


def test_numbers_are_contradicted_where_most_good_partners_have_others() -> None:
    data = result(4, 6, 0)
    assert not match_heads(data, data).contradicts_numbers
    assert match_heads(data, permuted(data, 1)[0]).contradicts_numbers
    assert not match_heads(result(4, 6, 0), result(4, 6, 1)).contradicts_numbers


def test_matches_of_strangers_are_good_no_more_often_than_chance_says() -> None:
    found = [match_heads(result(6, 8, seed), result(6, 8, seed + 1)) for seed in range(0, 20, 2)]
    good = np.mean([match.is_good for each in found for match in each.matches])
    assert good < 0.02
