"""The pass over a text's scores as one GPU kernel: scores and weights never leave the registers.

A program holds a block of keys and goes through the queries, so that sums over columns need no
exchange between programs and come out the same every time. Scores and weights are float32 whatever
the network's numbers are.

```
            queries →
  keys   ┌ diagonal: masks, |i − j|, no self
   ↓   a │ ▓ · · · ·      · the distance is i − j: two sums
       b │   ▓ · · ·      (a full mask has the other triangle too)
```
"""

import math

import torch
import triton  # pyright: ignore[reportMissingImports]
import triton.language as tl  # pyright: ignore[reportMissingImports]
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headscope.model.attention import TextAttention, widen
from headscope.observe.fused import PassSums
from headscope.observe.layer import PeakPairs

LOG2_E = 1 / math.log(2)
NOTHING = float("-inf")


def sum_on_gpu(
    text: TextAttention,
    content: Bool[Tensor, "token"],
    row_weights: Float[Tensor, "head query"],
    **launch: int,
) -> PassSums:
    """Sums over the pairs that count; see `headscope.observe.fused`."""
    heads, tokens = text.query.shape[:2]
    # Queries that do not count get a sum so large that all their weights are zero.
    lse = text.lse.masked_fill(~content, float("inf")) * LOG2_E
    found = torch.empty(4, heads, tokens, device=lse.device, dtype=torch.float32)
    _launch(text, lse.contiguous(), row_weights.float().contiguous(), found, launch)
    columns, scores, distance = found[:3].double() * content
    peak, key = found[3].masked_fill(~content, NOTHING).max(-1)
    query = _query_of(text, content, key)
    apart = PeakPairs(torch.exp2(peak), query, key)
    return PassSums(columns, scores.sum(-1) * text.scaling, distance.sum(-1), apart)


def _query_of(
    text: TextAttention, content: Bool[Tensor, "token"], key: Int[Tensor, "head"]
) -> Int[Tensor, "head"]:
    """The query that pays the largest weight to one key of every head."""
    heads, groups = torch.arange(len(key), device=key.device), len(key) // text.key.shape[0]
    keys = widen(text.key[heads // groups, key])  # head dim
    scores = (widen(text.query) @ keys[..., None])[..., 0] * text.scaling - text.lse
    tokens = torch.arange(scores.shape[1], device=key.device)
    others = tokens == key[:, None]
    if text.kind == "causal":
        others = tokens <= key[:, None]
    return scores.masked_fill(others | ~content, NOTHING).argmax(-1)


def _launch(
    text: TextAttention, lse: Tensor, row_weights: Tensor, found: Tensor, launch: dict[str, int]
) -> None:
    query, key = text.query.contiguous(), text.key.contiguous()
    heads, tokens, width = query.shape
    wide = query.dtype == torch.float32 or width > 128
    block_keys = launch.get("block_keys", 64 if wide else 128)
    block_queries = launch.get("block_queries", 32 if wide else 64)
    programs = (triton.cdiv(tokens, block_keys), heads)
    _sum_kernel[programs](  # pyright: ignore[reportIndexIssue]
        query,
        key,
        lse,
        row_weights,
        found,
        tokens,
        text.scaling * LOG2_E,
        heads // key.shape[0],
        heads * tokens,
        WIDTH=width,
        DIM=max(16, triton.next_power_of_2(width)),
        CAUSAL=text.kind == "causal",
        KEYS=block_keys,
        QUERIES=block_queries,
        PRECISION="ieee" if query.dtype == torch.float32 else "tf32",
        num_warps=launch.get("warps", 4),
        num_stages=launch.get("stages", 2 if wide else 3),
    )


@triton.jit
def _sum_kernel(  # noqa: ANN202
    query, key, lse, row_weights, found, tokens, scale, groups, plane,  # noqa: ANN001
    WIDTH: tl.constexpr, DIM: tl.constexpr, CAUSAL: tl.constexpr, KEYS: tl.constexpr,  # noqa: N803
    QUERIES: tl.constexpr, PRECISION: tl.constexpr,  # noqa: N803
):  # fmt: skip
    first = tl.program_id(0) * KEYS
    head = tl.program_id(1).to(tl.int64)
    keys = first + tl.arange(0, KEYS)
    dims = tl.arange(0, DIM)
    near = tl.arange(0, QUERIES)
    inside = (keys[:, None] < tokens) & (dims[None, :] < WIDTH)
    places = keys[:, None] * WIDTH + dims[None, :]
    k = tl.load(key + (head // groups) * tokens * WIDTH + places, mask=inside, other=0.0)
    query += head * tokens * WIDTH
    lse += head * tokens
    row_weights += head * tokens

    columns = tl.zeros([KEYS], tl.float32)
    scores = tl.zeros([KEYS], tl.float32)
    distance = tl.zeros([KEYS], tl.float32)
    peak = tl.full([KEYS], float("-inf"), tl.float32)

    if not CAUSAL:
        for start in range(0, first, QUERIES):  # queries before these keys
            columns, scores, distance, peak = _add_far(
                columns, scores, distance, peak, k, query, lse, row_weights, start + near, keys,
                dims, tokens, scale, first, WIDTH, PRECISION, -1.0,
            )  # fmt: skip

    for start in range(first, first + KEYS, QUERIES):  # the diagonal
        queries = start + near
        above, p, part = _weigh(
            k, query, lse, row_weights, queries, keys, dims, tokens, scale, WIDTH, PRECISION, CAUSAL
        )
        separation = tl.abs(queries[None, :] - keys[:, None])
        columns += tl.sum(p, 1)
        scores += part
        distance += tl.sum(p * separation.to(tl.float32), 1)
        peak = tl.maximum(peak, tl.max(tl.where(separation == 0, float("-inf"), above), 1))

    for start in range(first + KEYS, tokens, QUERIES):  # queries after these keys
        columns, scores, distance, peak = _add_far(
            columns, scores, distance, peak, k, query, lse, row_weights, start + near, keys,
            dims, tokens, scale, first, WIDTH, PRECISION, 1.0,
        )  # fmt: skip

    found += head * tokens + keys
    tl.store(found, columns, mask=keys < tokens)
    tl.store(found + plane, scores, mask=keys < tokens)
    tl.store(found + 2 * plane, distance, mask=keys < tokens)
    tl.store(found + 3 * plane, peak, mask=keys < tokens)


@triton.jit
def _add_far(  # noqa: ANN202
    columns, scores, distance, peak, k, query, lse, row_weights, queries, keys,  # noqa: ANN001
    dims, tokens, scale, first,  # noqa: ANN001
    WIDTH: tl.constexpr, PRECISION: tl.constexpr, SIGN: tl.constexpr,  # noqa: N803
):  # fmt: skip
    """Add queries that are all after the keys, or all before them."""
    above, p, part = _weigh(
        k, query, lse, row_weights, queries, keys, dims, tokens, scale, WIDTH, PRECISION, False
    )
    paid = tl.sum(p, 1)
    # |i − j| from the first key on: numbers no larger than they must be.
    ahead = SIGN * (queries - first).to(tl.float32)
    inside = SIGN * (keys - first).to(tl.float32)
    distance += tl.sum(p * ahead[None, :], 1) - inside * paid
    return columns + paid, scores + part, distance, tl.maximum(peak, tl.max(above, 1))


@triton.jit
def _weigh(  # noqa: ANN202
    k, query, lse, row_weights, queries, keys, dims, tokens, scale,  # noqa: ANN001
    WIDTH: tl.constexpr, PRECISION: tl.constexpr, CAUSAL: tl.constexpr,  # noqa: N803
):  # fmt: skip
    """Logarithms of weights, weights (key × query), and the sum of weight · row weight · score."""
    real = queries < tokens
    inside = real[None, :] & (dims[:, None] < WIDTH)
    q = tl.load(query + queries[None, :] * WIDTH + dims[:, None], mask=inside, other=0.0)
    s = tl.dot(k, q, input_precision=PRECISION)
    above = s * scale - tl.load(lse + queries, mask=real, other=float("inf"))[None, :]
    if CAUSAL:
        above = tl.where(keys[:, None] <= queries[None, :], above, float("-inf"))
    p = tl.exp2(above)
    w = tl.load(row_weights + queries, mask=real, other=0.0)
    return above, p, tl.sum(p * w[None, :] * s, 1)
