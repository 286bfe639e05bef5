"""The attention of one input, layer by layer and head by head, ready to be looked at.

Neither torch nor transformers is imported here: a stored trace is looked at without them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Literal

from headscope.errors import CaptureError, ModelError
from headscope.head import Head
from headscope.model.inputs.labels import unmark
from headscope.model.inputs.spans import (
    By,
    Span,
    spans_by,
    spans_of_characters,
    spans_of_pattern,
    turns,
)
from headscope.model.inputs.tokens import Characters, Tokens
from headscope.model.inputs.words import CharacterSpan

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from jaxtyping import Float
    from torch import Tensor

    from headscope.model.attention import Stack
    from headscope.model.difference import Difference
    from headscope.model.inputs.frame import Bos
    from headscope.model.why import LiveInputs, Why
    from headscope.views import View
    from headscope.views.shares import Shares

    ByLayer = Mapping[int, Tensor]
    Weights = Tensor | np.ndarray | Sequence[Tensor | np.ndarray]

ENDING = ".hst"  # of a file that keeps a trace
Precision = Literal["exact", "uint16", "uint8"]  # of the weights in it
_PATTERN = re.compile(r"blocks\.(\d+)\.attn\.hook_pattern|\d+")  # in a cache: by a layer's number
_ROUNDED = 0.02  # how far rows from elsewhere may be from 1: they may have been in two bytes


@dataclass(frozen=True)
class StackTrace:
    """One stack of layers: weights, and what they were computed from where the family shows it.

    score = scaling · q·k, soft-capped if `softcap` is set; weight = softmax(score + bias), with one
    more column of score `sink` that is dropped. Heads are in the order of `heads`, also in `query`.
    """

    name: Stack
    layers: tuple[int, ...]
    heads: tuple[int, ...]
    weights: Mapping[int, Float[Tensor, "head query key"]]
    queries: Tokens
    keys: Tokens
    query: Mapping[int, Float[Tensor, "head query dim"]] | None = None
    key: Mapping[int, Float[Tensor, "key_head key dim"]] | None = None
    value: Mapping[int, Float[Tensor, "key_head key value_dim"]] | None = None
    key_head_of: tuple[int, ...] = ()  # for each captured head, its row in `key` and `value`
    scaling: Mapping[int, float] | None = None
    bias: Mapping[int, Float[Tensor, "#head #query key"]] | None = None  # -inf where masked
    softcap: float | None = None
    sink: Mapping[int, Float[Tensor, "head"]] | None = None
    value_norms: Mapping[int, Float[Tensor, "head key"]] | None = None  # ‖v_j W_O‖
    no_norms: str | None = "the weights come without values"

    def __repr__(self) -> str:
        return (
            f"StackTrace({self.name!r}, {len(self.layers)} layers × {len(self.heads)} heads, "
            f"{len(self.queries)} × {len(self.keys)} tokens)"
        )

    @property
    def norms(self) -> Mapping[int, Float[Tensor, "head query key"]] | None:
        """Norm-weighted attention ‖a_ij v_j W_O‖ (Kobayashi et al. 2020); None without W_O."""
        if self.value_norms is None:
            return None
        return {n: self.weights[n] * self.value_norms[n][:, None, :] for n in self.layers}


@dataclass(frozen=True)
class Trace:
    """The attention of one input in all stacks of a model."""

    model: str
    stacks: Mapping[str, StackTrace]
    is_causal: bool
    prompt_length: int | None = None  # where generated tokens begin
    no_neurons: str | None = None  # why queries and keys are missing
    notes: tuple[str, ...] = ()
    bos: Bos | None = None  # whether a BOS token was to begin the text; None: not known
    word_pieces: bool = False  # whether the tokenizer marks them by "##" and leaves out spaces
    without: tuple[Head, ...] = ()  # heads that were switched off
    live: LiveInputs | None = field(default=None, repr=False, compare=False)

    def __repr__(self) -> str:
        return f"Trace({self.model!r}, {self.default.queries!r}, {[*self.stacks.values()]})"

    @staticmethod
    def from_weights(
        weights: Weights,
        tokens: Sequence[str],
        *,
        target_tokens: Sequence[str] | None = None,
        segments: Sequence[int] | None = None,
        special: Sequence[bool] | None = None,
        model: str = "attention",
    ) -> Trace:
        """A trace of weights from elsewhere.

        A matrix (query × key), one layer (head × query × key), all layers (layer × head × query ×
        key), or a sequence with one entry per layer, each with or without a batch axis of 1; torch
        or numpy. `tokens` are looked at; `target_tokens` look, if others than `tokens`
        (cross-attention).
        """
        keys = label_tokens([unmark(token) for token in tokens], segments, special)
        queries = keys
        if target_tokens is not None:
            queries = label_tokens([unmark(token) for token in target_tokens])
        layers = _layers(weights)
        for number, layer in enumerate(layers):
            _check(layer, number, layers[0].shape[0], queries, keys)
        name: Stack = "self" if target_tokens is None else "cross"
        stack = StackTrace(
            name=name,
            layers=tuple(range(len(layers))),
            heads=tuple(range(layers[0].shape[0])),
            weights=dict(enumerate(layers)),
            queries=queries,
            keys=keys,
        )
        return Trace(
            model=model,
            stacks={name: stack},
            is_causal=name == "self" and all(not layer.triu(1).any() for layer in layers),
            no_neurons="the weights were given without queries and keys",
        )

    @staticmethod
    def from_cache(cache: Any, tokens: Sequence[str], *, model: str = "attention") -> Trace:
        """A trace of weights that another library has kept.

        `cache` is an ActivationCache of TransformerLens, whose patterns are named
        `blocks.LAYER.attn.hook_pattern`, or a mapping from layer number to weights, as nnsight
        saves them. Each has head × query × key, with or without a batch axis of 1.
        """
        patterns: dict[int, Any] = {}
        for name, weights in cache.items():
            found = _PATTERN.fullmatch(str(name))
            if found is not None:
                patterns[int(found[1] or found[0])] = getattr(weights, "value", weights)
        if not patterns:
            raise CaptureError(
                "The cache has no attention weights: run the network with names that end in "
                "hook_pattern, or give a mapping from layer number to weights."
            )
        layers = sorted(patterns)
        trace = Trace.from_weights([patterns[layer] for layer in layers], tokens, model=model)
        own = trace.default
        numbered = {layer: own.weights[place] for place, layer in enumerate(layers)}
        stack = replace(own, layers=tuple(layers), weights=numbered)
        return replace(trace, stacks={own.name: stack})

    def save(
        self, path: str | Path, *, precision: Precision = "exact", neurons: bool = True
    ) -> None:
        """Keep the trace in a .hst file, which `headscope.open_trace` opens without the model.

        `precision` is "exact", or "uint16" or "uint8" for a file of half or a quarter of the size;
        `neurons=False` leaves out queries, keys and values.
        """
        from headscope.model.stored import save_trace

        save_trace(self, path, precision=precision, neurons=neurons)

    @property
    def text(self) -> str:
        """The text that was read, with what the model wrote behind it."""
        return self.stacks.get("decoder", self.default).queries.text

    @property
    def answer(self) -> str:
        """What the model wrote; nothing if it wrote nothing."""
        if self.generated is None:
            return ""
        side = self.stacks.get("decoder", self.default).queries
        places = [side.places[token] for token in self.generated.tokens]
        known = [place for place in places if place is not None]
        return side.text[known[0].start : known[-1].end] if known else ""

    @property
    def default(self) -> StackTrace:
        """The only stack, or the encoder."""
        return self.stacks.get("encoder") or next(iter(self.stacks.values()))

    def stack(self, name: str | None = None) -> StackTrace:
        """One stack by name, or the default one."""
        if name is None:
            return self.default
        if name not in self.stacks:
            raise CaptureError(f"The trace has no stack {name!r}; it has {', '.join(self.stacks)}.")
        return self.stacks[name]

    @property
    def tokens(self) -> tuple[str, ...]:
        """The tokens that look, in the default stack."""
        return self.default.queries.labels

    @property
    def weights(self) -> Mapping[int, Float[Tensor, "head query key"]]:
        """Attention weights by layer number."""
        return self.default.weights

    @property
    def query(self) -> ByLayer | None:
        """Query vectors by layer number, None where the family does not show them."""
        return self.default.query

    @property
    def key(self) -> ByLayer | None:
        """Key vectors by layer number, None where the family does not show them."""
        return self.default.key

    @property
    def layers(self) -> tuple[int, ...]:
        """The numbers of the captured layers."""
        return self.default.layers

    @property
    def heads(self) -> tuple[int, ...]:
        """The numbers of the captured heads."""
        return self.default.heads

    @property
    def segments(self) -> tuple[Span, ...]:
        """The parts that a trace has of itself, in the default stack.

        Turns of a chat by role, else the two texts of a pair, else prompt and continuation.
        """
        side = self.default.queries
        if side.turns:
            return turns(side)
        if 1 in side.segments:
            own = ((name, [n for n, s in enumerate(side.segments) if s == text])
                   for text, name in enumerate("AB"))  # fmt: skip
            return tuple(Span(name, tuple(tokens)) for name, tokens in own)
        written = self.generated
        if written is None or self.default.name == "encoder":
            return ()
        return (Span("prompt", tuple(range(written.tokens[0]))), written)

    @property
    def generated(self) -> Span | None:
        """The tokens that the model wrote, None if it wrote none; of a decoder in its own stack."""
        if self.prompt_length is None:
            return None
        written = self.stacks.get("decoder", self.default).queries
        tokens = tuple(range(self.prompt_length, len(written)))
        return Span("generated", tokens) if tokens else None

    def spans(
        self,
        by: By | None = None,
        *,
        pattern: str | re.Pattern[str] | None = None,
        characters: Mapping[str, CharacterSpan] | None = None,
        stack: str | None = None,
    ) -> tuple[Span, ...]:
        """Named spans of the tokens that are looked at.

        `by` is "turn", "message" (a turn without what the template wrote), "role", "paragraph" or
        "sentence". A `pattern` gives a span for each match, named by its first group;
        `characters` are names with the first character and the one after the last.
        """
        if [by, pattern, characters].count(None) != 2:
            raise ModelError(
                "Say what the spans are: by=, or pattern=, or characters=, and only one of them."
            )
        side = self.stack(stack).keys
        if by is not None:
            return spans_by(side, by)
        if pattern is not None:
            return spans_of_pattern(side, pattern)
        return spans_of_characters(side, characters or {})

    def why(self, layer: int, head: int, query: int, key: int, *, stack: str | None = None) -> Why:
        """Why the head looks from one token at another: its score as a sum of what was written.

        See `headscope.model.why`. It takes the model, so a stored trace cannot say it.
        """
        live = self._live("ask why")
        if self.without:
            names = ", ".join(map(str, self.without))
            raise ModelError(f"This trace is without {names}; trace the text with all heads.")
        return live.explain(self.stack(stack), Head(layer, head), query, key)

    def difference(self, *, seed: int = 0) -> Difference:
        """What changes without the heads that were switched off, beside other heads of the layer.

        See `headscope.model.difference`. The others are drawn at random, by `seed`.
        """
        if not self.without:
            raise ModelError("No head is switched off in this trace; trace the text with without=.")
        live = self._live("compare it")
        return live.difference(self.default.queries.labels, self.without, seed)

    def _live(self, purpose: str) -> LiveInputs:
        if self.live is None:
            raise ModelError(
                f"This trace is without its model, {self.model}; trace the text again to {purpose}."
            )
        return self.live

    def shares(self, spans: Sequence[Span] | None = None, **options: Any) -> Shares:
        """Which span looks at which, by layer and head; see `headscope.views.shares`."""
        from headscope.views.shares import shares

        return shares(self, spans, **options)

    def _ipython_display_(self) -> None:
        """In a notebook a trace shows itself as its head view."""
        self.head_view()._ipython_display_()

    def _repr_html_(self) -> str:
        return self.head_view()._repr_html_()

    def head_view(self, **options: Any) -> View:
        """Lines from token to token, one colour per head; see `headscope.views.head_view`."""
        from headscope.views import head_view

        return head_view(self, **options)

    def model_view(self, **options: Any) -> View:
        """All layers and heads at a glance; see `headscope.views.model_view`."""
        from headscope.views import model_view

        return model_view(self, **options)

    def neuron_view(self, **options: Any) -> View:
        """How queries and keys make one head's weights; see `headscope.views.neuron_view`."""
        from headscope.views import neuron_view

        return neuron_view(self, **options)


def _layers(weights: Weights) -> list[Float[Tensor, "head query key"]]:
    if not isinstance(weights, Sequence):
        tensor = _tensor(weights)
        if tensor.ndim not in (2, 3, 4):
            raise CaptureError(
                f"Attention weights of shape {tuple(tensor.shape)} cannot be read: give query × "
                "key, head × query × key, layer × head × query × key, or a sequence with one "
                "entry per layer."
            )
        return list(tensor) if tensor.ndim == 4 else [_layer(tensor, 0)]
    layers = [_layer(_tensor(entry), number) for number, entry in enumerate(weights)]
    if not layers:
        raise CaptureError("There are no attention weights: give at least one layer.")
    return layers


def _tensor(weights: Tensor | np.ndarray) -> Tensor:
    import torch

    return torch.as_tensor(weights).detach().to("cpu", torch.float32)


def _layer(weights: Tensor, number: int) -> Float[Tensor, "head query key"]:
    if weights.ndim == 2:
        return weights[None]
    single = weights[0] if weights.ndim == 4 and weights.shape[0] == 1 else weights
    if single.ndim == 3:
        return single
    raise CaptureError(
        f"Layer {number} has attention weights of shape {tuple(weights.shape)}: give head × query "
        "× key, with a batch axis of 1 at most."
    )


def _check(weights: Tensor, number: int, heads: int, queries: Tokens, keys: Tokens) -> None:
    expected = (heads, len(queries), len(keys))
    if tuple(weights.shape) != expected:
        raise CaptureError(
            f"Layer {number} has attention weights of shape {tuple(weights.shape)}, but {heads} "
            f"heads, {len(queries)} looking and {len(keys)} looked-at tokens need {expected}."
        )
    if not bool(weights.isfinite().all()) or bool((weights < 0).any()):
        raise CaptureError(f"Layer {number} has attention weights that are negative or not finite.")
    largest = float(weights.sum(-1).max())
    if largest > 1 + _ROUNDED:
        raise CaptureError(
            f"Layer {number} has an attention row that sums to {largest:.4g}: rows sum to at most "
            "1 after the softmax; give weights, not scores."
        )


def label_tokens(
    labels: Sequence[str],
    segments: Sequence[int] | None = None,
    special: Sequence[bool] | None = None,
) -> Tokens:
    """Tokens of which nothing but labels is known: their text is the labels with spaces between."""
    for given, what in ((segments, "segments"), (special, "special")):
        if given is not None and len(given) != len(labels):
            raise CaptureError(f"There are {len(labels)} tokens but {len(given)} {what}.")
    ends = accumulate(len(label) + 1 for label in labels)
    return Tokens(
        ids=(),
        labels=tuple(labels),
        places=tuple(
            Characters(end - len(label) - 1, end - 1)
            for end, label in zip(ends, labels, strict=True)
        ),
        special=tuple(special) if special is not None else (False,) * len(labels),
        segments=tuple(segments) if segments is not None else (0,) * len(labels),
        texts=(" ".join(labels),),
    )
