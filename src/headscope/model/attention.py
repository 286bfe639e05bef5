"""What a capture shows of one layer while the forward pass runs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

Stack = Literal["self", "encoder", "decoder", "cross"]


@dataclass(frozen=True, slots=True)
class LayerAttention:
    """One layer's attention for one batch; the tensors die with the observer's call.

    `query`, `key` and `value` are what entered the model's own attention function: after rotary
    embedding, keys and values not yet repeated for grouped-query attention. They are None where the
    family computes attention outside the interface.
    """

    stack: Stack
    layer: int
    weights: Float[Tensor, "batch head query key"]
    query: Float[Tensor, "batch head query dim"] | None = None
    key: Float[Tensor, "batch key_head key dim"] | None = None
    value: Float[Tensor, "batch key_head key value_dim"] | None = None
    scaling: float | None = None
    mask: Tensor | None = None  # additive, as the model's function received it
    extras: Mapping[str, Any] = field(default_factory=dict)  # softcap, sinks, position bias …
    module: nn.Module | None = None

    def __repr__(self) -> str:
        return f"LayerAttention({self.stack!r}, layer {self.layer}, {_shape(self.weights)})"


@dataclass(frozen=True, slots=True)
class RowAttention:
    """Some query rows of one layer's attention, computed by the model's own function."""

    stack: Stack
    layer: int
    start: int  # the first of these queries
    queries: int  # how many the layer has in all
    weights: Float[Tensor, "batch head query key"]
    look: "Look"
    value: Float[Tensor, "batch key_head key value_dim"] | None = None

    def __repr__(self) -> str:
        place = f"layer {self.layer}, queries {self.start} to {self.stop} of {self.queries}"
        return f"RowAttention({self.stack!r}, {place}, {_shape(self.weights)})"

    @property
    def stop(self) -> int:
        """The query after the last of these."""
        return self.start + self.weights.shape[2]


@dataclass(frozen=True, slots=True)
class TextAttention:
    """One text's attention in one layer as its parts: weight = exp(scaling·q·k + bias − lse).

    There is no padding here. `bias` gives the additive mask of some queries where it is more than
    causal or full.
    """

    query: Float[Tensor, "head query dim"]
    key: Float[Tensor, "key_head key dim"]
    scaling: float
    lse: Float[Tensor, "head query"]  # logarithm of the sum of exp(score) over each row
    kind: Literal["causal", "full"] | None
    bias: Callable[[int, int], Float[Tensor, "query key"]] | None = None  # where kind is None

    def __repr__(self) -> str:
        heads, queries, _ = self.query.shape
        return f"TextAttention({heads} heads, {queries} × {self.key.shape[1]} tokens)"

    def scores(self, start: int, stop: int, keys: int) -> Float[Tensor, "head query key"]:
        """Scores of some queries for the first `keys` keys, in float32 at least.

        Unseen pairs get a finite number so low that their weight is zero.
        """
        heads, key_heads = self.query.shape[0], self.key.shape[0]
        query = widen(self.query[:, start:stop])
        grouped = query.reshape(key_heads, -1, query.shape[-1])  # heads of a group share their key
        # Scaled after the product, as the models do it: large scores round as theirs do.
        scores = (grouped @ widen(self.key[:, :keys]).mT).mul_(self.scaling)
        scores = scores.reshape(heads, stop - start, keys)
        if self.bias is not None:
            scores += widen(self.bias(start, stop)[:, :keys]).clamp(min=UNSEEN)
        elif self.kind == "causal" and keys > start:
            later = torch.ones(stop - start, keys - start, dtype=torch.bool, device=query.device)
            scores[..., start:].masked_fill_(later.triu(1), UNSEEN)
        return scores

    def weights(self, start: int, stop: int) -> Float[Tensor, "head query key"]:
        """Weights of some queries."""
        scores = self.scores(start, stop, self.key.shape[1])
        return (scores - self.lse[:, start:stop, None]).exp()


@dataclass(frozen=True, slots=True)
class PlainAttention:
    """One layer's attention without its matrix, text by text."""

    stack: Stack
    layer: int
    texts: tuple[TextAttention, ...]

    def __repr__(self) -> str:
        return f"PlainAttention({self.stack!r}, layer {self.layer}, {len(self.texts)} texts)"


Look = Callable[
    [int, int], Float[Tensor, "batch head query key"]
]  # weights of queries start … stop
UNSEEN = -1e30


def _shape(weights: Tensor) -> str:
    return " × ".join(map(str, weights.shape))


def widen(values: Tensor) -> Tensor:
    """At least float32, so that sums of two-byte numbers keep their digits."""
    return values.to(torch.promote_types(values.dtype, torch.float32))
