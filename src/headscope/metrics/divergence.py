"""How differently two heads attend: Jensen–Shannon divergence between all pairs of heads.

    JS(p, q) = H((p+q)/2) − (H(p) + H(q))/2        summed over all rows of all inputs, in nats

Only a sum over pairs (query, key) is left of the rows, so padding and what a causal mask hides are
dropped first, and what remains is cut into blocks that fit into the cache. Three ways lead on from
there: compiled logarithms on the CPU (divergence_kernel, needs numba) and on CUDA
(divergence_triton, needs Triton, which comes with torch there), and matrix products without any
logarithm on every device (divergence_product). They agree within 1e-6 of the value.
"""

from importlib.util import find_spec
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

Way = Literal["numba", "triton", "products"]
SMOOTHING = 1e-3
BLOCK = 512  # elements: a block of 144 heads takes 288 kB, which a core's second-level cache holds


def divergence(
    weights: Float[Tensor, "unit query key"], *, causal: bool, smoothing: float = SMOOTHING
) -> Float[Tensor, "unit unit"]:
    """Divergences between all heads of a model, summed over the rows of one input (Fig. 6).

    Rows are smoothed first, p' = (1 − s)·p + s/n with n the number of tokens, so that no logarithm
    is infinite. Keys that a causal model hides hold s/n in every head and add nothing. The result
    is float64 and may still be on the device of the weights.
    """
    pieces = _blocks(weights, causal, smoothing)
    way = choose_way(weights.device)
    if way == "numba":
        from headscope.metrics import divergence_kernel

        return torch.from_numpy(divergence_kernel.divergence_of_blocks(pieces.numpy()))
    if way == "triton":
        from headscope.metrics import divergence_triton

        return divergence_triton.divergence_of_blocks(pieces)
    from headscope.metrics import divergence_product

    return divergence_product.divergence_of_blocks(pieces, floor=smoothing / weights.shape[-1])


def choose_way(device: torch.device) -> Way:
    """Compiled logarithms where their compiler is there and fits the device, else products."""
    compilers: dict[str, Way] = {"cpu": "numba", "cuda": "triton"}
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
