"""Attention weighted by what a head would write: ‖a[i, j]·v_j W_O‖ (Kobayashi et al. 2020).

A head may look at a token whose value is close to nothing, which is then not much of a look. The
weights of a row are multiplied with the norms of what each key would give, and divided by their
sum, so that a row is a distribution again and every measure of rows keeps its meaning.

```
a[i]            .70  .20  .10        mostly the first token
‖v_j W_O‖       .10   1.   1.        which says next to nothing
norm-weighted   .19  .54  .27
```
"""

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor
from transformers.pytorch_utils import Conv1D

from headscope.errors import CaptureError
from headscope.model.attention import LayerAttention, RowAttention, widen
from headscope.model.capture.hooks import Projection
from headscope.model.capture.plan import Plan
from headscope.model.placing import at_hand

Reading = Literal["raw", "norm", "both"]  # of attention; both: raw, and the norms beside it


def matrix(projection: Projection) -> Float[Tensor, "value out"]:
    """The matrix that multiplies from the right; GPT-2's Conv1D stores it so, Linear transposed."""
    with at_hand(projection):
        weight = projection.weight.detach()
    return weight if isinstance(projection, Conv1D) else weight.T


def value_norms(
    value: Float[Tensor, "*batch key_head key value_dim"], projection: Projection, heads: int
) -> Float[Tensor, "*batch head key"]:
    """‖v_j W_O‖ for every head and key: what a head would write if it looked at j alone."""
    groups = heads // value.shape[-3]
    parts = widen(matrix(projection).to(value.device)).reshape(heads, value.shape[-1], -1)
    values = widen(value)
    # One head at a time: all heads at once would need heads × keys × width numbers.
    found = [(values[..., h // groups, :, :] @ parts[h]).norm(dim=-1) for h in range(heads)]
    return torch.stack(found, dim=-2)


def norms_of(plan: Plan, seen: LayerAttention | RowAttention) -> Float[Tensor, "batch head key"]:
    """The norms of one layer's values; `StackPlan.no_norms` says where there are none."""
    projection = next(
        slot.projection
        for slot in plan.slots
        if slot is not None and (slot.stack, slot.layer) == (seen.stack, seen.layer)
    )
    if seen.value is None or projection is None:
        raise CaptureError(f"Layer {seen.layer} gives no values to weight its attention with.")
    return value_norms(seen.value, projection, seen.weights.shape[1])


def norm_weighted(
    weights: Float[Tensor, "batch head query key"], norms: Float[Tensor, "batch head key"]
) -> Float[Tensor, "batch head query key"]:
    """Every weight times the norm of its key, each row divided by its sum."""
    scaled = widen(weights) * norms[..., None, :]
    return scaled / scaled.sum(-1, keepdim=True).clamp(min=torch.finfo(scaled.dtype).tiny)
