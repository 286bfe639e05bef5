"""How differently two heads attend: Jensen–Shannon divergence between all pairs of heads.

    JS(p, q) = H((p+q)/2) − (H(p) + H(q))/2        summed over all rows of all inputs, in nats

Only a sum over pairs (query, key) is left of the rows, so padding and what a causal mask hides are
dropped first, and the rest is cut into blocks that fit into the cache. Three implementations go on
from there; they agree within 1e-6 of the value:

```
numba_loop      compiled logarithms on the CPU, needs numba
triton_kernel   the same on CUDA, needs Triton, which comes with torch there
divergence_of_blocks  matrix products without any logarithm, on every device
```

Pairwise divergences on any device: squared distances, hence matrix products, no logarithms.

With 1/s = ∫ e^(−ts) dt twice integrated, x ln x becomes a mixture of exponentials, and for every
element

    JS(p, q) = ¼ ∫ (e^(−τp) − e^(−τq))² / τ² dτ        over τ from 0 to ∞.

The trapezoid rule in ln τ converges exponentially. Nodes τ_k = 2^k·τ_0 leave an error of 2e-7 of
the mass, and the features E_k = 1 − e^(−τ_k·p) follow from one another by E ← E·(2 − E). Each node
then costs one product of the features with themselves: JS = Σ w_k·(E_k(p) − E_k(q))².
"""

import math
from importlib.util import find_spec
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from headscope.observe.show import full_precision

Implementation = Literal["numba", "triton", "products"]
SMOOTHING = 1e-3
BLOCK = 512  # elements: a block of 144 heads takes 288 kB, which a core's second-level cache holds
FIRST = 1 / 16  # τ_0
REACH = 4.0  # the last node: τ·p of the smallest element, e^(−2·4) of which is left out
TAIL = 5  # nodes that carry the sum over all τ below τ_0
BLOCKS_AT_ONCE = 64  # on a GPU; on a CPU one block at a time stays in the cache


def divergence(
    weights: Float[Tensor, "unit query key"], *, causal: bool, smoothing: float = SMOOTHING
) -> Float[Tensor, "unit unit"]:
    """Divergences between all heads of a model, summed over the rows of one input (Fig. 6).

    Rows are smoothed first, p' = (1 − s)·p + s/n with n the number of tokens, so that no logarithm
    is infinite. Keys that a causal model hides hold s/n in every head and add nothing. The result
    is float64 and may still be on the device of the weights.
    """
    pieces = _blocks(weights, causal, smoothing)
    chosen = choose_implementation(weights.device)
    if chosen == "numba":
        from headscope.metrics.divergence import numba_loop

        return torch.from_numpy(numba_loop.divergence_of_blocks(pieces.numpy()))
    if chosen == "triton":
        from headscope.metrics.divergence import triton_kernel

        return triton_kernel.divergence_of_blocks(pieces)
    return divergence_of_blocks(pieces, floor=smoothing / weights.shape[-1])


def choose_implementation(device: torch.device) -> Implementation:
    """Compiled logarithms where their compiler is there and fits the device, else products."""
    compilers: dict[str, Implementation] = {"cpu": "numba", "cuda": "triton"}
    compiler = compilers.get(device.type)
    return compiler if compiler is not None and find_spec(compiler) is not None else "products"


def _blocks(
    weights: Float[Tensor, "unit query key"], causal: bool, smoothing: float
) -> Float[Tensor, "block unit element"]:
    """Smoothed weights of all visible pairs, cut into blocks; the last one is filled with zeros."""
    size = weights.shape[-1]
    elements = weights.detach().float().flatten(1)
    if causal:
        query, key = torch.tril_indices(size, size, device=weights.device)
        elements = elements[:, query * size + key]
    elements = torch.add(elements * (1 - smoothing), smoothing / size)
    padded = functional.pad(elements, (0, -elements.shape[1] % BLOCK))
    return padded.unflatten(1, (-1, BLOCK)).transpose(0, 1).contiguous()


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
