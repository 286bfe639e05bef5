"""The attention of one input, layer by layer and head by head, ready to be looked at."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from jaxtyping import Float
from torch import Tensor

from headscope.errors import CaptureError
from headscope.model.attention import Stack

if TYPE_CHECKING:
    from headscope.model.from_weights import Weights
    from headscope.views import View

ByLayer = Mapping[int, Tensor]


@dataclass(frozen=True)
class Side:
    """The tokens on one axis of the attention: those that look, or those that are looked at."""

    text: str
    tokens: tuple[str, ...]
    special: tuple[bool, ...]
    segments: tuple[int, ...]
    offsets: tuple[tuple[int, int], ...]  # character spans into `text`
    word_of_token: tuple[int, ...]  # -1 for tokens of no word
    words: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.tokens)


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
    queries: Side
    keys: Side
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
    notes: tuple[str, ...] = field(default=())

    @staticmethod
    def from_weights(
        weights: "Weights",
        tokens: Sequence[str],
        *,
        target_tokens: Sequence[str] | None = None,
        segments: Sequence[int] | None = None,
        special: Sequence[bool] | None = None,
        model: str = "attention",
    ) -> "Trace":
        """A trace of weights from elsewhere.

        A matrix (query × key), one layer (head × query × key), all layers (layer × head × query ×
        key), or a sequence with one entry per layer, each with or without a batch axis of 1; torch
        or numpy. `tokens` are looked at; `target_tokens` look, if others than `tokens`
        (cross-attention).
        """
        from headscope.model.from_weights import trace_of_weights

        return trace_of_weights(weights, tokens, target_tokens, segments, special, model)

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
        return self.default.queries.tokens

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

    def head_view(self, **options: Any) -> "View":
        """Lines from token to token, one colour per head; see `headscope.views.head_view`."""
        from headscope.views import head_view

        return head_view(self, **options)

    def model_view(self, **options: Any) -> "View":
        """All layers and heads at a glance; see `headscope.views.model_view`."""
        from headscope.views import model_view

        return model_view(self, **options)

    def neuron_view(self, **options: Any) -> "View":
        """How queries and keys make one head's weights; see `headscope.views.neuron_view`."""
        from headscope.views import neuron_view

        return neuron_view(self, **options)
