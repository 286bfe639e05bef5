"""Where the vectors of a head lie: principal components, a map of queries and keys, clusters.

All functions take the points of many heads at once: head × point × dimension.
"""

import math

import torch
from jaxtyping import Float, Int
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
RESTARTS, ROUNDS = 3, 12
REDUCED = 8  # principal components in which clusters are sought

COMPONENT_SHARE = Measure(
    "component_share",
    title="Share of a principal component",
    meaning="How much of the variance of the head's queries, keys, values or outputs lies along "
    "one direction.",
    formula="variance of the sampled vectors along a principal component / their variance",
    reference="after Luger, Kamath et al. 2026",
    cost="a second pass over the inputs of the sampled tokens",
    more="has vectors that differ in fewer ways",
    axes={"space": "Space", "component": "Component"},
    with_errors=False,
)
CLUSTERS_FOUND = Measure(
    "clusters",
    title="Clusters of vectors",
    meaning="How many groups the head's queries, keys, values or outputs fall into; 1 where none "
    "stand out.",
    formula=f"k-means with the number of clusters, {CLUSTERS[0]} to {CLUSTERS[-1]}, of the best "
    f"mean silhouette in the first {REDUCED} principal components, if that is {DISTINCT} or more",
    reference="Rousseeuw 1987",
    unit="",
    range="from 1",
    cost="none beyond component_share",
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
    _, sizes, directions = torch.linalg.svd(centred, full_matrices=False)
    found = min(count, directions.shape[1])
    first = directions[:, :found]
    largest = first.gather(-1, first.abs().argmax(-1, keepdim=True))
    first = first * torch.where(largest < 0, -1.0, 1.0)
    whole = sizes.square().sum(-1, keepdim=True).clamp(min=TINY)
    shares = sizes[:, :found].square() / whole
    places = centred @ first.mT
    gap = (0, count - found)
    return functional.pad(places, gap), functional.pad(shares, gap)


def bring_together(
    query: Float[Tensor, "head point dim"], key: Float[Tensor, "head point dim"]
) -> tuple[Float[Tensor, "head point dim"], Float[Tensor, "head point dim"]]:
    """Queries and keys so scaled and moved that they lie together, attention left as it is.

    q·k stays if q is multiplied and k divided by the same number, here that which makes both as
    wide; and a vector added to all keys adds the same to every score of a row, which the softmax
    does not see (Yeh et al. 2023, AttentionViz).
    """
    query, key = query.double(), key.double()
    wide = [(each - each.mean(1, keepdim=True)).square().mean((1, 2)) for each in (query, key)]
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
    wanted = _affinities(points.double(), min(PERPLEXITY, (count - 1) / 3)).float()
    exaggerated = wanted * EXAGGERATION
    speed, gain = torch.zeros_like(places), torch.ones_like(places)
    rate = max(count / EXAGGERATION / 4, 10.0)
    for step in range(STEPS):
        early = step < EXAGGERATED
        slope = _slope(places, exaggerated if early else wanted)
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
    own = torch.eye(far.shape[-1], dtype=torch.bool, device=far.device)
    low, high = torch.full_like(far[..., :1], -12.0), torch.full_like(far[..., :1], 12.0)
    chances = far
    for _ in range(40):  # bisect the logarithm of the sharpness
        middle = (low + high) / 2
        chances = (-far * middle.exp()).masked_fill(own, -torch.inf).softmax(-1)
        entropy = -torch.xlogy(chances, chances).sum(-1, keepdim=True)
        is_wide = entropy > math.log(perplexity)
        low, high = torch.where(is_wide, middle, low), torch.where(is_wide, high, middle)
    both = chances + chances.mT
    return both / both.sum((1, 2), keepdim=True)


def _slope(
    places: Float[Tensor, "head point 2"], wanted: Float[Tensor, "head point point"]
) -> Float[Tensor, "head point 2"]:
    """Of the divergence between the chances in the plane and the wanted ones."""
    length = places.square().sum(-1)
    apart = torch.baddbmm(length[:, None], places, places.mT, alpha=-2)  # less a square each
    near = apart.add_(length[..., None]).clamp_(min=0).add_(1).reciprocal_()
    near.diagonal(dim1=1, dim2=2).zero_()
    pull = torch.addcmul(wanted, near, 1 / near.sum((1, 2), keepdim=True), value=-1).mul_(near)
    return 4 * (pull.sum(-1, keepdim=True) * places - pull @ places)


def find_clusters(
    points: Float[Tensor, "head point dim"], seed: int = 0
) -> Int[Tensor, "head point"]:
    """The cluster of every point, the largest first; all 0 where no clusters stand out.

    k-means for every number of CLUSTERS; the number with the best mean silhouette (Rousseeuw 1987)
    counts if that is at least DISTINCT and no cluster is smaller than SMALLEST.
    """
    heads, count = points.shape[:2]
    best = points.new_full((heads,), DISTINCT, dtype=torch.float64)
    found = torch.zeros(heads, count, dtype=torch.long, device=points.device)
    far = torch.cdist(points, points).double()
    for number in CLUSTERS:
        if number * max(2, math.ceil(SMALLEST * count)) > count:
            break
        labels = _means(points, number, seed)
        members = functional.one_hot(labels, number).double()
        value = mean_silhouette(far, members)
        value[members.sum(1).min(-1).values < max(2, SMALLEST * count)] = -1
        better = value > best
        found, best = torch.where(better[:, None], labels, found), torch.where(better, value, best)
    return _by_size(found)


def mean_silhouette(
    far: Float[Tensor, "head point point"], members: Float[Tensor, "head point cluster"]
) -> Float[Tensor, "head"]:
    """Mean of (b − a) / max(a, b): how far the own cluster is, a, and the nearest other one, b."""
    sizes = members.sum(1, keepdim=True)
    sums = far @ members
    is_own = members > 0
    own = (sums * members).sum(-1) / ((sizes * members).sum(-1) - 1).clamp(min=1)
    other = (sums / sizes.clamp(min=1)).masked_fill(is_own | (sizes == 0), torch.inf).amin(-1)
    value = (other - own) / torch.maximum(own, other).clamp(min=TINY)
    alone = (sizes * members).sum(-1) <= 1
    return value.masked_fill(alone, 0.0).mean(-1)


def _means(points: Float[Tensor, "head point dim"], number: int, seed: int) -> Tensor:
    """The labels of the best of some k-means, each from another seeded start."""
    starts = (_start(points, number, seed + restart) for restart in range(RESTARTS))
    labels, spread = zip(*(_one_means(points, start) for start in starts), strict=True)
    best = torch.stack(spread).argmin(0)  # of equals the first
    return torch.stack(labels)[best, torch.arange(len(best), device=best.device)]


def _start(points: Tensor, number: int, seed: int) -> Float[Tensor, "head cluster dim"]:
    """Centres as k-means++ draws them: far from each other (Arthur & Vassilvitskii 2007)."""
    draws = torch.rand(number, generator=torch.Generator().manual_seed(seed))
    heads, count = points.shape[:2]
    first = torch.full((heads,), int(draws[0] * count), device=points.device)
    every = torch.arange(heads, device=points.device)
    centres = [points[every, first]]
    for step in range(1, number):
        far = torch.cdist(points, torch.stack(centres, 1)).square().amin(-1)
        running = far.cumsum(-1)
        wanted = float(draws[step]) * running[:, -1:]
        centres.append(
            points[every, torch.searchsorted(running, wanted)[:, 0].clamp(max=count - 1)]
        )
    return torch.stack(centres, 1)


def _one_means(points: Tensor, centres: Tensor) -> tuple[Tensor, Tensor]:
    labels = torch.full(points.shape[:2], -1, dtype=torch.long, device=points.device)
    for _ in range(ROUNDS):
        now = torch.cdist(points, centres).argmin(-1)
        if torch.equal(now, labels):
            break
        labels = now
        members = functional.one_hot(labels, centres.shape[1]).to(points.dtype)
        sizes = members.sum(1)[..., None]
        means = members.mT @ points / sizes.clamp(min=1)
        centres = torch.where(sizes > 0, means, centres)
    return labels, torch.cdist(points, centres).amin(-1).square().sum(-1)


def _by_size(labels: Int[Tensor, "head point"]) -> Int[Tensor, "head point"]:
    sizes = functional.one_hot(labels, max(CLUSTERS)).sum(1)
    rank = sizes.argsort(dim=-1, descending=True, stable=True).argsort(-1)
    return rank.gather(-1, labels)
