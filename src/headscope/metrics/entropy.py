"""How dispersed each head's attention is (Vig & Belinkov 2019, Eq. 7, Fig. 12)."""

from headscope.metrics.head_ratio import HeadRatio, Terms
from headscope.metrics.metric import Grid
from headscope.observe.layer import ObservedLayer


def entropy_terms(layer: ObservedLayer) -> Terms:
    """Entropies of the rows that count, summed, and how many they are."""
    return layer.nats[..., None], layer.counted.sum(-1, keepdim=True).float()


def entropy(grid: Grid) -> HeadRatio:
    """Mean entropy of the rows, null weight dropped and the rest renormalised.

    Variables: entropy, entropy_*
    Formula: mean over rows of −Σ p ln p with p = a / Σ a; rows with more than 0.9 on null
        tokens do not count
    Reference: Vig & Belinkov 2019, Eq. 7, Fig. 12
    Range: 0 to ln n, in nats
    Cost: n² with a logarithm for every weight
    """
    return HeadRatio("entropy", grid, entropy_terms, description="mean entropy in nats")
