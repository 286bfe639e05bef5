"""How differently two heads attend: Jensen–Shannon divergence between all pairs of heads.

    JS(p, q) = H((p+q)/2) − (H(p) + H(q))/2        summed over all rows of all inputs, in nats

Only a sum over pairs (query, key) is left of the rows, so padding and what a causal mask hides are
dropped first, and the rest is cut into blocks that fit into the cache. Three implementations go on
from there; they agree within 1e-6 of the value:

```
numba_loop      compiled logarithms on the CPU, needs numba
triton_kernel   the same on CUDA, needs Triton, which comes with torch there
products        matrix products without any logarithm, on every device
```
"""

from importlib.util import find_spec
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from headscope.metrics.divergence import products

Implementation = Literal["numba", "triton", "products"]
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
    chosen = choose_implementation(weights.device)
    if chosen == "numba":
        from headscope.metrics.divergence import numba_loop

        return torch.from_numpy(numba_loop.divergence_of_blocks(pieces.numpy()))
    if chosen == "triton":
        from headscope.metrics.divergence import triton_kernel

        return triton_kernel.divergence_of_blocks(pieces)
    return products.divergence_of_blocks(pieces, floor=smoothing / weights.shape[-1])


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
