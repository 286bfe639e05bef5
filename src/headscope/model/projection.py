"""The output projection W_O of an attention layer, head by head."""

import torch
from jaxtyping import Float
from torch import Tensor
from transformers.pytorch_utils import Conv1D

from headscope.model.capture.events import Projection


def matrix(projection: Projection) -> Float[Tensor, "value out"]:
    """The matrix that multiplies from the right; GPT-2's Conv1D stores it so, Linear transposed."""
    weight = projection.weight.detach()
    return weight if isinstance(projection, Conv1D) else weight.T


def value_norms(
    value: Float[Tensor, "key_head key value_dim"], projection: Projection, heads: int
) -> Float[Tensor, "head key"]:
    """‖v_j W_O‖ for every head and key: what a head would write if it looked at j alone."""
    groups = heads // value.shape[0]
    parts = matrix(projection).reshape(heads, value.shape[-1], -1)
    # One head at a time: all heads at once would need heads × keys × width numbers.
    return torch.stack([(value[h // groups] @ parts[h]).norm(dim=-1) for h in range(heads)])
