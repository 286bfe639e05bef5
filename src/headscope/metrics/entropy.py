"""How dispersed each head's attention is (Vig & Belinkov 2019, Eq. 7, Fig. 12)."""

import torch
from jaxtyping import Float
from torch import Tensor

from headscope.metrics.head_ratio import HeadRatio, Terms
from headscope.metrics.layer import ObservedLayer
from headscope.metrics.metric import Grid

MOST_NULL = 0.9  # rows with more than this on null tokens say nothing about the rest


def renormalised_entropy(
    kept: Float[Tensor, "*batch query key"], total: Float[Tensor, "*batch query"]
) -> Float[Tensor, "*batch query"]:
    """−Σ p ln p in nats with p = a / Σ a: ln s − (Σ a ln a) / s, so that the rows are read once."""
    return total.log() - torch.xlogy(kept, kept).sum(-1) / total


def entropy_terms(layer: ObservedLayer) -> Terms:
    """Entropies of the rows that count, summed, and how many they are."""
    counted = (layer.to_null <= MOST_NULL) & (layer.rows > 0)
    nats = renormalised_entropy(layer.kept, layer.rows).masked_fill(~counted, 0.0)
    return nats.sum(-1, keepdim=True), counted.sum(-1, keepdim=True).float()


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
