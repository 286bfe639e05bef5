"""Maps of points: their stress beside scikit-learn's, and distances that no plane has."""

from typing import Any

import numpy as np
import pytest
import torch
from jaxtyping import Float
from scipy.spatial.distance import cdist

import headscope as hs
from headscope.metrics.divergence import divergence
from headscope.metrics.scaling import scale_to_plane, stress


def divergences_of(model: str) -> Float[np.ndarray, "unit unit"]:
    """Divergences of 64 trained heads on some sentences of the demo corpus, at most one."""
    loaded = hs.load(model, device="cpu")
    sums = torch.zeros(64, 64, dtype=torch.float64)
    for sentence in list(hs.demo_corpus())[:20]:
        layers: list[torch.Tensor] = []
        batch = loaded.batch([loaded.encode(sentence.text)])
        loaded.forward(batch, lambda seen, layers=layers: layers.append(seen.weights[0]))
        sums += divergence(torch.cat(layers), causal=loaded.is_causal)
    return (sums / sums.max()).numpy()


@pytest.mark.parametrize("model", ["mini-bert", "mini-gpt2"])
def test_the_stress_of_trained_heads_is_no_worse_than_of_random_starts(model: str) -> None:
    """As the released notebook of Clark et al. does it, with the median of five seeds."""
    from sklearn.manifold import smacof

    distances = divergences_of(model)
    options: dict[str, Any] = {"normalized_stress": True, "n_init": 5, "eps": 1e-10, "n_jobs": 1}
    fits = [
        smacof(distances, n_components=2, random_state=seed, max_iter=1000, **options)
        for seed in range(5)
    ]
    places = [np.asarray(fit[0]) for fit in fits]
    assert fits[0][1] == pytest.approx(stress(places[0], distances), rel=1e-2)
    own = stress(scale_to_plane(distances), distances)
    theirs = [stress(map_of_seed, distances) for map_of_seed in places]
    assert own <= np.median(theirs)
    assert own <= 1.01 * min(theirs)


def test_points_of_a_plane_are_found_again() -> None:
    points = np.random.default_rng(0).normal(size=(200, 2))
    distances = cdist(points, points)
    places = scale_to_plane(distances)
    np.testing.assert_allclose(cdist(places, places), distances, atol=1e-2)
    assert stress(places, distances) < 1e-3


def test_equal_points_and_distances_that_no_plane_has_give_finite_maps() -> None:
    equal = np.zeros((5, 5))
    equal[0, 1:] = equal[1:, 0] = 1.0
    places = scale_to_plane(equal)
    assert stress(places, equal) < 1e-3 and np.ptp(places[1:], axis=0).max() < 1e-3
    corners = 1.0 - np.eye(4)  # a tetrahedron
    assert stress(scale_to_plane(corners), corners) == pytest.approx(0.1716, abs=1e-3)  # a square
    detour = np.array([[0.0, 1.0, 5.0], [1.0, 0.0, 1.0], [5.0, 1.0, 0.0]])
    assert 0 < stress(scale_to_plane(detour), detour) < 0.5
