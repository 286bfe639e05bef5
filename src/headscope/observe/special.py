"""How much attention special tokens and punctuation receive, and from whom."""

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor

# The classes of keys of Clark et al. 2019, Fig. 2; a token's label is its place here.
SPECIAL = ("cls", "sep", "punct")
PUNCTUATION = frozenset({".", ","})  # exactly these two, as in the paper


def received(
    weights: Float[Tensor, "batch head query key"], classes: Shaped[Tensor, "batch key class"]
) -> Float[Tensor, "batch head query class"]:
    """Weight that every query pays to every class of keys: one matrix product for all classes."""
    return weights @ classes[:, None].to(weights.dtype)


def mean_over(
    values: Float[Tensor, "batch head query *item"], rows: Bool[Tensor, "batch query"]
) -> Float[Tensor, "batch head *item"]:
    """Mean over some queries of each input; NaN in inputs that have none of them."""
    rows = rows.reshape(rows.shape[0], 1, rows.shape[1], *[1] * (values.ndim - 3))
    return torch.where(rows, values, 0).sum(2) / rows.sum(2)
