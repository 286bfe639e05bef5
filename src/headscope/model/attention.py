"""What a capture shows of one layer while the forward pass runs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

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
