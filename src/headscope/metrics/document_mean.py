"""Means over documents that weigh the same, however long they are (Clark et al. 2019).

Each input is averaged first. In terms of a ratio of sums its numerator is that average and its
denominator is one, so heads get their standard errors over documents from the same sums.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from headscope.metrics.head_ratio import HeadRatio, Terms
from headscope.metrics.metric import Axis, Grid
from headscope.observe.layer import ObservedLayer


def document_mean(
    name: str,
    grid: Grid,
    values: Callable[[ObservedLayer], Float[Tensor, "batch head item"]],
    axis: Axis | None = None,
    description: str = "",
) -> HeadRatio:
    """The mean over documents of a value of every head; NaN marks documents that have none."""

    def terms(layer: ObservedLayer) -> Terms:
        return known(values(layer))

    return HeadRatio(name, grid, terms, axis, description, shared=False)


def known(
    values: Float[Tensor, "*shape"],
) -> tuple[Float[Tensor, "*shape"], Float[Tensor, "*shape"]]:
    """Numerators and denominators: a value and one, or zero and zero where it is NaN."""
    there = ~values.isnan()
    return torch.where(there, values, 0.0), there.to(values.dtype)
