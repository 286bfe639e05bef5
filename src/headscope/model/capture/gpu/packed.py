"""Attention of a whole batch without padding: outputs and the log-sum-exp of every row.

All texts of a batch go through one call, token behind token, so that a GPU is not asked once per
text. Two-byte numbers go to torch's kernel for texts of different lengths. Four-byte numbers go to
ours, which multiplies in true float32: row sums that were rounded to the ten bits of TF32 would not
belong to the scores that statistics are made of.
"""

from importlib.util import find_spec

import torch
from jaxtyping import Float
from torch import Tensor

from headscope.model.attention import Kind, Packing, widen

WIDEST = 256  # head width that fits a GPU's registers
HALVES = (torch.float16, torch.bfloat16)
Attended = tuple[Float[Tensor, "token head dim"], Float[Tensor, "head token"]]


def takes(query: Tensor, value: Tensor) -> bool:
    """Whether kernels take a batch of these numbers on this device."""
    known = query.dtype in (torch.float32, *HALVES)
    same = query.shape[-1] == value.shape[-1] and query.shape[-1] <= WIDEST
    return query.is_cuda and known and same and find_spec("triton") is not None


def attend_packed(
    query: Float[Tensor, "token head dim"],
    key: Float[Tensor, "token key_head dim"],
    value: Float[Tensor, "token key_head dim"],
    scaling: float,
    kind: Kind,
    packing: Packing,
) -> Attended:
    """Every text attends to itself; outputs and row sums, token by token."""
    if not query.is_cuda:
        return attend_plainly(query, key, value, scaling, kind, packing)
    if query.dtype in HALVES and query.shape[-1] % 8 == 0:
        firsts, longest = packing.firsts, packing.longest
        found = torch.ops.aten._flash_attention_forward(
            query, key, value, firsts, firsts, longest, longest, 0.0, kind == "causal", False,
            scale=scaling,
        )  # fmt: skip
        return found[0], found[1].float()
    from headscope.model.capture.gpu.packed_kernel import attend_on_gpu

    return attend_on_gpu(query, key, value, scaling, kind, packing)


def attend_even(
    query: Float[Tensor, "text head token dim"],
    key: Float[Tensor, "text key_head token dim"],
    value: Float[Tensor, "text key_head token dim"],
    scaling: float,
    kind: Kind,
) -> Attended | None:
    """The same for texts of one length by cuDNN, up to twice as fast; None where it cannot."""
    causal = kind == "causal"
    if query.dtype not in HALVES or not query.is_cuda:
        return None
    asked = torch.backends.cuda.SDPAParams(query, key, value, None, 0.0, causal, True)
    if not torch.backends.cuda.can_use_cudnn_attention(asked):
        return None
    attend = torch.ops.aten._scaled_dot_product_cudnn_attention
    output, lse = attend(query, key, value, None, True, 0.0, causal, False, scale=scaling)[:2]
    return lay_end_to_end(output, lse.squeeze(-1))


def lay_end_to_end(
    output: Float[Tensor, "text head token dim"], lse: Float[Tensor, "text head token"]
) -> Attended:
    """What texts of one length have, token by token."""
    return output.transpose(1, 2).flatten(0, 1), lse.transpose(0, 1).flatten(1)


def attend_plainly(
    query: Tensor, key: Tensor, value: Tensor, scaling: float, kind: Kind, packing: Packing
) -> Attended:
    """The same in plain operations, over the matrix of all tokens: the reference of the kernels."""
    groups = query.shape[1] // key.shape[1]
    wide = [widen(part).repeat_interleave(count, 1).transpose(0, 1)
            for part, count in ((query, 1), (key, groups), (value, groups))]  # fmt: skip
    scores = (wide[0] @ wide[1].mT * scaling).masked_fill(~visible(packing, kind), -torch.inf)
    output = scores.softmax(-1) @ wide[2]
    return output.transpose(0, 1).to(value.dtype), scores.logsumexp(-1)


def visible(packing: Packing, kind: Kind) -> Tensor:
    """Which tokens of all see which: those of their own text, up to themselves where causal."""
    same = packing.text[:, None] == packing.text
    return same.tril() if kind == "causal" else same
