"""What goes into an attention and what a capture shows of it while the forward pass runs.

score  = scaling · q·k            (soft-capped: c · tanh(score / c), Gemma 2)
weight = softmax(score + bias)    (with a sink: one more column that is dropped, gpt-oss)
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor, nn

Stack = Literal["self", "encoder", "decoder", "cross"]
BackendName = Literal["interface", "hooks", "outputs"]
Kind = Literal["causal", "full"]  # what a query sees where nothing is masked but padding
RowsOf = Callable[[int, int], Float[Tensor, "batch head query key"]]  # of queries start … stop

# Only the order of calls says which layer one is: many classes carry no layer number, ALBERT calls
# one module object for every layer, DiffLlama calls twice per layer. Until a plan has counted them:
UNNUMBERED = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerAttention:
    """One layer's attention for one batch, or some rows of it; the tensors die with the call.

    `query`, `key` and `value` are what entered the model's own attention function: after rotary
    embedding, keys and values not yet repeated for grouped-query attention. They are None where the
    family computes attention outside the interface.
    """

    weights: Float[Tensor, "batch head query key"]
    stack: Stack = "self"
    layer: int = UNNUMBERED
    query: Float[Tensor, "batch head query dim"] | None = None
    key: Float[Tensor, "batch key_head key dim"] | None = None
    value: Float[Tensor, "batch key_head key value_dim"] | None = None
    scaling: float | None = None
    mask: Tensor | None = None  # additive, as the model's function received it
    extras: Mapping[str, Any] = field(default_factory=dict)  # softcap, sinks, position bias …
    module: nn.Module | None = None
    output: Tensor | None = None  # batch query head dim, what the output projection receives
    start: int = 0  # the first of these queries
    rows_of: RowsOf | None = None  # any rows of the layer, where only some are shown
    is_last: bool = True  # whether no rows of the layer follow

    def __repr__(self) -> str:
        shape = " × ".join(map(str, self.weights.shape))
        rows = f" from query {self.start} on" if self.start or not self.is_last else ""
        return f"LayerAttention({self.stack!r}, layer {self.layer}, {shape}{rows})"

    @property
    def stop(self) -> int:
        """The query after the last of these."""
        return self.start + self.weights.shape[2]

    def look(self, start: int, stop: int) -> Float[Tensor, "batch head query key"]:
        """The weights of any queries of the layer."""
        if self.rows_of is None:
            return self.weights[:, :, start:stop]
        return self.rows_of(start, stop)


@dataclass(frozen=True, slots=True, repr=False)
class TextAttention:
    """One text's attention in one layer as its parts: weight = exp(scaling·q·k + bias − lse).

    There is no padding here. `bias` gives the additive mask of some queries where it is more than
    causal or full.
    """

    query: Float[Tensor, "head query dim"]
    key: Float[Tensor, "key_head key dim"]
    scaling: float
    lse: Float[Tensor, "head query"]  # logarithm of the sum of exp(score) over each row
    kind: Kind | None
    bias: Callable[[int, int], Float[Tensor, "query key"]] | None = None  # where kind is None

    def to(self, device: torch.device) -> "TextAttention":
        """The same on another device."""
        bias = self.bias
        moved = None if bias is None else lambda start, stop: bias(start, stop).to(device)
        parts = (self.query.to(device), self.key.to(device), self.scaling, self.lse.to(device))
        return TextAttention(*parts, self.kind, moved)

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
        """Weights of some queries; what lies behind all of them is not even computed."""
        tokens = self.key.shape[1]
        keys = min(stop, tokens) if self.kind == "causal" else tokens
        weights = (self.scores(start, stop, keys) - self.lse[:, start:stop, None]).exp_()
        return nn.functional.pad(weights, (0, tokens - keys))


@dataclass(frozen=True, slots=True, repr=False)
class PlainAttention:
    """One layer's attention without its matrix, text by text."""

    stack: Stack
    layer: int
    texts: tuple[TextAttention, ...]


@dataclass(frozen=True, slots=True)
class Packing:
    """Where the tokens of a batch lie when texts follow one another without padding.

    ```
      a b c ·        place   0 1 2 4 5          firsts  0 3 5
      d e · ·        text    0 0 0 1 1
    ```
    """

    shape: tuple[int, int]  # of the batch
    place: Int[Tensor, "token"]  # of every token in the flat batch
    text: Int[Tensor, "token"]
    firsts: Int[Tensor, "text+1"]  # the first token of every text, and the end
    number: Int[Tensor, "place"]  # of the token at every place of the flat batch; 0 at padding
    longest: int

    @classmethod
    def of(cls, mask: Bool[Tensor, "batch token"]) -> "Packing":
        """The tokens of a batch; its texts may be padded on either side."""
        lengths = mask.sum(-1)
        firsts = torch.nn.functional.pad(lengths.cumsum(0), (1, 0)).int()
        place = mask.flatten().nonzero()[:, 0]
        number = torch.zeros(mask.numel(), dtype=torch.long, device=mask.device)
        number[place] = torch.arange(len(place), device=mask.device)
        shape = (mask.shape[0], mask.shape[1])
        return cls(shape, place, (place // shape[1]).int(), firsts, number, int(lengths.max()))

    def to(self, device: torch.device) -> "Packing":
        """The same on a device."""
        place, text, firsts, number = (
            send(part, device) for part in (self.place, self.text, self.firsts, self.number)
        )
        return Packing(self.shape, place, text, firsts, number, self.longest)

    @property
    def is_full(self) -> bool:
        """Whether no text has padding."""
        return len(self.place) == self.shape[0] * self.shape[1]

    @property
    def positions(self) -> Int[Tensor, "token"]:
        """The place of every token in its own text, counted from 0."""
        tokens = torch.arange(len(self.text), device=self.text.device)
        return tokens - self.firsts[self.text.long()]

    def pack(self, values: Shaped[Tensor, "batch token *more"]) -> Shaped[Tensor, "all *more"]:
        """The values of all tokens, text after text."""
        flat = values.flatten(0, 1)
        return flat if self.is_full else flat[self.place]

    def unpack(self, values: Shaped[Tensor, "*more all"], fill: float = 0) -> Tensor:
        """The values at the places of their tokens: … × batch × token."""
        if not self.is_full:
            spread = values.new_full((*values.shape[:-1], self.shape[0] * self.shape[1]), fill)
            spread[..., self.place] = values
            values = spread
        return values.unflatten(-1, self.shape)


@dataclass(frozen=True, slots=True, repr=False)
class PackedAttention:
    """One layer's attention without its matrix, all texts of a batch at once."""

    stack: Stack
    layer: int
    query: Float[Tensor, "token head dim"]
    key: Float[Tensor, "token key_head dim"]
    scaling: float
    lse: Float[Tensor, "head token"]
    kind: Kind
    packing: Packing


UNSEEN = -1e30
# Masks add the most negative number of their dtype; beyond this a key is masked, not merely
# unlikely.
MASKED = -1e4


def send(tensor: Tensor, device: torch.device) -> Tensor:
    """The tensor on a device; a GPU copies from pinned memory while it still computes."""
    pinned = tensor.pin_memory() if device.type == "cuda" and not tensor.is_cuda else tensor
    return pinned.to(device, non_blocking=True)


def widen(values: Tensor) -> Tensor:
    """At least float32, so that sums of two-byte numbers keep their digits."""
    return values.to(torch.promote_types(values.dtype, torch.float32))


Watch = Callable[[LayerAttention], None]
Forward = Callable[..., Any]  # the network with its inputs bound; takes further keywords


class Backend(Protocol):
    """A way to see the attention of a network while its forward pass runs."""

    @property
    def name(self) -> BackendName:
        """The word that `headscope check` prints."""
        ...

    def run(self, forward: Forward, watch: Watch) -> Any:
        """Run the forward pass, show every call to `watch`, return the network's output."""
        ...


def bias(call: LayerAttention) -> Tensor | None:
    """All that is added to the scores: the mask and, in T5, the position bias."""
    parts = [part for part in (call.mask, call.extras.get("position_bias")) if part is not None]
    return sum(parts[1:], parts[0]) if parts else None


def sink(call: LayerAttention) -> Float[Tensor, "head"] | None:
    """The learned score, one per head, of the column that is dropped."""
    scores = call.extras.get("s_aux")
    return None if scores is None else scores.reshape(-1)


def rebuild(
    query: Float[Tensor, "*batch head query dim"],
    key: Float[Tensor, "*batch key_head key dim"],
    scaling: float,
    bias: Tensor | None = None,
    softcap: float | None = None,
    sink: Float[Tensor, "head"] | None = None,
) -> Float[Tensor, "*batch head query key"]:
    """Attention weights from their parts; where keys are fewer, groups of heads share them."""
    groups = query.shape[-3] // key.shape[-3]
    scores = scaling * query @ key.repeat_interleave(groups, -3).transpose(-1, -2)
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)
    if bias is not None:
        scores = scores + bias[..., : scores.shape[-1]]
    if sink is None:
        return scores.softmax(-1)
    column = sink[:, None, None].expand(*scores.shape[:-1], 1)
    return torch.cat([scores, column], -1).softmax(-1)[..., :-1]


def is_close(left: Tensor, right: Tensor, slack: float) -> bool:
    """Whether two tensors of the same shape differ by no more than `slack` anywhere."""
    same = left.shape == right.shape
    return same and torch.allclose(left.float(), right.float(), rtol=0, atol=slack)


def rebuilds(call: LayerAttention, *, tolerance: float, plain: bool = False) -> bool:
    """Whether queries and keys give the weights; `plain` allows neither soft-cap nor sink.

    A soft-cap may change short inputs by less than two-byte numbers show, so that one is enough.
    """
    if call.query is None or call.key is None or call.scaling is None:
        return False
    if call.query.shape[-1] != call.key.shape[-1] or call.query.shape[1] % call.key.shape[1]:
        return False
    given = {"softcap": call.extras.get("softcap"), "sink": sink(call)}
    if plain and any(part is not None for part in given.values()):
        return False
    weights = rebuild(call.query.float(), call.key.float(), call.scaling, bias(call), **given)
    return is_close(weights, call.weights, tolerance)
