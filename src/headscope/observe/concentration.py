"""How concentrated the rows of a head are: entropies, and the mean of their maxima."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

ENTROPY_SMOOTHING = 1e-4
MOST_NULL = 0.9  # rows with more than this on null tokens say nothing about the rest


def renormalised_entropy(
    kept: Float[Tensor, "*batch query key"], total: Float[Tensor, "*batch query"]
) -> Float[Tensor, "*batch query"]:
    """−Σ p ln p in nats with p = a / Σ a: ln s − (Σ a ln a) / s, so that the rows are read once."""
    # Not xlogy, which takes its logarithms one by one. Of a zero the logarithm only must be finite.
    nats = kept.clamp(min=torch.finfo(kept.dtype).tiny).log_().mul_(kept)
    return total.log() - nats.sum(-1) / total


def smooth(
    weights: Float[Tensor, "batch head query key"], mask: Bool[Tensor, "batch key"], amount: float
) -> Float[Tensor, "batch head query key"]:
    """p' = (1 − amount)·p + amount/n over the n tokens of the input; zero on padding."""
    mask = mask[:, None, None, :]
    smoothed = (1 - amount) * weights + amount / mask.sum(-1, keepdim=True)
    return smoothed.masked_fill(~mask, 0.0)


def smoothed_entropy(
    weights: Float[Tensor, "batch head query key"],
    mask: Bool[Tensor, "batch key"],
    amount: float = ENTROPY_SMOOTHING,
) -> Float[Tensor, "batch head query"]:
    """Entropy of every smoothed row in nats (Clark et al. 2019, Fig. 4)."""
    smoothed = smooth(weights, mask, amount)
    return -torch.xlogy(smoothed, smoothed).sum(-1)


def uniform_entropy(mask: Bool[Tensor, "batch token"]) -> Float[Tensor, "batch"]:
    """ln n: what a row that is uniform over all tokens of the input would have."""
    return mask.sum(-1).double().log()


def visible_uniform_entropy(mask: Bool[Tensor, "batch token"]) -> Float[Tensor, "batch"]:
    """The same for a causal model, whose i-th query sees i tokens: the mean of ln i."""
    entropy = mask.cumsum(-1).clamp(min=1).double().log() * mask
    return entropy.sum(-1) / mask.sum(-1)


def confidence(
    weights: Float[Tensor, "batch head query key"], mask: Bool[Tensor, "batch key"]
) -> Float[Tensor, "batch head query"]:
    """The largest weight of every row (its mean is the confidence of Voita et al. 2019)."""
    return weights.masked_fill(~mask[:, None, None, :], 0.0).amax(-1)
