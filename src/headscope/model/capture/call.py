"""One call of a model's attention, how a backend shows it, and the weights rebuilt from its parts.

score  = scaling · q·k            (soft-capped: c · tanh(score / c), Gemma 2)
weight = softmax(score + bias)    (with a sink: one more column that is dropped, gpt-oss)
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import torch
from jaxtyping import Float
from torch import Tensor, nn

BackendName = Literal["interface", "hooks", "outputs"]


@dataclass(frozen=True, slots=True)
class Call:
    """One attention computation, in the order the forward pass makes them.

    Only the order says which layer it is: many classes carry no layer number, ALBERT calls one
    module object for every layer, DiffLlama calls twice per layer.
    """

    weights: Tensor  # batch head query key
    module: nn.Module | None = None
    query: Tensor | None = None
    key: Tensor | None = None
    value: Tensor | None = None
    scaling: float | None = None
    mask: Tensor | None = None
    extras: Mapping[str, Any] = field(default_factory=dict)
    output: Tensor | None = None  # batch query head dim, what the output projection receives

    def __repr__(self) -> str:
        return f"Call({type(self.module).__name__}, weights of shape {tuple(self.weights.shape)})"


Watch = Callable[[Call], None]
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


def bias(call: Call) -> Tensor | None:
    """All that is added to the scores: the mask and, in T5, the position bias."""
    parts = [part for part in (call.mask, call.extras.get("position_bias")) if part is not None]
    return sum(parts[1:], parts[0]) if parts else None


def softcap(call: Call) -> float | None:
    """The limit c of c · tanh(score / c)."""
    return call.extras.get("softcap")


def sink(call: Call) -> Float[Tensor, "head"] | None:
    """The learned score, one per head, of the column that is dropped."""
    found = call.extras.get("s_aux")
    return None if found is None else found.reshape(-1)


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


def rebuilds(call: Call, *, tolerance: float, plain: bool = False) -> bool:
    """Whether queries and keys give the weights; `plain` allows neither soft-cap nor sink."""
    if call.query is None or call.key is None or call.scaling is None:
        return False
    if call.query.shape[-1] != call.key.shape[-1] or call.query.shape[1] % call.key.shape[1]:
        return False
    given = {} if plain else {"softcap": softcap(call), "sink": sink(call)}
    weights = rebuild(call.query.float(), call.key.float(), call.scaling, bias(call), **given)
    same = weights.shape == call.weights.shape
    return same and torch.allclose(weights.float(), call.weights.float(), rtol=0, atol=tolerance)
