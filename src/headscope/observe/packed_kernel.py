"""The passes of `headscope.observe.packed` as GPU kernels.

Scores and weights never leave the registers, and are float32 whatever the network's numbers are. In
the pass over all pairs a program holds a block of keys and goes through the queries of their texts:
sums over queries need no exchange between programs and come out the same every time.
"""

import torch
import triton  # pyright: ignore[reportMissingImports]
import triton.language as tl  # pyright: ignore[reportMissingImports]
from torch import Tensor

from headscope.model.attention import PackedAttention
from headscope.model.capture.gpu.packed_kernel import precision, steps
from headscope.observe.packed import KeySums

PAIRS = 64  # of the pairs at a time
SHORT, LONG = 128, 1024  # tokens of a text that want smaller blocks, and that fill larger ones
PART = 256  # queries of a text that one program takes, of offsets and of who pays most


def weigh_pairs_on_gpu(attention: PackedAttention, queries: Tensor, keys: Tensor) -> Tensor:
    """The weights of single pairs."""
    query, key = attention.query, attention.key
    tokens, heads, width = query.shape
    weights = torch.empty(heads, len(queries), dtype=torch.float32, device=query.device)
    _weigh_pairs[(triton.cdiv(len(queries), PAIRS), heads)](  # pyright: ignore[reportIndexIssue]
        query, key, attention.lse.contiguous(), queries, keys, weights, len(queries), tokens,
        attention.scaling, heads, key.shape[1], *steps(query, key),
        WIDTH=width,
        DIM=triton.next_power_of_2(width),
        CAUSAL=attention.kind == "causal",
        PAIRS=PAIRS,
    )  # fmt: skip
    return weights


@triton.jit
def _weigh_pairs(  # noqa: ANN202
    query, key, lse, queries, keys, found, count, tokens, scaling, heads, key_heads,  # noqa: ANN001
    q_token, q_head, k_token, k_head,  # noqa: ANN001
    WIDTH: tl.constexpr, DIM: tl.constexpr, CAUSAL: tl.constexpr, PAIRS: tl.constexpr,  # noqa: N803
):  # fmt: skip
    head = tl.program_id(1).to(tl.int64)
    pairs = tl.program_id(0) * PAIRS + tl.arange(0, PAIRS)
    dims = tl.arange(0, DIM)
    real = pairs < count
    i = tl.load(queries + pairs, mask=real, other=0)
    j = tl.load(keys + pairs, mask=real, other=-1)
    seen = j >= 0
    if CAUSAL:
        seen = seen & (j <= i)
    inside = seen[:, None] & (dims[None, :] < WIDTH)
    at = i.to(tl.int64) * q_token + head * q_head
    to = j.to(tl.int64) * k_token + head // (heads // key_heads) * k_head
    q = tl.load(query + at[:, None] + dims[None, :], mask=inside, other=0.0).to(tl.float32)
    k = tl.load(key + to[:, None] + dims[None, :], mask=inside, other=0.0).to(tl.float32)
    above = tl.sum(q * k, 1) * scaling - tl.load(lse + head * tokens + i, mask=real, other=0.0)
    tl.store(found + head * count + pairs, tl.where(seen, tl.exp(above), 0.0), mask=real)


def sum_keys_on_gpu(
    attention: PackedAttention,
    content: Tensor,
    row_weights: Tensor,
    first_peak_token: int = 0,
    **launch: int,
) -> KeySums:
    """The pass over all pairs."""
    query, key = attention.query, attention.key
    tokens, heads, width = query.shape
    sums = torch.empty(4, heads, tokens, dtype=torch.float32, device=query.device)
    packing = attention.packing
    launch = _launch(query, packing.longest) | launch
    _sum_keys[(triton.cdiv(tokens, launch["keys"]), heads)](  # pyright: ignore[reportIndexIssue]
        query, key, attention.lse.contiguous(), row_weights.contiguous(), content.view(torch.int8),
        packing.text, packing.firsts, sums, tokens, attention.scaling, heads, key.shape[1],
        *steps(query, key),
        WIDTH=width,
        DIM=max(16, triton.next_power_of_2(width)),
        CAUSAL=attention.kind == "causal",
        KEYS=launch["keys"],
        QUERIES=launch["queries"],
        SOUGHT=first_peak_token,
        PRECISION=precision(query),
        num_warps=launch["warps"],
        num_stages=launch["stages"],
    )  # fmt: skip
    return KeySums(*sums)


def _launch(query: Tensor, longest: int) -> dict[str, int]:
    """Block sizes, warps and stages of the pass over all pairs, measured to be fast.

    A block of short texts holds several, and what it computes between them is lost.
    """
    width, is_wide = query.shape[-1], query.dtype == torch.float32 or query.shape[-1] > 128
    if longest < SHORT and width <= 64:
        return {"keys": 32, "queries": 16, "warps": 2 if is_wide else 1, "stages": 2}
    if longest >= LONG and not is_wide:
        queries = 128 if longest >= 4 * LONG and width <= 64 else 64
        return {"keys": 128, "queries": queries, "warps": 4, "stages": 3}
    return {"keys": 32 if is_wide and width > 64 else 64, "queries": 32, "warps": 4, "stages": 3}


@triton.jit
def _sum_keys(  # noqa: ANN202
    query, key, lse, row_weights, content, text, firsts, sums, tokens, scaling,  # noqa: ANN001
    heads, key_heads, q_token, q_head, k_token, k_head,  # noqa: ANN001
    WIDTH: tl.constexpr, DIM: tl.constexpr, CAUSAL: tl.constexpr, KEYS: tl.constexpr,  # noqa: N803
    QUERIES: tl.constexpr, SOUGHT: tl.constexpr, PRECISION: tl.constexpr,  # noqa: N803
):  # fmt: skip
    head = tl.program_id(1).to(tl.int64)
    first = tl.program_id(0) * KEYS
    keys = first + tl.arange(0, KEYS)
    dims = tl.arange(0, DIM)
    real = keys < tokens
    inside = real[:, None] & (dims[None, :] < WIDTH)
    to = keys[:, None].to(tl.int64) * k_token + head // (heads // key_heads) * k_head
    k = tl.load(key + to + dims[None, :], mask=inside, other=0.0)
    theirs = tl.load(text + keys, mask=real, other=-1)
    last = tl.minimum(first + KEYS, tokens) - 1
    stop = tl.load(firsts + tl.load(text + last) + 1)
    first_text = tl.load(text + first)
    begin = first if CAUSAL else tl.load(firsts + first_text)
    of_queries = query + head * q_head
    of_rows = head * tokens
    # All keys of one text: its queries behind the block see every one of them.
    behind = tl.maximum(first + KEYS, tl.load(firsts + first_text) + SOUGHT)
    clear = behind
    if CAUSAL and first_text == tl.load(text + last):
        clear = tl.maximum(behind, stop - (stop - behind) % QUERIES)

    factor = scaling * 1.4426950408889634  # to the base of two
    columns = tl.zeros([KEYS], tl.float32)
    scores = tl.zeros([KEYS], tl.float32)
    distance = tl.zeros([KEYS], tl.float32)
    peak = tl.full([KEYS], float("-inf"), tl.float32)
    for start in range(begin, tl.minimum(behind, stop), QUERIES):
        columns, scores, distance, peak = _add_queries(
            k, keys, theirs, start + tl.arange(0, QUERIES), tl.minimum(behind, stop), of_queries,
            lse + of_rows, row_weights + of_rows, text, firsts, factor, q_token,
            columns, scores, distance, peak,
            WIDTH, DIM, CAUSAL, SOUGHT, PRECISION, MASKED=True,
        )  # fmt: skip
    # Behind the block distances are counted from its first key, which costs less than from each.
    near = columns
    for start in range(behind, clear, QUERIES):
        columns, scores, distance, peak = _add_queries(
            k, first, theirs, start + tl.arange(0, QUERIES), stop, of_queries, lse + of_rows,
            row_weights + of_rows, text, firsts, factor, q_token, columns, scores, distance, peak,
            WIDTH, DIM, CAUSAL, SOUGHT, PRECISION, MASKED=False,
        )  # fmt: skip
    distance -= (columns - near) * (keys - first).to(tl.float32)
    for start in range(clear, stop, QUERIES):
        columns, scores, distance, peak = _add_queries(
            k, keys, theirs, start + tl.arange(0, QUERIES), stop, of_queries, lse + of_rows,
            row_weights + of_rows, text, firsts, factor, q_token, columns, scores, distance, peak,
            WIDTH, DIM, CAUSAL, SOUGHT, PRECISION, MASKED=True,
        )  # fmt: skip
    sums += of_rows + keys
    counts = tl.load(content + keys, mask=real, other=0) != 0
    tl.store(sums, tl.where(counts, columns, 0.0), mask=real)
    tl.store(sums + heads * tokens, tl.where(counts, scores * scaling, 0.0), mask=real)
    tl.store(sums + 2 * heads * tokens, tl.where(counts, distance, 0.0), mask=real)
    tl.store(sums + 3 * heads * tokens, tl.where(counts, tl.exp2(peak), -1.0), mask=real)


@triton.jit
def _add_queries(  # noqa: ANN202
    k, keys, theirs, rows, stop, query, lse, row_weights, text, firsts, factor,  # noqa: ANN001
    q_token, columns, scores, distance, peak,  # noqa: ANN001
    WIDTH: tl.constexpr, DIM: tl.constexpr, CAUSAL: tl.constexpr, SOUGHT: tl.constexpr,  # noqa: N803
    PRECISION: tl.constexpr, MASKED: tl.constexpr,  # noqa: N803
):  # fmt: skip
    """Add a block of queries to the sums, scores without their factor.

    Unmasked, all queries are real and see all keys, and `keys` is one number to count from.
    """
    dims = tl.arange(0, DIM)
    there = rows < stop
    taken = there[None, :] & (dims[:, None] < WIDTH)
    at = rows[None, :].to(tl.int64) * q_token + dims[:, None]
    q = tl.load(query + at, mask=taken, other=0.0)
    total = tl.load(lse + rows, mask=there, other=float("inf")) * 1.4426950408889634
    weight = tl.load(row_weights + rows, mask=there, other=0.0)
    product = tl.dot(k, q, input_precision=PRECISION)
    above = product * factor - total[None, :]
    others = above
    if MASKED:
        apart = rows[None, :] - keys[:, None]
        own = tl.load(text + rows, mask=there, other=-2)
        seen = theirs[:, None] == own[None, :]
        if CAUSAL:
            seen = seen & (apart >= 0)
        above = tl.where(seen, above, float("-inf"))
        others = tl.where(apart == 0, float("-inf"), above)
        if SOUGHT > 0:
            begun = tl.load(firsts + tl.maximum(own, 0), mask=there, other=0) + SOUGHT
            others = tl.where(rows[None, :] >= begun[None, :], others, float("-inf"))
        away = tl.abs(apart).to(tl.float32)
    else:
        away = (rows - keys).to(tl.float32)[None, :]
    p = tl.exp2(above)
    columns += tl.sum(p, 1)
    scores += tl.sum(p * (product * weight[None, :]), 1)
    distance += tl.sum(p * away, 1)
    return columns, scores, distance, tl.maximum(peak, tl.max(others, 1))


def sum_offsets_on_gpu(
    attention: PackedAttention, content: Tensor, offsets: range, **launch: int
) -> Tensor:
    """The weight of every text at each offset; a program takes one head of a part of a text."""
    query, key = attention.query, attention.key
    tokens, heads, width = query.shape
    packing, block = attention.packing, launch.get("block", 32 if width <= 64 else 16)
    parts = triton.cdiv(packing.longest, PART)
    first, stop = offsets.start // block, (offsets.stop - 1) // block + 1
    bins = (stop - first) * block
    sums = torch.empty(parts, packing.shape[0], heads, bins, device=query.device)
    _sum_offsets[(packing.shape[0], heads, parts)](  # pyright: ignore[reportIndexIssue]
        query, key, attention.lse.contiguous(), content.view(torch.int8), packing.firsts, sums,
        tokens, attention.scaling, heads, key.shape[1], first, stop, *steps(query, key),
        WIDTH=width,
        DIM=max(16, triton.next_power_of_2(width)),
        BLOCK=block,
        PRECISION=precision(query),
        PART=PART,
        num_warps=launch.get("warps", 1),
        num_stages=launch.get("stages", 1 if packing.longest < SHORT else 3),
    )  # fmt: skip
    begin = offsets.start - first * block
    return sums[..., begin : begin + len(offsets)].sum(0)


@triton.jit
def _sum_offsets(  # noqa: ANN202
    query, key, lse, content, firsts, found, tokens, scaling, heads, key_heads,  # noqa: ANN001
    first_block, stop_block, q_token, q_head, k_token, k_head,  # noqa: ANN001
    WIDTH: tl.constexpr, DIM: tl.constexpr, BLOCK: tl.constexpr,  # noqa: N803
    PRECISION: tl.constexpr, PART: tl.constexpr,  # noqa: N803
):  # fmt: skip
    """Sums of diagonals, from square blocks of weights that lie `between` apart.

    Row i of a block is turned by i places, so that its diagonals become columns: those on and below
    the main one are offsets from `between` on, those above it the offsets before.
    """
    text, head = tl.program_id(0).to(tl.int64), tl.program_id(1).to(tl.int64)
    begin, stop = tl.load(firsts + text), tl.load(firsts + text + 1)
    part = tl.program_id(2)
    dims, block = tl.arange(0, DIM), tl.arange(0, BLOCK)
    turned = (block[:, None] - block[None, :] + BLOCK) % BLOCK
    below = block[:, None] >= block[None, :]
    of_keys = key + head // (heads // key_heads) * k_head + dims[:, None]
    bins = (stop_block - first_block) * BLOCK
    place = found + ((part * tl.num_programs(0) + text) * heads + head) * bins + block
    kept = tl.zeros([BLOCK], tl.float32)
    for number in range(first_block, stop_block + 1):
        between = number * BLOCK
        after = tl.zeros([BLOCK], tl.float32)
        before = tl.zeros([BLOCK], tl.float32)
        from_query = begin + tl.maximum(part * PART, between)
        to_query = tl.minimum(begin + (part + 1) * PART, tl.minimum(stop, stop + between))
        for start in range(from_query, to_query, BLOCK):
            rows = start + block
            there = rows < stop
            at = rows[:, None].to(tl.int64) * q_token + head * q_head + dims[None, :]
            q = tl.load(query + at, mask=there[:, None] & (dims[None, :] < WIDTH), other=0.0)
            total = tl.load(lse + head * tokens + rows, mask=there, other=float("inf"))
            keys = start - between + block
            met = keys < stop
            met = met & (tl.load(content + keys, mask=met, other=0) != 0)
            to = keys[None, :].to(tl.int64) * k_token
            k = tl.load(of_keys + to, mask=met[None, :] & (dims[:, None] < WIDTH), other=0.0)
            z = tl.dot(q, k, input_precision=PRECISION) * scaling
            p = tl.where(met[None, :], tl.exp(z - total[:, None]), 0.0)
            diagonals = tl.gather(p, turned, 1)
            after += tl.sum(tl.where(below, diagonals, 0.0), 0)
            before += tl.sum(tl.where(below, 0.0, diagonals), 0)
        if number > first_block:
            tl.store(place + (number - 1 - first_block) * BLOCK, kept + before)
        kept = after


def sum_segments_on_gpu(weights: Tensor, firsts: Tensor) -> Tensor:
    """Sums of stretches of pairs; a program takes one head of a stretch."""
    heads = len(weights)
    sums = torch.empty(len(firsts) - 1, heads, dtype=torch.float64, device=weights.device)
    _sum_segments[(len(firsts) - 1, heads)](  # pyright: ignore[reportIndexIssue]
        weights, firsts, sums, weights.stride(0), BLOCK=PAIRS, num_warps=1
    )
    return sums


@triton.jit
def _sum_segments(weights, firsts, found, step, BLOCK: tl.constexpr):  # noqa: ANN001, ANN202, N803
    segment, head = tl.program_id(0).to(tl.int64), tl.program_id(1).to(tl.int64)
    stop = tl.load(firsts + segment + 1)
    total = tl.zeros([BLOCK], tl.float64)
    for start in range(tl.load(firsts + segment), stop, BLOCK):
        pairs = start + tl.arange(0, BLOCK)
        total += tl.load(weights + head * step + pairs, mask=pairs < stop, other=0.0).to(tl.float64)
    tl.store(found + segment * tl.num_programs(1) + head, tl.sum(total, 0))
