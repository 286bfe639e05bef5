"""One pass over the scores of a text whose row sums are known: everything that needs all pairs.

On a GPU one kernel keeps the scores in registers; elsewhere blocks of rows stay in the cache.
"""

from dataclasses import dataclass
from importlib.util import find_spec

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headscope.model.attention import TextAttention
from headscope.model.capture.kernels import block_rows
from headscope.observe.reduced import Peaks

WIDEST = 256  # head width that fits a GPU's registers


@dataclass(frozen=True)
class PassSums:
    """Sums over the pairs that count, and the largest weight between two tokens."""

    columns: Float[Tensor, "head key"]
    scores: Float[Tensor, "head"]  # Σ row weight · a · z
    distance: Float[Tensor, "head"]  # Σ a · |i − j|
    apart: Peaks  # without a batch axis
    rows: Float[Tensor, "head query"] | None = None  # where the pass goes row by row


def sum_text(
    text: TextAttention,
    content: Bool[Tensor, "token"],
    row_weights: Float[Tensor, "head query"],
) -> PassSums:
    """Reduce a text with a causal or full mask; null tokens are no part of any pair."""
    if text.query.is_cuda and has_kernel(text.query):
        from headscope.observe.fused_kernel import sum_on_gpu

        return sum_on_gpu(text, content, row_weights)
    return sum_in_blocks(text, content, row_weights)


def has_kernel(query: Tensor) -> bool:
    """Whether the GPU kernel takes these numbers, and its compiler is there."""
    known = query.dtype in (torch.float32, torch.float16, torch.bfloat16)
    return known and query.shape[-1] <= WIDEST and find_spec("triton") is not None


def sum_in_blocks(
    text: TextAttention,
    content: Bool[Tensor, "token"],
    row_weights: Float[Tensor, "head query"],
    block: int | None = None,
) -> PassSums:
    """The pass in plain tensor operations, `block` query rows at a time."""
    heads, tokens = text.query.shape[:2]
    block = block or block_rows(heads, tokens, content.device)
    columns = text.lse.new_zeros(heads, tokens, dtype=torch.float64)
    scores, distance = columns.new_zeros(heads), columns.new_zeros(heads)
    apart = Peaks(text.lse.new_zeros(heads), *columns.new_zeros(2, heads).long())
    paid: list[Tensor] = []
    for start in range(0, tokens, block):
        found = _sum_block(text, content, row_weights, slice(start, min(start + block, tokens)))
        columns[:, : found.columns.shape[1]] += found.columns
        scores += found.scores
        distance += found.distance
        apart = apart.larger(found.apart)
        assert found.rows is not None
        paid.append(found.rows)
    return PassSums(columns * content, scores, distance, apart, torch.cat(paid, -1) * content)


def _sum_block(text: TextAttention, content: Tensor, row_weights: Tensor, rows: slice) -> PassSums:
    keys = rows.stop if text.kind == "causal" else text.key.shape[1]
    scores = text.scores(rows.start, rows.stop, keys)
    weights = (scores - text.lse[:, rows, None]).exp_()
    of_queries, of_keys = content[rows].to(weights.dtype), content[:keys].to(weights.dtype)
    columns = torch.matmul(of_queries, weights)
    pairs = _separation(rows, keys, content.device) * of_queries[:, None] * of_keys
    # Row by row, then in float64: one long float32 sum would lose the fifth digit.
    distance = torch.einsum("hqk,qk->hq", weights, pairs.to(weights.dtype)).double().sum(-1)
    by_row = scores.mul_(weights) @ of_keys
    paid = weights @ of_keys
    apart = _apart(weights, (~content).nonzero()[:, 0], rows)
    return PassSums(columns, (by_row * row_weights[:, rows]).sum(-1), distance, apart, paid)


def _separation(rows: slice, keys: int, device: torch.device) -> Float[Tensor, "query key"]:
    queries = torch.arange(rows.start, rows.stop, device=device, dtype=torch.float32)
    return (queries[:, None] - torch.arange(keys, device=device, dtype=torch.float32)).abs()


def _apart(weights: Tensor, null: Int[Tensor, "some"], rows: slice) -> Peaks:
    """The largest weight between two tokens that count; overwrites the others."""
    keys = weights.shape[-1]
    weights.diagonal(rows.start, dim1=-2, dim2=-1).zero_()
    weights.index_fill_(1, null[(null >= rows.start) & (null < rows.stop)] - rows.start, 0)
    weights.index_fill_(2, null[null < keys], 0)
    weight, place = weights.flatten(1).max(-1)
    return Peaks(weight, place // keys + rows.start, place % keys)
