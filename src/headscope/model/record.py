"""From a text to its trace: one pass that keeps the chosen layers and heads."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, get_args

import torch
from torch import Tensor

from headscope.errors import ModelError
from headscope.files import names_only
from headscope.head import Head, read_head
from headscope.model.attention import MASKED, LayerAttention, Stack, bias, sink
from headscope.model.capture.changes import Replacement, switch_off, why_no_change
from headscope.model.capture.plan import Plan, StackPlan
from headscope.model.generate import Progress, Sampling, begin, continue_text
from headscope.model.inputs.chat import Message
from headscope.model.inputs.frame import Bos
from headscope.model.inputs.labels import marks_word_pieces
from headscope.model.inputs.tokens import Tokens
from headscope.model.loading.memory import check_memory, needed, within_memory
from headscope.model.trace import StackTrace, Trace
from headscope.model.why import LiveInputs
from headscope.model.writes import norms_of

if TYPE_CHECKING:
    from headscope.model.model import Model

_LESS = (
    "choose fewer layers and heads, a shorter text, a two-byte dtype, quantization=int8, or "
    "device_map=auto"
)


def trace(
    model: "Model",
    text: str | None = None,
    pair: str | None = None,
    *,
    messages: Sequence[Message] | None = None,
    template: Mapping[str, Any] | None = None,
    special: bool = True,
    bos: Bos = "auto",
    target: str | None = None,
    layers: Sequence[int] | None = None,
    heads: Sequence[int] | None = None,
    generate: int = 0,
    temperature: float | None = None,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    truncate: bool = False,
    without: Sequence[str | Head] = (),
    replacement: Replacement = "zero",
) -> Trace:
    """The attention of a text, a pair of texts or a chat, in the chosen layers and heads.

    `messages` are written by the model's own chat template; `template` has further arguments for
    it, such as `tools`. `special=False` adds no special tokens: for a text that has its own.
    `bos` says whether the text begins with the BOS token: "auto" as the tokenizer adds it, "never",
    "always".
    An encoder–decoder model needs `target` (or `generate`) to show its decoder; else its encoder is
    traced alone. Only the chosen layers and heads are kept; a trace that does not fit into memory
    is refused before the pass.

    `generate` continues the text by up to that many tokens, until its end, as the model's
    generation_config says: the most probable ones if it says nothing. They are drawn with a `seed`
    if `temperature`, `top_k` or `top_p` is given; `temperature=0` always takes the most probable
    one. `progress` is called with each new piece of text.

    Heads of the default stack are switched off by `without`, such as ["L4H2"]: their output is
    zero, or with `replacement="mean"` its mean over the tokens of the text. What the network writes
    it writes with all heads.
    """
    sampling = Sampling(temperature, top_k, top_p, seed)
    if generate or sampling != Sampling(seed=seed):
        sampling.check(generate)
    removed = read_removed(model, without, replacement)
    recording = Recording(model.plan, layers, heads)
    if messages is None:
        if text is None:
            raise ModelError("There is nothing to trace: give a text, or messages=.")
        source = model.encode(text, pair, special=special, bos=bos, truncate=truncate)
    else:
        if text is not None or pair is not None or bos != "auto":
            raise ModelError("messages= are the whole input; leave text, pair and bos out.")
        answer = generate > 0 and not model.is_encoder_decoder
        source = model.encode_chat(messages, template, answer=answer, truncate=truncate)
    written = None if target is None else model.encode_target(target, truncate=truncate)
    _check_memory(model, source, written, layers, heads, more=generate)
    prompt, notes = None, ()
    with within_memory(model.name, "was traced", _LESS):
        if generate:
            begun = begin(model, source, written)
            prompt = len(begun)
            continued, notes = continue_text(model, source, begun, generate, sampling, progress)
            if model.is_encoder_decoder:
                written = continued
            else:
                source = continued
        batch = model.batch([source], target=None if written is None else [written])
        if removed:
            change = partial(switch_off, removed, replacement)
            model.forward_changed(batch, change, recording, logits=False)
        else:
            model.forward(batch, recording, logits=False)
    return Trace(
        model=names_only(model.name),
        stacks=recording.stacks(_axes(source, written)),
        is_causal=model.is_causal,
        prompt_length=prompt,
        no_neurons=next((s.no_neurons for s in model.stacks if s.no_neurons), None),
        notes=notes,
        bos=bos,
        word_pieces=marks_word_pieces(model.tokenizer),
        without=removed,
        live=LiveInputs(model, batch, replacement),
    )


def read_removed(
    model: "Model", heads: Sequence[str | Head], replacement: Replacement
) -> tuple[Head, ...]:
    """The heads that are to be switched off; one that is not there is refused."""
    if replacement not in get_args(Replacement):
        raise ModelError(f"replacement={replacement!r} is unknown; choose zero or mean.")
    if isinstance(heads, str):
        raise ModelError(f"without={heads!r} is one name; give a list of them: [{heads!r}].")
    plan = model.stacks[0]
    removed = [read_head(head) if isinstance(head, str) else head for head in heads]
    for head in removed:
        if head.layer not in plan.attending or not 0 <= head.head < plan.heads:
            raise ModelError(
                f"{model.name} has no head {head}; it has layers {_ranges({*plan.attending})} and "
                f"heads 0 to {plan.heads - 1}."
            )
    reason = why_no_change(model.plan) if removed else None
    if reason is not None:
        raise ModelError(f"Heads of {model.name} cannot be switched off: {reason}.")
    return tuple(removed)


def _check_memory(
    model: "Model",
    source: Tokens,
    target: Tokens | None,
    layers: Sequence[int] | None,
    heads: Sequence[int] | None,
    more: int = 0,
) -> None:
    """Refuse what does not fit, with as many tokens `more` as may be generated."""
    read = len(source) if model.is_encoder_decoder else len(source) + more
    lengths: dict[Stack, tuple[int, int]] = {"self": (read, read), "encoder": (read, read)}
    if target is not None or (more and model.is_encoder_decoder):
        written = (1 if target is None else len(target)) + more
        lengths |= {"decoder": (written, written), "cross": (written, read)}
    longest = max(max(sides) for sides in lengths.values())
    check_memory(needed(model.plan, lengths, layers, heads), longest, model.device)


def _axes(source: Tokens, target: Tokens | None) -> dict[Stack, tuple[Tokens, Tokens]]:
    """The tokens that look and those that are looked at, by stack."""
    axes: dict[Stack, tuple[Tokens, Tokens]] = {
        "self": (source, source),
        "encoder": (source, source),
    }
    if target is not None:
        axes |= {"decoder": (target, target), "cross": (target, source)}
    return axes


Parts = defaultdict[str, dict[int, Any]]  # of one stack, by their name in a StackTrace and by layer


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
        self._stacks: dict[Stack, Parts] = {}

    def __call__(self, seen: LayerAttention) -> None:
        """Copy what was chosen of one layer."""
        stack = self._plan.stack(seen.stack)
        heads = self._heads_of(stack)
        if (self._layers is not None and seen.layer not in self._layers) or not heads:
            return
        parts = self._stacks.setdefault(seen.stack, defaultdict(dict))

        def keep(part: str, values: Tensor) -> None:  # which die with this call
            copied = values.detach().to("cpu", torch.float32, copy=True)
            parts[part][seen.layer] = copied

        keep("weights", seen.weights[0, heads])
        key_heads = _key_heads_of(stack, heads)
        if stack.no_neurons is None:
            assert seen.query is not None and seen.key is not None
            keep("query", seen.query[0, heads])
            keep("key", seen.key[0, key_heads])
            parts["scaling"][seen.layer] = seen.scaling
            parts["softcap"][seen.layer] = seen.extras.get("softcap")
            added, dropped = bias(seen), sink(seen)
            if added is not None:
                keep("bias", _bias(added[0, ..., : seen.weights.shape[-1]], heads))
            if dropped is not None:
                keep("sink", dropped[heads])
        if stack.no_norms is None:
            assert seen.value is not None
            keep("value", seen.value[0, key_heads])
            keep("value_norms", norms_of(self._plan, seen)[0, heads])

    def stacks(self, axes: Mapping[Stack, tuple[Tokens, Tokens]]) -> dict[str, StackTrace]:
        """What was kept, with the tokens on both axes."""
        if not self._stacks:
            raise ModelError("Nothing was traced: no stack has all of the chosen layers and heads.")
        return {name: self._stack(name, parts, *axes[name]) for name, parts in self._stacks.items()}

    def _heads_of(self, stack: StackPlan) -> list[int]:
        heads = range(stack.heads) if self._heads is None else self._heads
        return [head for head in heads if head < stack.heads]

    def _stack(self, name: Stack, parts: Parts, queries: Tokens, keys: Tokens) -> StackTrace:
        plan = self._plan.stack(name)
        heads = self._heads_of(plan)
        key_heads = _key_heads_of(plan, heads)
        groups = plan.heads // plan.key_heads
        softcaps = parts.pop("softcap", {None: None})  # alike in all layers
        return StackTrace(
            name=name,
            layers=tuple(parts["weights"]),
            heads=tuple(heads),
            queries=queries,
            keys=keys,
            key_head_of=tuple(key_heads.index(head // groups) for head in heads),
            softcap=next(iter(softcaps.values())),
            no_norms=plan.no_norms,
            **parts,
        )


def _key_heads_of(stack: StackPlan, heads: Sequence[int]) -> list[int]:
    """The heads of keys and values that the chosen heads share."""
    groups = stack.heads // stack.key_heads
    return sorted({head // groups for head in heads})


def _check(what: str, numbers: Sequence[int] | None, present: set[int]) -> None:
    if numbers is None:
        return
    unknown = [number for number in numbers if number not in present]
    if unknown or not numbers:
        asked = unknown[0] if unknown else "(none chosen)"
        raise ModelError(f"The model has no {what} {asked}; it has {what}s {_ranges(present)}.")


def _ranges(numbers: set[int]) -> str:
    low, high = min(numbers), max(numbers)
    if len(numbers) == high - low + 1:
        return f"{low} to {high}"
    return ", ".join(str(number) for number in sorted(numbers))


def _bias(added: Tensor, heads: list[int]) -> Tensor:
    of_heads = (added[heads] if added.ndim == 3 and added.shape[0] > 1 else added).float()
    return of_heads.masked_fill(of_heads < MASKED, -torch.inf)
