"""Where the vectors of a head lie: principal components, a map of queries and keys, clusters.

Functions take the points of many heads at once: head × point × dimension. A map of few points in
every head is where scikit-learn is slow: 64 heads would take it 20 seconds instead of two.
"""

import math

import numpy as np
import torch
from jaxtyping import Float, Int
from scipy.cluster.hierarchy import fcluster, ward
from scipy.spatial.distance import cdist
from torch import Tensor
from torch.nn import functional

from headscope.results.measure import Measure

COMPONENTS = 2
TINY = torch.finfo(torch.float64).tiny
PERPLEXITY = 20.0
STEPS, EXAGGERATED, EXAGGERATION = 200, 60, 8.0
CLUSTERS = (2, 3, 4, 5, 6)
DISTINCT = 0.25  # silhouette from which clusters are said to be there
SMALLEST = 0.05  # share of the points of a cluster; fewer are outliers
MEAN_STEPS = 100  # of k-means
REDUCED = 8  # principal components in which clusters are sought

COMPONENT_SHARE = Measure(
    "component_share",
    title="Share of a principal component",
    meaning="How much of the variance of the head's queries, keys, values or outputs lies along "
    "one direction.",
    formula="variance of the sampled vectors along a principal component / their variance",
    reference="after Luger, Kamath et al. 2026",
    more="has vectors that differ in fewer ways",
    axes={"space": "Space", "component": "Component"},
    with_errors=False,
)
CLUSTERS_FOUND = Measure(
    "clusters",
    title="Clusters of vectors",
    meaning="How many groups the head's queries, keys, values or outputs fall into; 1 where none "
    "stand out.",
    formula="k-means, from Ward's clusters, with the number of clusters, "
    f"{CLUSTERS[0]} to {CLUSTERS[-1]}, of the best mean silhouette in the first {REDUCED} "
    f"principal components, if that is {DISTINCT} or more",
    reference="Ward 1963; Rousseeuw 1987",
    unit="",
    more="has vectors of more kinds",
    axes={"space": "Space"},
    with_errors=False,
)
MEASURES = (COMPONENT_SHARE, CLUSTERS_FOUND)


def find_components(
    points: Float[Tensor, "head point dim"], count: int = COMPONENTS
) -> tuple[Float[Tensor, "head point component"], Float[Tensor, "head component"]]:
    """Places along the first principal components, and the share of variance of each.

    The sign of a component is free: the largest entry of its direction is positive.
    """
    centred = points.double() - points.double().mean(1, keepdim=True)
    present = min(count, *points.shape[1:])
    if points.shape[1] < points.shape[2]:  # the smaller of two products has the same components
        vectors = _first_vectors(centred @ centred.mT, present)
        directions = functional.normalize(centred.mT @ vectors, dim=1)
    else:
        directions = _first_vectors(centred.mT @ centred, present)
    largest = directions.gather(1, directions.abs().argmax(1, keepdim=True))
    places = centred @ directions * torch.where(largest < 0, -1.0, 1.0)
    total = centred.square().sum((1, 2)).clamp(min=TINY)
    shares = places.square().sum(1) / total[:, None]
    gap = (0, count - present)
    return functional.pad(places, gap), functional.pad(shares, gap)


def _first_vectors(
    products: Float[Tensor, "head size size"], count: int
) -> Float[Tensor, "head size component"]:
    """Eigenvectors of the largest eigenvalues; a CPU is quicker for matrices as small as these."""
    vectors = torch.linalg.eigh(products.cpu()).eigenvectors
    return vectors[..., -count:].flip(-1).to(products.device)


def bring_together(
    query: Float[Tensor, "head point dim"], key: Float[Tensor, "head point dim"]
) -> tuple[Float[Tensor, "head point dim"], Float[Tensor, "head point dim"]]:
    """Scale and move queries and keys so that they overlap, without changing attention.

    q·k stays if q is multiplied and k divided by the same number, here that which makes both as
    wide; and a vector added to all keys adds the same to every score of a row, which the softmax
    does not see (Yeh et al. 2023, AttentionViz).
    """
    query, key = query.double(), key.double()
    wide = [
        (points - points.mean(1, keepdim=True)).square().mean((1, 2)) for points in (query, key)
    ]
    factor = (wide[1].clamp(min=TINY) / wide[0].clamp(min=TINY)).pow(0.25)[:, None, None]
    query, key = query * factor, key / factor
    return query, key - key.mean(1, keepdim=True) + query.mean(1, keepdim=True)


def lay_out(points: Float[Tensor, "head point dim"]) -> Float[Tensor, "head point 2"]:
    """A plane in which close points stay close: t-SNE from the principal components.

    van der Maaten & Hinton 2008. Nothing in it is random, so that the same points give the same
    map; directions and distances between far points mean nothing.
    """
    count = points.shape[1]
    start, _ = find_components(points)
    spread = start.std(1, keepdim=True)[..., :1].clamp(min=TINY)
    places = start / spread * 1e-4
    if count < 4:
        return start / spread
    places = places.float()  # half of the time; a map has no sixth digit
    affinities = _affinities(points.double(), min(PERPLEXITY, (count - 1) / 3)).float()
    exaggerated = affinities * EXAGGERATION
    speed, gain = torch.zeros_like(places), torch.ones_like(places)
    rate = max(count / EXAGGERATION / 4, 10.0)
    for step in range(STEPS):
        early = step < EXAGGERATED
        slope = _slope(places, exaggerated if early else affinities)
        same = (slope * speed) < 0
        gain = torch.where(same, gain + 0.2, gain * 0.8).clamp(min=0.01)
        speed = (0.5 if early else 0.8) * speed - rate * gain * slope
        places = places + speed
        places = places - places.mean(1, keepdim=True)
    return places


def _affinities(
    points: Float[Tensor, "head point dim"], perplexity: float
) -> Float[Tensor, "head point point"]:
    """Symmetric chances of being neighbours; every point has about as many as the perplexity."""
    far = torch.cdist(points, points).square()
    far = far / far.mean((1, 2), keepdim=True).clamp(min=TINY)
    itself = torch.eye(far.shape[-1], dtype=torch.bool, device=far.device)
    low, high = torch.full_like(far[..., :1], -12.0), torch.full_like(far[..., :1], 12.0)
    chances = far
    for _ in range(40):  # bisect the logarithm of the sharpness
        middle = (low + high) / 2
        chances = (-far * middle.exp()).masked_fill(itself, -torch.inf).softmax(-1)
        entropy = -torch.xlogy(chances, chances).sum(-1, keepdim=True)
        is_wide = entropy > math.log(perplexity)
        low, high = torch.where(is_wide, middle, low), torch.where(is_wide, high, middle)
    both = chances + chances.mT
    return both / both.sum((1, 2), keepdim=True)


def _slope(
    places: Float[Tensor, "head point 2"], affinities: Float[Tensor, "head point point"]
) -> Float[Tensor, "head point 2"]:
    """Gradient of the divergence between the chances in the plane and the affinities."""
    length = places.square().sum(-1)
    apart = torch.baddbmm(length[:, None], places, places.mT, alpha=-2)  # less a square each
    near = apart.add_(length[..., None]).clamp_(min=0).add_(1).reciprocal_()
    near.diagonal(dim1=1, dim2=2).zero_()
    pull = torch.addcmul(affinities, near, 1 / near.sum((1, 2), keepdim=True), value=-1).mul_(near)
    return 4 * (pull.sum(-1, keepdim=True) * places - pull @ places)


def find_clusters(points: Float[Tensor, "head point dim"]) -> Int[Tensor, "head point"]:
    """The cluster of every point, the largest first; all 0 where no clusters stand out.

    k-means for every number of CLUSTERS, from the clusters of Ward (1963), which have nearly the
    least variance already: random starts take ten times as long. The number with the best mean
    silhouette (Rousseeuw 1987) counts if that is at least DISTINCT and no cluster is smaller than
    SMALLEST.
    """
    return torch.from_numpy(np.stack([_clusters_of(head) for head in points.cpu().numpy()]))


def _clusters_of(points: Float[np.ndarray, "point dim"]) -> Int[np.ndarray, "point"]:
    best, clusters = DISTINCT, np.zeros(len(points), np.int64)
    smallest = max(2, math.ceil(SMALLEST * len(points)))
    if len(points) < CLUSTERS[0] * smallest:
        return clusters
    tree, distances = ward(points), cdist(points, points)
    for number in CLUSTERS:
        labels = _k_means(points, fcluster(tree, number, "maxclust") - 1)
        sizes = np.bincount(labels, minlength=number)
        if sizes.min() < smallest:
            continue
        value = silhouette(distances, labels)
        if value > best:
            order = np.argsort(-sizes, kind="stable")
            best, clusters = value, np.argsort(order)[labels]
    return clusters


def _k_means(
    points: Float[np.ndarray, "point dim"], labels: Int[np.ndarray, "point"]
) -> Int[np.ndarray, "point"]:
    """Clusters whose points are nearest to their own mean, or the first ones with an empty one."""
    for _ in range(MEAN_STEPS):
        sizes = np.bincount(labels)
        if sizes.min() == 0:
            break
        is_member = labels == np.arange(len(sizes))[:, None]
        nearest = cdist(points, is_member @ points / sizes[:, None]).argmin(1)
        if (nearest == labels).all():
            break
        labels = nearest
    return labels


def silhouette(
    distances: Float[np.ndarray, "point point"], labels: Int[np.ndarray, "point"]
) -> float:
    """Mean silhouette of clusters of two points or more, from the distances of all points."""
    sizes, rows = np.bincount(labels), np.arange(len(labels))
    to_cluster = distances @ (labels[:, None] == np.arange(len(sizes)))
    inside = to_cluster[rows, labels] / (sizes[labels] - 1)
    to_cluster = to_cluster / sizes
    to_cluster[rows, labels] = np.inf
    outside = to_cluster.min(1)
    return float(((outside - inside) / np.maximum(np.maximum(inside, outside), TINY)).mean())
