"""The modes of computing a layer, and the proof on the probe that a mode is right for a network.

dense   whole matrices, tokens × tokens for every head: everything can be asked of them
rows    the model's own function on some query rows at a time: the same weights, block × tokens
fused   no weights at all, but queries, keys and the sum of every row: what follows from them

Fused kernels give the output and the log-sum-exp of every row. They are only for bodies that are
softmax(scaling·q·k + mask). Keys and values may be shared by groups of heads; value width may
differ from key width.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import pad

from headscope.errors import CaptureError, HeadscopeError
from headscope.model.attention import (
    Forward,
    Kind,
    PackedAttention,
    Packing,
    PlainAttention,
    Stack,
    TextAttention,
    widen,
)
from headscope.model.capture.backends import bind, run_with, scale
from headscope.model.capture.dense import Expectation, Progress
from headscope.model.capture.gpu.packed import attend_even, attend_packed, takes
from headscope.model.capture.plan import Plan
from headscope.model.capture.rows import DeferredMask, cut, deferring, rows_of

AttentionPath = Literal["dense", "rows", "fused"]
Found = tuple[Tensor, Tensor]  # output and weights of one call
PROBE_BLOCK = 2  # of the five tokens of the probe
SLACK = 1e-5  # how far two modes may be apart by rounding in float32

# What a network may do when it gets a recipe for a mask, or no weights, where it wants a tensor.
FAILURES = (TypeError, AttributeError, RuntimeError, ValueError, AssertionError, HeadscopeError)
Attended = tuple[Float[Tensor, "head query dim"], Float[Tensor, "head query"]]
# Of scores at a time, where no fused kernel fits: what a CPU core caches, what keeps a GPU busy.
BLOCK_BYTES = {"cpu": 2**22, "cuda": 2**28}
CUDA_WIDTH = 256  # the widest head that the fused kernels take
ALIGNED = 8  # they want widths that are multiples of this
PlainObserver = Callable[[PlainAttention | PackedAttention], None]
FEW_TOKENS = 65536  # of the longest text; longer ones are taken one by one


@dataclass(frozen=True)
class Modes:
    """The modes besides dense that were proved, and whether masks can be deferred in them."""

    model: str
    deferred: Mapping[AttentionPath, bool]
    refused: Mapping[AttentionPath, str]  # why not, of the others

    def __contains__(self, mode: AttentionPath) -> bool:
        return mode == "dense" or mode in self.deferred

    @contextmanager
    def masks(self, mode: AttentionPath) -> Iterator[None]:
        """The masks that the network needs in a mode: deferred where it accepts that."""
        if mode in self.refused:
            raise CaptureError(
                f"The attention of {self.model} cannot be computed by {mode}: "
                f"{self.refused[mode]}; look at whole matrices instead."
            )
        with deferring() if self.deferred[mode] else nullcontext():
            yield


def prove_modes(
    model: str,
    plan: Plan,
    forward: Forward,
    expected: Mapping[Stack, Expectation],
    spans: Sequence[slice],
    packing: Packing,
) -> Modes:
    """Hold every call of every mode against the model's own function on the same arguments."""
    if plan.backend.name != "interface":
        reason = "this family computes attention outside the attention interface"
        return Modes(model, {}, {"rows": reason, "fused": reason})
    modes: dict[AttentionPath, Callable[[Callable, dict[str, Any]], Found]] = {
        "rows": _in_rows,
        "fused": lambda _, given: _by_parts(given, spans, packing),
    }
    deferred: dict[AttentionPath, bool] = {}
    for mode, attend in modes.items():
        for choice in (True, False):
            if mode not in deferred and _agrees(plan, forward, expected, attend, choice):
                deferred[mode] = choice
    refused: dict[AttentionPath, str] = {
        mode: _why_not(plan, mode) for mode in modes if mode not in deferred
    }
    return Modes(model, deferred, refused)


def _agrees(
    plan: Plan,
    forward: Forward,
    expected: Mapping[Stack, Expectation],
    mode: Callable[[Callable, dict[str, Any]], Found],
    deferred: bool,
) -> bool:
    """Whether output and weights of every call are the model's own."""
    progress, same = Progress(plan, expected), []

    def attend(resolved: Callable, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        given = bind(resolved, args, kwargs)
        wide = {name: _widen(value) for name, value in given.items()}
        progress.next()
        own = resolved(**cut(wide, 0, wide["query"].shape[2]))[:2]
        same.append(all(map(_close, mode(resolved, wide), own)))
        # Its own output goes on, so that rounding does not add up from layer to layer.
        return own[0].to(given["query"].dtype), None

    try:
        with torch.no_grad(), deferring() if deferred else nullcontext():
            run_with(forward, attend)
        progress.finish()
    except FAILURES:
        return False
    return all(same)


def _widen(value: Any) -> Any:
    """Two-byte numbers would hide mistakes behind their rounding."""
    return widen(value) if isinstance(value, Tensor) and value.is_floating_point() else value


def _close(one: Tensor, other: Tensor) -> bool:
    largest = max(1.0, float(other.abs().max()))
    return one.shape == other.shape and float((one - other).abs().max()) <= SLACK * largest


def _in_rows(resolved: Callable, given: dict[str, Any]) -> Found:
    queries = given["query"].shape[2]
    starts = range(0, queries, PROBE_BLOCK)
    blocks = [resolved(**cut(given, s, min(s + PROBE_BLOCK, queries)))[:2] for s in starts]
    return torch.cat([b[0] for b in blocks], 1), torch.cat([b[1] for b in blocks], 2)


def _by_parts(given: dict[str, Any], spans: Sequence[slice], packing: Packing) -> Found:
    output, texts = attend_texts(given, spans)
    if is_packable(given, packing):
        output, _ = attend_batch(given, packing, "self", 0, end_to_end=False)
    return output, torch.stack([text.weights(0, text.query.shape[1]) for text in texts])


def agrees_end_to_end(run: Callable[[bool], Tensor], packing: Packing) -> bool:
    """Whether the last hidden states of texts are the same laid end to end and padded.

    Each feature is held to its own largest value: some are a thousand times larger than others.
    """
    try:
        laid, padded = run(True)[0], packing.pack(run(False))
    except FAILURES:
        return False
    slack = 1e-4 if laid.dtype in (torch.float32, torch.float64) else 2e-2
    return bool(((laid - padded).abs() <= slack * padded.abs().amax(0)).all())


def _why_not(plan: Plan, mode: AttentionPath) -> str:
    if mode == "fused" and not plan.stacks[0].plain:
        return "its weights are not softmax(scaling·q·k + mask)"
    return "its scores have parts besides queries, keys and mask"


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
    """Attention under any mask, some query rows at a time; the sums of `text` are not known yet."""
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


def capture_fused(
    forward: Forward,
    plan: Plan,
    observer: PlainObserver,
    expected: Mapping[Stack, Expectation],
    spans: Callable[[], Sequence[slice]],
    packing: Packing,
    *,
    end_to_end: bool = False,
) -> Any:
    """Run the forward pass by fused kernels and show every layer's queries, keys and sums.

    `spans` and `packing` say where the tokens of every text are; `end_to_end`, that the network
    itself was given the texts without padding, as one.
    """
    progress, first = Progress(plan, expected), next(iter(expected))

    def attend(resolved: Callable, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        slot, given = progress.next(), bind(resolved, args, kwargs)
        stack = first if slot is None else slot.stack
        layer = -1 if slot is None else slot.layer
        if is_packable(given, packing):
            output, found = attend_batch(given, packing, stack, layer, end_to_end=end_to_end)
        elif end_to_end:
            raise CaptureError("This attention would not keep texts apart that lie end to end.")
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
    given: Mapping[str, Any], packing: Packing, stack: Stack, layer: int, *, end_to_end: bool
) -> tuple[Float[Tensor, "batch query head dim"], PackedAttention]:
    """All texts at once, without their padding, whose rows of the output mean nothing."""
    query, key, value = (given[name] for name in ("query", "key", "value"))
    kind, _ = _mask(given.get("attention_mask"), 0, slice(None))
    scaling = scale(given)
    assert scaling is not None and kind is not None
    even = attend_even(query, key, value, scaling, kind) if packing.is_full else None
    parts = [part.transpose(1, 2) for part in (query, key, value)]  # batch token head dim
    parts = [part[0] if end_to_end else packing.pack(part) for part in parts]
    q, k, v = (part if part.stride(2) == 1 else part.contiguous() for part in parts)
    packed, lse = even or attend_packed(q, k, v, scaling, kind, packing)
    output = packed if end_to_end or packing.is_full else packed[packing.number]
    shape = (1, len(packed)) if end_to_end else packing.shape
    return output.unflatten(0, shape), PackedAttention(
        stack, layer, q, k, scaling, lse, kind, packing
    )


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
        text = TextAttention(query, key, scaling, query, None, bias)
        output, lse = _in_blocks(query, key, value, text)
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
