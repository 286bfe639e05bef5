"""How far back (or away) each head looks (Vig & Belinkov 2019, Eq. 6, Fig. 11)."""

from headscope.metrics.head_ratio import HeadRatio, Terms
from headscope.metrics.metric import Grid
from headscope.observe.layer import ObservedLayer


def distance_terms(layer: ObservedLayer) -> Terms:
    """Σ a[i,j]·|i − j| in tokens and Σ a[i,j]; for a causal head |i − j| = i − j."""
    return layer.pair_sums[..., 2:3], layer.total[..., None]


def distance(grid: Grid) -> HeadRatio:
    """Mean distance of attention in tokens.

    Variables: distance, distance_*
    Formula: Σ a[i, j]·|i − j| / Σ a[i, j]
    Reference: Vig & Belinkov 2019, Eq. 6, Fig. 11
    Range: 0 to the longest input, in tokens
    Cost: n², one product with the pair features that alignment shares
    """
    return HeadRatio("distance", grid, distance_terms, description="mean distance in tokens")
