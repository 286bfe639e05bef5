"""Attention by fused kernels: the output and the log-sum-exp of every row, never the weights.

Only for bodies that are softmax(scaling·q·k + mask), as `headscope.model.capture.modes` proves.
Keys and values may be shared by groups of heads; value width may differ from key width.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import pad

from headscope.model.attention import (
    Forward,
    PackedAttention,
    Packing,
    PlainAttention,
    Stack,
    TextAttention,
    widen,
)
from headscope.model.capture.dense import Progress
from headscope.model.capture.interface import bind, run_with, scale
from headscope.model.capture.packed import attend_even, attend_packed, takes
from headscope.model.capture.plan import Plan
from headscope.model.capture.rows import DeferredMask, Kind, rows_of
from headscope.model.capture.validate import Expectation

Attended = tuple[Float[Tensor, "head query dim"], Float[Tensor, "head query"]]
# Of scores at a time, where no fused kernel fits: what a CPU core caches, what keeps a GPU busy.
BLOCK_BYTES = {"cpu": 2**22, "cuda": 2**28}
CUDA_WIDTH = 256  # the widest head that the fused kernels take
ALIGNED = 8  # they want widths that are multiples of this


def attend_whole(
    query: Tensor, key: Tensor, value: Tensor, scaling: float, causal: bool
) -> Attended:
    """Attention to all keys, or to all up to the query itself, in one fused call."""
    width = max(query.shape[-1], value.shape[-1])
    if query.device.type not in ("cpu", "cuda") or (query.is_cuda and width > CUDA_WIDTH):
        kind = "causal" if causal else "full"
        return _in_blocks(query, key, value, TextAttention(query, key, scaling, query, kind))
    groups = query.shape[0] // key.shape[0]
    width += -width % ALIGNED
    repeated = (query, key.repeat_interleave(groups, 0), value.repeat_interleave(groups, 0))
    given = [_widened(part, width)[None] for part in repeated]
    output, lse = _fused(given[0], given[1], given[2], scaling, causal)
    return output[0, ..., : value.shape[-1]], lse[0, :, : query.shape[1]].float()


def attend_blocks(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    scaling: float,
    bias: Callable[[int, int], Float[Tensor, "query key"]],
) -> Attended:
    """Attention under any additive mask, some query rows at a time."""
    return _in_blocks(query, key, value, TextAttention(query, key, scaling, query, None, bias))


def block_rows(heads: int, keys: int, device: torch.device) -> int:
    """How many query rows of scores are held at a time."""
    return max(1, BLOCK_BYTES.get(device.type, BLOCK_BYTES["cpu"]) // (4 * heads * keys))


def _widened(part: Tensor, width: int) -> Tensor:
    missing = width - part.shape[-1]
    return pad(part, (0, missing)) if missing else part


def _fused(query: Tensor, key: Tensor, value: Tensor, scaling: float, causal: bool) -> Attended:
    aten = torch.ops.aten
    if query.device.type == "cpu":
        flash = aten._scaled_dot_product_flash_attention_for_cpu
        return flash(query, key, value, 0.0, causal, scale=scaling)[:2]
    if query.dtype in (torch.float16, torch.bfloat16):
        flash = aten._scaled_dot_product_flash_attention
        return flash(query, key, value, 0.0, causal, False, scale=scaling)[:2]
    efficient = aten._scaled_dot_product_efficient_attention
    return efficient(query, key, value, None, True, 0.0, causal, scale=scaling)[:2]


def _in_blocks(query: Tensor, key: Tensor, value: Tensor, text: TextAttention) -> Attended:
    heads, queries = query.shape[:2]
    groups, block = heads // key.shape[0], block_rows(heads, key.shape[1], key.device)
    outputs: list[Tensor] = []
    sums: list[Tensor] = []
    for start in range(0, queries, block):
        scores = text.scores(start, min(start + block, queries), key.shape[1])
        sums.append(scores.logsumexp(-1))
        weights = scores.softmax(-1).unflatten(0, (-1, groups)).flatten(1, 2)
        outputs.append((weights @ widen(value)).reshape(heads, -1, value.shape[-1]))
    return torch.cat(outputs, 1).to(value.dtype), torch.cat(sums, 1)


PlainObserver = Callable[[PlainAttention | PackedAttention], None]
FEW_TOKENS = 65536  # of the longest text; longer ones are taken one by one


def capture_fused(
    forward: Forward,
    plan: Plan,
    observer: PlainObserver,
    expected: Mapping[Stack, Expectation],
    spans: Callable[[], Sequence[slice]],
    packing: Packing,
) -> Any:
    """Run the forward pass by fused kernels and show every layer's queries, keys and sums.

    `spans` and `packing` say where the tokens of every text are.
    """
    progress, first = Progress(plan, expected), next(iter(expected))

    def attend(resolved: Callable, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        slot, given = progress.next(), bind(resolved, args, kwargs)
        stack = first if slot is None else slot.stack
        layer = -1 if slot is None else slot.layer
        if is_packable(given, packing):
            output, found = attend_batch(given, packing, stack, layer)
        else:
            output, texts = attend_texts(given, spans())
            if given["query"].device != expected[stack].device:  # a layer on a device of its own
                texts = tuple(text.to(expected[stack].device) for text in texts)
            found = PlainAttention(stack, layer, texts)
        if slot is not None:
            observer(found)
        return output, None

    output = run_with(forward, attend)
    progress.finish()
    return output


def is_packable(given: Mapping[str, Any], packing: Packing) -> bool:
    """Whether one kernel takes all texts of a batch at once."""
    kind, _ = _mask(given.get("attention_mask"), 0, slice(None))
    square = given["query"].shape[2] == given["key"].shape[2]
    short = packing.longest <= FEW_TOKENS and packing.place.device == given["query"].device
    return kind is not None and square and short and takes(given["query"], given["value"])


def attend_batch(
    given: Mapping[str, Any], packing: Packing, stack: Stack, layer: int
) -> tuple[Float[Tensor, "batch query head dim"], PackedAttention]:
    """All texts at once, without their padding, whose rows of the output mean nothing."""
    query, key, value = (given[name] for name in ("query", "key", "value"))
    kind, _ = _mask(given.get("attention_mask"), 0, slice(None))
    scaling = scale(given)
    assert scaling is not None and kind is not None
    parts = [packing.pack(part.transpose(1, 2)) for part in (query, key, value)]
    even = attend_even(query, key, value, scaling, kind) if packing.is_full else None
    packed, lse = even or attend_packed(parts[0], parts[1], parts[2], scaling, kind, packing)
    output = packed if packing.is_full else packed[packing.number]
    seen = PackedAttention(
        stack, layer, query, key, parts[0], parts[1], scaling, lse, kind, packing
    )
    return output.unflatten(0, packing.shape), seen


def attend_texts(
    given: Mapping[str, Any], spans: Sequence[slice]
) -> tuple[Float[Tensor, "batch query head dim"], tuple[TextAttention, ...]]:
    """Every text on its own, without its padding; padded rows of the output are zero."""
    query, value = given["query"], given["value"]
    output = query.new_zeros(query.shape[0], query.shape[2], query.shape[1], value.shape[-1])
    texts: list[TextAttention] = []
    for row, span in enumerate(spans):
        result, text = _attend_text(given, row, span)
        output[row, span] = result.transpose(0, 1)
        texts.append(text)
    return output, tuple(texts)


def _attend_text(
    given: Mapping[str, Any], row: int, span: slice
) -> tuple[Float[Tensor, "head query dim"], TextAttention]:
    query, key, value = (given[name][row, :, span] for name in ("query", "key", "value"))
    kind, bias = _mask(given.get("attention_mask"), row, span)
    scaling = scale(given)
    assert scaling is not None  # a plain body has one factor for all heads
    if bias is None:
        output, lse = attend_whole(query, key, value, scaling, kind == "causal")
    else:
        output, lse = attend_blocks(query, key, value, scaling, bias)
    return output, TextAttention(query, key, scaling, lse, kind, bias)


def _mask(
    mask: Any, row: int, span: slice
) -> tuple[Kind | None, Callable[[int, int], Tensor] | None]:
    """What a text's queries see: all, all before them, or what the additive mask says."""
    if mask is None:
        return "full", None
    if isinstance(mask, DeferredMask) and mask.kind is not None:
        return mask.kind, None

    def bias(start: int, stop: int) -> Tensor:
        rows = rows_of(mask, span.start + start, span.start + stop)
        assert rows is not None
        return rows[min(row, rows.shape[0] - 1), 0, :, span]

    return None, bias


def spans_of(mask: Bool[Tensor, "batch token"]) -> list[slice]:
    """Where the tokens of every text are; they are consecutive."""
    lengths = mask.sum(-1).tolist()
    firsts = mask.int().argmax(-1).tolist()
    return [slice(first, first + length) for first, length in zip(firsts, lengths, strict=True)]
