"""Which heads behave alike: a map, an order and the nearest heads, from pairwise divergences."""

from typing import Any

import numpy as np
from jaxtyping import Float, Int
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform
from sklearn.manifold import smacof

SMALLEST_MAP = 3  # fewer heads than this lie on a line whatever they do


def why_no_map(divergence: Float[np.ndarray, "unit unit"]) -> str | None:
    """The reason why these heads cannot be laid out in a plane, or None."""
    if len(divergence) < SMALLEST_MAP:
        return f"a map needs at least {SMALLEST_MAP} heads and the model has {len(divergence)}"
    if not np.isfinite(divergence).all():
        return "the corpus has no usable segment to compare heads on"
    if not divergence.any():
        return "all heads are the same on this corpus"
    return None


def head_positions(
    divergence: Float[np.ndarray, "unit unit"], *, seed: int, starts: int = 4
) -> tuple[Float[np.ndarray, "unit axis"], float]:
    """Metric multidimensional scaling to two axes, and its normalised stress (0 is a perfect fit).

    Divergences are scaled to a largest value of one, so that the map does not depend on how many
    rows they were summed over; the best of several seeded random starts is taken.
    """
    scaled = divergence / divergence.max()
    options: dict[str, Any] = {"n_init": starts, "random_state": seed, "normalized_stress": True}
    fit: Any = smacof(scaled, metric=True, n_components=2, **options)
    return fit[0] - fit[0].mean(0), float(fit[1])


def head_order(divergence: Float[np.ndarray, "unit unit"]) -> Int[np.ndarray, "unit"]:
    """The heads in the order of the leaves of an average-linkage tree, neighbours side by side."""
    condensed = squareform(divergence, checks=False)
    return leaves_list(linkage(condensed, method="average", optimal_ordering=True))


def nearest_heads(
    divergence: Float[np.ndarray, "unit unit"], count: int
) -> Int[np.ndarray, "unit neighbour"]:
    """For every head the heads that diverge least from it, nearest first."""
    distance = divergence.copy()
    np.fill_diagonal(distance, np.inf)
    return np.argsort(distance, axis=1, kind="stable")[:, :count]
