"""Attention of texts that follow one another, as one GPU kernel in true float32.

A program holds a block of queries and goes through the keys of their texts:

```
            keys →
  queries ┌ a a b b b        a block may have tokens of several texts;
   ↓    a │ x ·              · what belongs to another text, or comes later, is masked
        b │     x x ·
```
"""

import torch
import triton  # pyright: ignore[reportMissingImports]
import triton.language as tl  # pyright: ignore[reportMissingImports]
from torch import Tensor

from headscope.model.attention import Kind, Packing
from headscope.model.capture.gpu.packed import Attended

BLOCK = 32  # queries, and keys at a time


def attend_on_gpu(
    query: Tensor, key: Tensor, value: Tensor, scaling: float, kind: Kind, packing: Packing
) -> Attended:
    """Outputs and row sums; see `headscope.model.capture.gpu.packed`."""
    tokens, heads, width = query.shape
    output = torch.empty_like(query, memory_format=torch.contiguous_format)
    lse = torch.empty(heads, tokens, dtype=torch.float32, device=query.device)
    programs = (triton.cdiv(tokens, BLOCK), heads)
    _attend[programs](  # pyright: ignore[reportIndexIssue]
        query, key, value, output, lse, packing.text, packing.firsts, tokens, scaling, heads,
        key.shape[1], *steps(query, key, value),
        WIDTH=width,
        DIM=max(16, triton.next_power_of_2(width)),
        CAUSAL=kind == "causal",
        ROWS=BLOCK,
        PRECISION=precision(query),
        num_warps=4,
    )  # fmt: skip
    return output, lse


def steps(*parts: Tensor) -> tuple[int, ...]:
    """How far apart tokens and heads lie; the numbers of a head lie side by side."""
    assert all(part.stride(2) == 1 for part in parts)
    return tuple(part.stride(dim) for part in parts for dim in (0, 1))


def precision(query: Tensor) -> str:
    """How products are made: float32 of three TF32 products, which lose no more than its own."""
    return "tf32x3" if query.dtype == torch.float32 else "tf32"


@triton.jit
def _attend(  # noqa: ANN202
    query, key, value, output, lse, text, firsts, tokens, scaling, heads, key_heads,  # noqa: ANN001
    q_token, q_head, k_token, k_head, v_token, v_head,  # noqa: ANN001
    WIDTH: tl.constexpr, DIM: tl.constexpr, CAUSAL: tl.constexpr, ROWS: tl.constexpr,  # noqa: N803
    PRECISION: tl.constexpr,  # noqa: N803
):  # fmt: skip
    head = tl.program_id(1).to(tl.int64)
    key_head = head // (heads // key_heads)
    begin = tl.program_id(0) * ROWS
    rows = begin + tl.arange(0, ROWS)
    dims = tl.arange(0, DIM)
    real = rows < tokens
    inside = real[:, None] & (dims[None, :] < WIDTH)
    at = rows[:, None].to(tl.int64) * q_token + head * q_head + dims[None, :]
    q = tl.load(query + at, mask=inside, other=0.0)
    own = tl.load(text + rows, mask=real, other=-1)
    last = tl.minimum(begin + ROWS, tokens) - 1
    first_key = tl.load(firsts + tl.load(text + begin))
    stop_key = last + 1 if CAUSAL else tl.load(firsts + tl.load(text + last) + 1)

    largest = tl.full([ROWS], float("-inf"), tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    mixed = tl.zeros([ROWS, DIM], tl.float32)
    for start in range(first_key, stop_key, ROWS):
        keys = start + tl.arange(0, ROWS)
        there = keys < stop_key
        taken = there[:, None] & (dims[None, :] < WIDTH)
        of_key = keys[:, None].to(tl.int64) * k_token + key_head * k_head + dims[None, :]
        of_value = keys[:, None].to(tl.int64) * v_token + key_head * v_head + dims[None, :]
        k = tl.load(key + of_key, mask=taken, other=0.0)
        v = tl.load(value + of_value, mask=taken, other=0.0)
        theirs = tl.load(text + keys, mask=there, other=-2)
        scores = tl.dot(q, tl.trans(k), input_precision=PRECISION) * scaling
        seen = own[:, None] == theirs[None, :]
        if CAUSAL:
            seen = seen & (keys[None, :] <= rows[:, None])
        scores = tl.where(seen, scores, float("-inf"))
        higher = tl.maximum(largest, tl.max(scores, 1))
        safe = tl.where(higher == float("-inf"), 0.0, higher)
        p = tl.exp(scores - safe[:, None])
        before = tl.exp(largest - safe)
        total = total * before + tl.sum(p, 1)
        mixed = mixed * before[:, None] + tl.dot(p.to(v.dtype), v, input_precision=PRECISION)
        largest = higher
    divisor = tl.where(total > 0, total, 1.0)
    place = (rows[:, None].to(tl.int64) * heads + head) * WIDTH + dims[None, :]
    tl.store(output + place, mixed / divisor[:, None], mask=inside)
    tl.store(lse + head * tokens + rows, largest + tl.log(divisor), mask=real)
