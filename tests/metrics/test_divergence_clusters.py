"""Maps, orders and neighbours of heads reflect their divergences."""

import numpy as np
from scipy.spatial.distance import cdist

from headscope.metrics.divergence import head_order, head_positions, nearest_heads, why_no_map

POINTS = np.random.default_rng(0).normal(size=(9, 2)) + np.repeat([[0, 0], [20, 0], [0, 20]], 3, 0)
DISTANCES = cdist(POINTS, POINTS)


def test_distances_in_a_plane_are_recovered() -> None:
    positions, stress = head_positions(DISTANCES)
    found = cdist(positions, positions) * DISTANCES.max()
    np.testing.assert_allclose(found, DISTANCES, atol=0.25)
    assert stress < 0.01


def test_the_map_depends_on_the_divergences_up_to_their_scale() -> None:
    first, _ = head_positions(DISTANCES)
    again, _ = head_positions(DISTANCES)
    scaled, _ = head_positions(DISTANCES * 128)
    assert (first == again).all()
    np.testing.assert_allclose(scaled, first, atol=1e-6)


def test_heads_of_a_cluster_stand_side_by_side() -> None:
    shuffled = np.random.default_rng(1).permutation(9)
    order = head_order(DISTANCES[np.ix_(shuffled, shuffled)])
    cluster = shuffled[order] // 3
    assert sorted(order) == list(range(9))
    assert (np.diff(cluster) != 0).sum() == 2


def test_nearest_heads_equal_a_plain_search() -> None:
    for unit, found in enumerate(nearest_heads(DISTANCES, 3)):
        others = [other for other in range(9) if other != unit]
        assert found.tolist() == sorted(others, key=lambda other: DISTANCES[unit, other])[:3]


def test_too_little_to_map_is_said() -> None:
    assert why_no_map(DISTANCES) is None
    assert "at least 3 heads" in (why_no_map(np.zeros((2, 2))) or "")
    assert "no usable segment" in (why_no_map(np.full((4, 4), np.nan)) or "")
    assert "the same" in (why_no_map(np.zeros((4, 4))) or "")
