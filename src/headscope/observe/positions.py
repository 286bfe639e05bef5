"""How much every head attends to a fixed offset: the previous token, itself, the next one."""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor


def offset_share(
    weights: Float[Tensor, "batch head query key"],
    mask: Bool[Tensor, "batch token"],
    offsets: Sequence[int],
) -> Float[Tensor, "batch head offset"]:
    """Σ_i a[i, i+o] / n for every offset o (Clark et al. 2019, §3.1).

    n is the number of tokens of the input for every offset, also where i+o falls off its end.
    """
    shares = [on_offset(weights, mask, offset) for offset in offsets]
    return torch.stack(shares, dim=-1) / mask.sum(-1)[:, None, None]


def on_offset(
    weights: Float[Tensor, "batch head query key"], mask: Bool[Tensor, "batch token"], offset: int
) -> Float[Tensor, "batch head"]:
    """Σ_i a[i, i+o] between tokens of the input."""
    if abs(offset) >= mask.shape[1]:
        return weights.new_zeros(weights.shape[:2])
    queries = mask[:, max(0, -offset) : mask.shape[1] - max(0, offset)]
    keys = mask[:, max(0, offset) : mask.shape[1] - max(0, -offset)]
    diagonal = weights.diagonal(offset, dim1=-2, dim2=-1)
    return (diagonal * (queries & keys)[:, None]).sum(-1)
