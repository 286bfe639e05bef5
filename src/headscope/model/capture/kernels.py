"""Attention of one text without its matrix: output and log-sum-exp, from whatever the device has.

Keys and values may be shared by groups of heads; value width may differ from key width.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import pad

from headscope.model.attention import TextAttention, widen

Attended = tuple[Float[Tensor, "head query dim"], Float[Tensor, "head query"]]
# Of scores at a time, where no fused kernel fits: what a CPU core caches, what keeps a GPU busy.
BLOCK_BYTES = {"cpu": 2**22, "cuda": 2**28}
CUDA_WIDTH = 256  # the widest head that the fused kernels take
ALIGNED = 8  # they want widths that are multiples of this


def attend_whole(
    query: Tensor, key: Tensor, value: Tensor, scaling: float, causal: bool
) -> Attended:
    """Attention to all keys, or to all up to the query itself, in one fused call."""
    width = max(query.shape[-1], value.shape[-1])
    if query.device.type not in ("cpu", "cuda") or (query.is_cuda and width > CUDA_WIDTH):
        kind = "causal" if causal else "full"
        return _in_blocks(query, key, value, TextAttention(query, key, scaling, query, kind))
    groups = query.shape[0] // key.shape[0]
    width += -width % ALIGNED
    repeated = (query, key.repeat_interleave(groups, 0), value.repeat_interleave(groups, 0))
    given = [_widened(part, width)[None] for part in repeated]
    output, lse = _fused(given[0], given[1], given[2], scaling, causal)
    return output[0, ..., : value.shape[-1]], lse[0, :, : query.shape[1]].float()


def attend_blocks(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    scaling: float,
    bias: Callable[[int, int], Float[Tensor, "query key"]],
) -> Attended:
    """Attention under any additive mask, some query rows at a time."""
    return _in_blocks(query, key, value, TextAttention(query, key, scaling, query, None, bias))


def block_rows(heads: int, keys: int, device: torch.device) -> int:
    """How many query rows of scores are held at a time."""
    return max(1, BLOCK_BYTES.get(device.type, BLOCK_BYTES["cpu"]) // (4 * heads * keys))


def _widened(part: Tensor, width: int) -> Tensor:
    missing = width - part.shape[-1]
    return pad(part, (0, missing)) if missing else part


def _fused(query: Tensor, key: Tensor, value: Tensor, scaling: float, causal: bool) -> Attended:
    aten = torch.ops.aten
    if query.device.type == "cpu":
        flash = aten._scaled_dot_product_flash_attention_for_cpu
        return flash(query, key, value, 0.0, causal, scale=scaling)[:2]
    if query.dtype in (torch.float16, torch.bfloat16):
        flash = aten._scaled_dot_product_flash_attention
        return flash(query, key, value, 0.0, causal, False, scale=scaling)[:2]
    efficient = aten._scaled_dot_product_efficient_attention
    return efficient(query, key, value, None, True, 0.0, causal, scale=scaling)[:2]


def _in_blocks(query: Tensor, key: Tensor, value: Tensor, text: TextAttention) -> Attended:
    heads, queries = query.shape[:2]
    groups, block = heads // key.shape[0], block_rows(heads, key.shape[1], key.device)
    outputs: list[Tensor] = []
    sums: list[Tensor] = []
    for start in range(0, queries, block):
        scores = text.scores(start, min(start + block, queries), key.shape[1])
        sums.append(scores.logsumexp(-1))
        weights = scores.softmax(-1).unflatten(0, (-1, groups)).flatten(1, 2)
        outputs.append((weights @ widen(value)).reshape(heads, -1, value.shape[-1]))
    return torch.cat(outputs, 1).to(value.dtype), torch.cat(sums, 1)
