"""Pairwise divergences on any device: squared distances, hence matrix products, no logarithms.

With 1/s = ∫ e^(−ts) dt twice integrated, x ln x becomes a mixture of exponentials, and for every
element

    JS(p, q) = ¼ ∫ (e^(−τp) − e^(−τq))² / τ² dτ        over τ from 0 to ∞.

The trapezoid rule in ln τ converges exponentially. Nodes τ_k = 2^k·τ_0 leave an error of 2e-7 of
the mass, and the features E_k = 1 − e^(−τ_k·p) follow from one another by E ← E·(2 − E). Each node
then costs one product of the features with themselves: JS = Σ w_k·(E_k(p) − E_k(q))².
"""

import math

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from headscope.observe.show import full_precision

FIRST = 1 / 16  # τ_0
REACH = 4.0  # the last node: τ·p of the smallest element, e^(−2·4) of which is left out
TAIL = 5  # nodes that carry the sum over all τ below τ_0
BLOCKS_AT_ONCE = 64  # on a GPU; on a CPU one block at a time stays in the cache


def divergence_of_blocks(
    blocks: Float[Tensor, "block unit element"], floor: float
) -> Float[Tensor, "unit unit"]:
    """The divergence of every pair of units; elements are zero (padding) or at least `floor`."""
    nodes = _quadrature(floor)
    units = blocks.shape[1]
    gram = torch.zeros(units, units, dtype=torch.float64)
    with full_precision():
        for part in blocks.split(BLOCKS_AT_ONCE if blocks.is_cuda else 1):
            gram += _gram(part, nodes)
    own = gram.diagonal()
    upper = (own[:, None] + own[None, :] - 2 * gram).triu(1)
    return (upper + upper.T).clamp(min=0)


def _gram(
    part: Float[Tensor, "block unit element"], nodes: list[float]
) -> Float[Tensor, "unit unit"]:
    """Σ_k w_k·E_k·E_kᵀ: float32 within a block, float64 over blocks."""
    feature = -torch.expm1(-FIRST * part)
    gram = part.new_zeros(part.shape[0], part.shape[1], part.shape[1])
    for weight in nodes:
        gram.baddbmm_(feature, feature.mT, alpha=weight)
        feature = feature * (2 - feature)
    return gram.double().sum(0).cpu() if part.device.type != "mps" else gram.cpu().double().sum(0)


def _quadrature(floor: float) -> list[float]:
    """The weight ¼·ln 2/τ_k of every node, up to the node that still sees the smallest element."""
    count = max(TAIL, 1 + math.ceil(math.log2(REACH / (floor * FIRST))))
    weights = math.log(2) / 4 / (FIRST * 2.0 ** np.arange(count))
    weights[:TAIL] *= 1 + _tail()
    return weights.tolist()


def _tail() -> Float[np.ndarray, "node"]:
    """How the first nodes stand in for the infinitely many below them.

    The integrand g is a power series without constant term there, so Σ g(τ_0/2^k) over k ≥ 1 is
    Σ a_m·τ_0^m/(2^m − 1): a combination of g at the first nodes that is right for m = 1 … TAIL.
    """
    power = np.arange(1, TAIL + 1)
    return np.linalg.solve(2.0 ** np.outer(power, np.arange(TAIL)), 1 / (2.0**power - 1))
