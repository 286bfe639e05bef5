"""From a text to its trace: one forward pass that keeps the chosen layers and heads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from headscope.errors import ModelError
from headscope.model.attention import LayerAttention, Stack
from headscope.model.capture.call import Call, bias, sink, softcap
from headscope.model.capture.plan import Plan, StackPlan
from headscope.model.chat import Message
from headscope.model.encode import Encoded, words_of_tokens
from headscope.model.generate import continue_greedily, write_target
from headscope.model.memory import check_memory, needed
from headscope.model.norms import value_norms
from headscope.model.trace import Side, StackTrace, Trace

if TYPE_CHECKING:
    from headscope.model.model import Model

STITCHED = (
    "Generated tokens are traced by one pass over prompt and continuation; for a causal model "
    "this equals the attention of every generation step, stitched together."
)


def trace(
    model: "Model",
    text: str | None = None,
    pair: str | None = None,
    *,
    messages: Sequence[Message] | None = None,
    template: Mapping[str, Any] | None = None,
    special: bool = True,
    target: str | None = None,
    layers: Sequence[int] | None = None,
    heads: Sequence[int] | None = None,
    generate: int = 0,
    truncate: bool = False,
) -> Trace:
    """The attention of a text, a pair of texts or a chat, in the chosen layers and heads.

    `messages` are written by the model's own chat template; `template` has further arguments for
    it, such as `tools`. `special=False` adds no special tokens: for a text that has its own.
    An encoder–decoder model needs `target` (or `generate`) to show its decoder; else its encoder is
    traced alone. `generate` continues the text greedily by that many tokens. Only the chosen layers
    and heads are kept; a trace that does not fit into memory is refused before the pass.
    """
    recording = Recording(model.plan, layers, heads)
    if messages is None:
        source = model.encode(_given(text), pair, special=special, truncate=truncate)
    else:
        _check_alone(text=text, pair=pair)
        answer = generate > 0 and not model.is_encoder_decoder
        source = model.encode_chat(messages, template, answer=answer, truncate=truncate)
    _check_memory(model, source, None, layers, heads)  # before anything is generated
    source, written, prompt = _texts(model, source, target, generate, truncate=truncate)
    _check_memory(model, source, written, layers, heads)
    batch = model.batch([source], target=None if written is None else [written])
    model.forward(batch, recording, logits=False)
    stacks = recording.stacks(*_sides(source, written))
    if not stacks:
        raise ModelError("Nothing was traced: no stack has all of the chosen layers and heads.")
    return Trace(
        model=model.name,
        stacks=stacks,
        is_causal=model.is_causal,
        prompt_length=prompt,
        no_neurons=next((s.no_neurons for s in model.stacks if s.no_neurons), None),
        notes=(STITCHED,) if generate else (),
    )


def side(encoded: Encoded) -> Side:
    """One axis of the attention; the texts of a pair become two lines of one text."""
    shift = len(encoded.text) + 1
    text = encoded.text if encoded.pair is None else f"{encoded.text}\n{encoded.pair}"
    offsets = tuple(
        (start + shift, end + shift) if which == 1 else (start, end)
        for (start, end), which in zip(encoded.offsets, encoded.sequence, strict=True)
    )
    words, word_of_token = words_of_tokens(text, offsets, encoded.special)
    return Side(
        text=text,
        tokens=encoded.tokens,
        special=encoded.special,
        segments=encoded.segments,
        offsets=offsets,
        word_of_token=word_of_token,
        words=words,
        turns=encoded.turns,
    )


def _given(text: str | None) -> str:
    if text is None:
        raise ModelError("There is nothing to trace: give a text, or messages=.")
    return text


def _check_alone(**others: str | None) -> None:
    for name, value in others.items():
        if value is not None:
            raise ModelError(f"messages= are the whole input; leave the {name} out.")


def _texts(
    model: "Model", source: Encoded, target: str | None, generate: int, *, truncate: bool
) -> tuple[Encoded, Encoded | None, int | None]:
    """Source, what the decoder reads, and where generated tokens begin."""
    if generate < 0:
        raise ModelError(
            f"generate={generate}: the number of tokens to generate cannot be negative."
        )
    written = None if target is None else model.encode_target(target, truncate=truncate)
    if not generate:
        return source, written, None
    if model.is_encoder_decoder:
        longer = write_target(model, source, written, generate)
        return source, longer, 1 if written is None else len(written)
    return continue_greedily(model, source, generate), None, len(source)


def _check_memory(
    model: "Model",
    source: Encoded,
    target: Encoded | None,
    layers: Sequence[int] | None,
    heads: Sequence[int] | None,
) -> None:
    own = len(source)
    lengths: dict[Stack, tuple[int, int]] = {"self": (own, own), "encoder": (own, own)}
    if target is not None:
        other = len(target)
        lengths |= {"decoder": (other, other), "cross": (other, own)}
    longest = max(max(sides) for sides in lengths.values())
    check_memory(needed(model.plan, lengths, layers, heads), longest, model.device)


def _sides(source: Encoded, target: Encoded | None) -> tuple[dict[Stack, Side], dict[Stack, Side]]:
    """The tokens on both axes, by stack."""
    own = side(source)
    queries: dict[Stack, Side] = {"self": own, "encoder": own}
    keys: dict[Stack, Side] = {"self": own, "encoder": own}
    if target is not None:
        other = side(target)
        queries |= {"decoder": other, "cross": other}
        keys |= {"decoder": other, "cross": own}
    return queries, keys


# Masks add the most negative number of their dtype; beyond this a key is masked, not merely
# unlikely.
_MASKED = -1e4


@dataclass
class Kept:
    """What is kept of one stack, by layer number."""

    weights: dict[int, Tensor] = field(default_factory=dict)
    query: dict[int, Tensor] = field(default_factory=dict)
    key: dict[int, Tensor] = field(default_factory=dict)
    value: dict[int, Tensor] = field(default_factory=dict)
    scaling: dict[int, float] = field(default_factory=dict)
    bias: dict[int, Tensor] = field(default_factory=dict)
    sink: dict[int, Tensor] = field(default_factory=dict)
    value_norms: dict[int, Tensor] = field(default_factory=dict)
    softcap: float | None = None


class Recording:
    """Keeps row 0 of a batch; a layer or head that no stack has is refused at once."""

    def __init__(
        self, plan: Plan, layers: Sequence[int] | None = None, heads: Sequence[int] | None = None
    ) -> None:
        _check("layer", layers, {n for stack in plan.stacks for n in stack.attending})
        _check("head", heads, {n for stack in plan.stacks for n in range(stack.heads)})
        self._plan = plan
        self._layers = None if layers is None else set(layers)
        self._heads = heads
        self._kept: dict[Stack, Kept] = {}
        self._projection = {(s.stack, s.layer): s.projection for s in plan.slots if s is not None}

    def __call__(self, seen: LayerAttention) -> None:
        """Copy what was chosen of one layer."""
        stack = self._plan.stack(seen.stack)
        heads = self._heads_of(stack)
        if (self._layers is not None and seen.layer not in self._layers) or not heads:
            return
        kept = self._kept.setdefault(seen.stack, Kept())
        kept.weights[seen.layer] = _copy(seen.weights[0, heads])
        if stack.no_neurons is None:
            self._keep_scores(kept, seen, heads)
        if stack.no_norms is None:
            self._keep_values(kept, seen, heads)

    def stacks(self, queries: dict[Stack, Side], keys: dict[Stack, Side]) -> dict[str, StackTrace]:
        """What was kept, with the tokens on both axes."""
        return {
            name: self._stack(name, kept, queries[name], keys[name])
            for name, kept in self._kept.items()
        }

    def _heads_of(self, stack: StackPlan) -> list[int]:
        chosen = range(stack.heads) if self._heads is None else self._heads
        return [head for head in chosen if head < stack.heads]

    def _key_heads_of(self, stack: StackPlan, heads: Sequence[int]) -> list[int]:
        groups = stack.heads // stack.key_heads
        return sorted({head // groups for head in heads})

    def _keep_scores(self, kept: Kept, seen: LayerAttention, heads: list[int]) -> None:
        assert seen.query is not None and seen.key is not None and seen.scaling is not None
        rows = self._key_heads_of(self._plan.stack(seen.stack), heads)
        kept.query[seen.layer] = _copy(seen.query[0, heads])
        kept.key[seen.layer] = _copy(seen.key[0, rows])
        kept.scaling[seen.layer] = seen.scaling
        call = Call(weights=seen.weights, mask=seen.mask, extras=seen.extras)
        kept.softcap = softcap(call)
        added, dropped = bias(call), sink(call)
        if added is not None:
            kept.bias[seen.layer] = _bias(added[0, ..., : seen.weights.shape[-1]], heads)
        if dropped is not None:
            kept.sink[seen.layer] = _copy(dropped[heads])

    def _keep_values(self, kept: Kept, seen: LayerAttention, heads: list[int]) -> None:
        projection = self._projection[seen.stack, seen.layer]
        assert seen.value is not None and projection is not None
        stack = self._plan.stack(seen.stack)
        rows = self._key_heads_of(stack, heads)
        kept.value[seen.layer] = _copy(seen.value[0, rows])
        kept.value_norms[seen.layer] = _copy(
            value_norms(seen.value[0], projection, stack.heads)[heads]
        )

    def _stack(self, name: Stack, kept: Kept, queries: Side, keys: Side) -> StackTrace:
        plan = self._plan.stack(name)
        heads = self._heads_of(plan)
        rows = self._key_heads_of(plan, heads)
        groups = plan.heads // plan.key_heads
        return StackTrace(
            name=name,
            layers=tuple(kept.weights),
            heads=tuple(heads),
            weights=kept.weights,
            queries=queries,
            keys=keys,
            query=kept.query or None,
            key=kept.key or None,
            value=kept.value or None,
            key_head_of=tuple(rows.index(head // groups) for head in heads),
            scaling=kept.scaling or None,
            bias=kept.bias or None,
            softcap=kept.softcap,
            sink=kept.sink or None,
            value_norms=kept.value_norms or None,
            no_norms=plan.no_norms,
        )


def _check(what: str, chosen: Sequence[int] | None, known: set[int]) -> None:
    if chosen is None:
        return
    unknown = [number for number in chosen if number not in known]
    if unknown or not chosen:
        asked = unknown[0] if unknown else "(none chosen)"
        raise ModelError(f"The model has no {what} {asked}; it has {what}s {_ranges(known)}.")


def _ranges(numbers: set[int]) -> str:
    low, high = min(numbers), max(numbers)
    if len(numbers) == high - low + 1:
        return f"{low} to {high}"
    return ", ".join(str(number) for number in sorted(numbers))


def _copy(tensor: Tensor) -> Tensor:
    return tensor.detach().to("cpu", torch.float32, copy=True)


def _bias(added: Tensor, heads: list[int]) -> Tensor:
    own = added[heads] if added.ndim == 3 and added.shape[0] > 1 else added
    copied = _copy(own)
    return copied.masked_fill(copied < _MASKED, -torch.inf)
