"""Whether padding leaves a text's attention alone: proved, not assumed."""

from collections.abc import Callable

import torch
from torch import Tensor

from headscope.model.attention import LayerAttention
from headscope.model.batch import Batch, Side

_PADDING = 2
_TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-4}

Show = Callable[[Batch, Callable[[LayerAttention], None]], object]


def can_pad(show: Show, probe: Batch, pad: int, side: Side) -> bool:
    """Whether the probe gets the same attention with padding beside it as without."""
    alone = _weights(show, probe)
    padded = _weights(show, _padded(probe, pad, side))
    tolerance = _TOLERANCE.get(alone[0].dtype, 2e-2)
    return all(
        torch.allclose(a, b, rtol=0, atol=tolerance) for a, b in zip(alone, padded, strict=True)
    )


def _weights(show: Show, batch: Batch) -> list[Tensor]:
    """The weights of every layer without the padded rows and columns."""
    found: list[Tensor] = []
    text = batch.span(0)
    whole = slice(None)

    def keep(seen: LayerAttention) -> None:
        queries = whole if seen.stack in ("decoder", "cross") else text
        keys = whole if seen.stack == "decoder" else text
        found.append(seen.weights[0, :, queries, keys].clone())

    show(batch, keep)
    return found


def _padded(batch: Batch, pad: int, side: Side) -> Batch:
    def beside(tensor: Tensor, fill: int) -> Tensor:
        more = torch.full_like(tensor[:, :_PADDING], fill)
        return torch.cat([more, tensor] if side == "left" else [tensor, more], 1)

    return Batch(
        ids=beside(batch.ids, pad),
        mask=beside(batch.mask, 0),
        segments=beside(batch.segments, 0),
        rows=batch.rows,
        lengths=batch.lengths,
        side=side,
        target=batch.target,
    )
