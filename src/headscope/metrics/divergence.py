"""How differently two heads attend: Jensen–Shannon divergence between all pairs of heads.

    JS(p, q) = H((p+q)/2) − (H(p) + H(q))/2        summed over all rows of all inputs, in nats

Only a sum over pairs (query, key) is left of the rows, so padding and what a causal mask hides are
dropped first, and what remains is cut into blocks that fit into the cache. Two ways lead on from
there: compiled logarithms on the CPU (divergence_kernel, needs numba), and matrix products without
any logarithm on every device (divergence_product). They agree within 1e-6 of the value.
"""

from importlib.util import find_spec

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

SMOOTHING = 1e-3
BLOCK = 512  # elements: a block of 144 heads takes 288 kB, which a core's second-level cache holds


def divergence(
    weights: Float[Tensor, "unit query key"], *, causal: bool, smoothing: float = SMOOTHING
) -> Float[np.ndarray, "unit unit"]:
    """Divergences between all heads of a model, summed over the rows of one input (Fig. 6).

    Rows are smoothed first, p' = (1 − s)·p + s/n with n the number of tokens, so that no logarithm
    is infinite. Keys that a causal model hides hold s/n in every head and add nothing.
    """
    pieces = _blocks(weights, causal, smoothing)
    if uses_kernel(weights.device):
        from headscope.metrics.divergence_kernel import divergence_of_blocks

        return divergence_of_blocks(pieces.numpy())
    from headscope.metrics.divergence_product import divergence_of_blocks

    return divergence_of_blocks(pieces, floor=smoothing / weights.shape[-1])


def uses_kernel(device: torch.device) -> bool:
    """Whether the compiled kernel is there and fits the device."""
    return device.type == "cpu" and find_spec("numba") is not None


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
