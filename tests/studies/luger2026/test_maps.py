"""Components, maps and clusters equal plain readings, and show what was put into the points."""

import numpy as np
import pytest
import torch
from scipy.cluster.hierarchy import fcluster, ward
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.manifold import trustworthiness
from sklearn.metrics import silhouette_score

from headscope.studies.luger2026.maps import (
    _affinities,
    _k_means,
    _slope,
    bring_together,
    find_clusters,
    find_components,
    lay_out,
    silhouette,
)


def blobs(count: int, seed: int = 0, dim: int = 8, size: int = 20) -> torch.Tensor:
    """So many groups of points, far apart; of two heads."""
    random = torch.Generator().manual_seed(seed)
    centres = torch.randn(2, count, 1, dim, generator=random) * 12
    points = centres + torch.randn(2, count, size, dim, generator=random)
    return points.flatten(1, 2)


def test_components_are_those_of_a_plain_analysis() -> None:
    points = torch.randn(3, 30, 5, generator=torch.Generator().manual_seed(1))
    places, shares = find_components(points)
    for head in range(3):
        plain = PCA(2).fit(points[head].numpy())
        np.testing.assert_allclose(shares[head], plain.explained_variance_ratio_, rtol=1e-4)
        wanted = plain.transform(points[head].numpy())
        signs = np.sign((wanted * places[head].numpy()).sum(0))
        np.testing.assert_allclose(places[head], wanted * signs, atol=1e-4)
    few, share = find_components(points[:, :1])
    assert few.shape == (3, 1, 2) and not few.any() and not share.any()


def test_bringing_queries_and_keys_together_leaves_attention_as_it_is() -> None:
    random = torch.Generator().manual_seed(2)
    query = 7 * torch.randn(2, 9, 4, generator=random) + 3
    key = 0.2 * torch.randn(2, 9, 4, generator=random) - 5
    moved, placed = bring_together(query, key)
    before, after = (query.double() @ key.double().mT, moved @ placed.mT)
    torch.testing.assert_close(before.softmax(-1), after.softmax(-1))
    torch.testing.assert_close(moved.mean(1), placed.mean(1))
    spread = [(each - each.mean(1, keepdim=True)).square().mean((1, 2)) for each in (moved, placed)]
    torch.testing.assert_close(*spread)


def test_the_slope_of_the_map_is_that_of_its_divergence() -> None:
    points = torch.randn(1, 12, 3, generator=torch.Generator().manual_seed(3)).double()
    places = torch.randn(1, 12, 2, generator=torch.Generator().manual_seed(4)).double()
    wanted = _affinities(points, 3.0)
    places.requires_grad_()
    near = 1 / (1 + (places[:, :, None] - places[:, None]).square().sum(-1))
    near = near * (1 - torch.eye(12))
    chances = near / near.sum()
    apart = wanted > 0
    loss = (wanted[apart] * (wanted[apart] / chances[apart]).log()).sum()
    (slope,) = torch.autograd.grad(loss, places)
    torch.testing.assert_close(_slope(places.detach(), wanted), slope)
    assert wanted.sum() == pytest.approx(1) and torch.equal(wanted, wanted.mT)


def test_the_map_keeps_neighbours_and_is_the_same_again() -> None:
    points = blobs(4)
    places = lay_out(points)
    assert torch.equal(places, lay_out(points))
    for head in range(2):
        assert trustworthiness(points[head].numpy(), places[head].numpy(), n_neighbors=8) > 0.9
        assert silhouette_score(places[head].numpy(), np.repeat(range(4), 20)) > 0.6


@pytest.mark.parametrize("count", [2, 4])
def test_clusters_are_found_where_they_are(count: int) -> None:
    labels = find_clusters(blobs(count, seed=count))
    for head in range(2):
        groups = labels[head].reshape(count, -1)
        assert (groups == groups[:, :1]).all() and len(set(groups[:, 0].tolist())) == count


def test_one_cloud_is_one_cluster_and_an_outlier_is_none() -> None:
    cloud = torch.randn(2, 60, 16, generator=torch.Generator().manual_seed(5))
    cloud[1, 7] = 100.0
    assert not find_clusters(cloud).any()
    assert not find_clusters(cloud[:, :3]).any()


def test_points_that_are_all_the_same_are_one_cluster() -> None:
    assert not find_clusters(torch.ones(1, 30, 4)).any()


def test_the_largest_cluster_is_the_first() -> None:
    random = torch.Generator().manual_seed(6)
    sizes = (10, 30, 20)
    points = [torch.randn(n, 3, generator=random) + 40 * k for k, n in enumerate(sizes)]
    labels = find_clusters(torch.cat(points)[None])[0].tolist()
    assert labels == [2] * 10 + [0] * 30 + [1] * 20


def test_silhouettes_are_those_of_scikit_learn() -> None:
    random = np.random.default_rng(7)
    points, labels = random.normal(size=(40, 3)), random.integers(0, 4, 40)
    wanted = float(silhouette_score(points, labels))
    assert silhouette(cdist(points, points), labels) == pytest.approx(wanted)


def test_clusters_vary_no_more_than_those_from_random_starts() -> None:
    """Beside the best of three random starts, in groups that overlap."""
    random = torch.Generator().manual_seed(8)
    centres = torch.randn(16, 4, 1, 8, generator=random) * 1.5
    heads = (centres + torch.randn(16, 4, 25, 8, generator=random)).flatten(1, 2).numpy()
    own, theirs = 0.0, 0.0
    for points in heads:
        labels = _k_means(points, fcluster(ward(points), 4, "maxclust") - 1)
        own += sum(float(points[labels == k].var(0).sum() * (labels == k).sum()) for k in range(4))
        theirs += float(KMeans(4, n_init=3, random_state=0).fit(points).inertia_)  # pyright: ignore
    assert own <= 1.01 * theirs
