"""Pairwise divergences on a GPU with Triton: every logarithm once, nothing but the result written.

A program takes a tile of 16 × 16 pairs of heads and a stretch of elements. The heads' elements are
read from the cache, and the sums of a pair never leave the registers until the stretch is done:

    Σ m ln m with m = (p + q)/2        float32 within a stretch, float64 over stretches
"""

import torch
import triton  # pyright: ignore[reportMissingImports]
import triton.language as tl  # pyright: ignore[reportMissingImports]
from jaxtyping import Float
from torch import Tensor

TILE = 16
STEP = 32  # elements at a time: a power of two that divides BLOCK
TINY = tl.constexpr(1e-30)  # only so that the logarithm of padding is finite


def sum_middles(blocks: Float[Tensor, "block unit element"]) -> Float[Tensor, "unit unit"]:
    """Σ m ln m with m = (p+q)/2 for every pair of units, upper triangle, on the device."""
    count, units, elements = blocks.shape
    sums = torch.zeros(count, units, units, device=blocks.device)
    tiles = triton.cdiv(units, TILE)
    _add_entropies[(tiles * tiles, count)](  # pyright: ignore[reportIndexIssue]
        blocks, sums, units, elements, tiles, TILE=TILE, STEP=STEP
    )
    return sums.sum(0, dtype=torch.float64)


@triton.jit
def _add_entropies(
    blocks,  # noqa: ANN001
    sums,  # noqa: ANN001
    units,  # noqa: ANN001
    elements,  # noqa: ANN001
    tiles,  # noqa: ANN001
    TILE: tl.constexpr,  # noqa: N803
    STEP: tl.constexpr,  # noqa: N803
) -> None:
    left, right = tl.program_id(0) // tiles, tl.program_id(0) % tiles
    block = tl.program_id(1).to(tl.int64)
    if left <= right:
        i, j = left * TILE + tl.arange(0, TILE), right * TILE + tl.arange(0, TILE)
        k = tl.arange(0, STEP)
        start = blocks + block * units * elements
        total = tl.zeros((TILE, TILE, STEP), tl.float32)
        for first in range(0, elements, STEP):
            p = tl.load(start + i[:, None] * elements + (first + k), i[:, None] < units, 0.0)
            q = tl.load(start + j[:, None] * elements + (first + k), j[:, None] < units, 0.0)
            middle = 0.5 * (p[:, None, :] + q[None, :, :])
            total += middle * tl.log(tl.maximum(middle, TINY))
        place = sums + block * units * units + i[:, None] * units + j[None, :]
        there = (i[:, None] < units) & (j[None, :] < units)
        tl.store(place, tl.sum(total, 2), there)
