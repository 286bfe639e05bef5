"""Attention by fused kernels: the output and the log-sum-exp of every row, never the weights.

Only for bodies that are softmax(scaling·q·k + mask); `headscope.model.ways` proves it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jaxtyping import Bool, Float
from torch import Tensor

from headscope.model.attention import PlainAttention, Stack, TextAttention
from headscope.model.capture.call import Forward
from headscope.model.capture.capture import Progress
from headscope.model.capture.interface import bind, run_with, scale
from headscope.model.capture.kernels import attend_blocks, attend_whole
from headscope.model.capture.masks import DeferredMask, Kind, rows_of
from headscope.model.capture.plan import Plan
from headscope.model.capture.validate import Expectation

PlainObserver = Callable[[PlainAttention], None]


def capture_fused(
    forward: Forward,
    plan: Plan,
    observer: PlainObserver,
    expected: Mapping[Stack, Expectation],
) -> Any:
    """Run the forward pass by fused kernels and show every layer's queries, keys and sums."""
    progress, first = Progress(plan, expected), next(iter(expected))
    spans = {stack: spans_of(each.queries) for stack, each in expected.items()}

    def attend(resolved: Callable, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        slot = progress.next()
        stack = first if slot is None else slot.stack
        output, texts = attend_texts(bind(resolved, args, kwargs), spans[stack])
        if slot is not None:
            observer(PlainAttention(slot.stack, slot.layer, texts))
        return output, None

    output = run_with(forward, attend)
    progress.finish()
    return output


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
