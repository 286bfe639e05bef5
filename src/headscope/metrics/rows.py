"""Blocks of query rows added up to one layer.

Everything here is a sum over queries, a row of its own for every query, or a maximum: so it does
not matter how many rows a block has.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headscope.metrics.batch import AnnotatedBatch
from headscope.metrics.concentration import renormalised_entropy
from headscope.metrics.pairs import related_pairs
from headscope.metrics.reduced import Peaks, ReducedLayer, counted_rows


@dataclass(frozen=True)
class RowSums:
    """What a block of query rows adds to its layer."""

    rows: Float[Tensor, "batch head query"]
    to_null: Float[Tensor, "batch head query"]
    everything: Float[Tensor, "batch head query"]
    own: Float[Tensor, "batch head query"]
    columns: Float[Tensor, "batch head key"]
    nats: Float[Tensor, "batch head"]
    pair_sums: Float[Tensor, "batch head feature"]
    apart: Peaks


def sum_rows(
    weights: Float[Tensor, "batch head query key"], batch: AnnotatedBatch, start: int
) -> RowSums:
    """Reduce the weights of the queries from `start` on."""
    stop = start + weights.shape[2]
    kept = _kept(weights, batch, start)
    mask = batch.mask[:, None, start:stop]
    null = batch.null.to(weights.dtype)[:, None, :, None]
    to_null = (weights @ null).squeeze(-1).float().masked_fill(~mask, 0.0)
    rows = kept.sum(-1)
    counted = counted_rows(to_null, rows)
    own = kept.diagonal(start, dim1=-2, dim2=-1).clone()
    return RowSums(
        rows=rows,
        to_null=to_null,
        everything=weights.float().sum(-1).masked_fill(~mask, 0.0),
        own=own,
        columns=kept.sum(-2),
        nats=renormalised_entropy(kept, rows).masked_fill(~counted, 0.0).sum(-1),
        pair_sums=torch.cat([_on_arcs(kept, batch, start), _distance(kept, start)], dim=-1),
        apart=_apart(kept, start),
    )


def join(
    index: int,
    batch: AnnotatedBatch,
    blocks: list[RowSums],
    look: Callable[[int, int], Tensor],
) -> ReducedLayer:
    """The layer that consecutive blocks make up."""
    apart = blocks[0].apart
    for block in blocks[1:]:
        apart = apart.larger(block.apart)
    return ReducedLayer(
        index=index,
        batch=batch,
        rows=torch.cat([block.rows for block in blocks], -1),
        columns=_add([block.columns for block in blocks]).float(),
        to_null=torch.cat([block.to_null for block in blocks], -1),
        everything=torch.cat([block.everything for block in blocks], -1),
        nats=_add([block.nats for block in blocks]),
        pair_sums=_add([block.pair_sums for block in blocks]),
        apart=apart,
        own=torch.cat([block.own for block in blocks], -1),
        look=lambda start, stop: look(start, stop).float(),
        on_offset=partial(on_offset_by_rows, look, batch, blocks[0].rows.shape[-1]),
    )


def on_offset_by_rows(
    look: Callable[[int, int], Tensor], batch: AnnotatedBatch, block: int, offset: int
) -> Float[Tensor, "batch head"]:
    """Kept weight between every token and the one at an offset; looks at all rows once more."""
    tokens = batch.mask.shape[1]
    found = [
        _kept(look(start, min(start + block, tokens)), batch, start)
        .diagonal(start + offset, dim1=-2, dim2=-1)
        .sum(-1)
        for start in range(0, tokens, block)
    ]
    return _add(found).float()


def _kept(weights: Tensor, batch: AnnotatedBatch, start: int) -> Tensor:
    pairs = batch.pairs_of(start, start + weights.shape[2])
    return weights.float().masked_fill(~pairs[:, None], 0.0)


def _add(parts: list[Tensor]) -> Tensor:
    """In float64: there may be thousands of blocks."""
    total = parts[0].double()
    for part in parts[1:]:
        total += part
    return total


def _distance(kept: Tensor, start: int) -> Float[Tensor, "batch head 1"]:
    queries, keys = kept.shape[-2:]
    place = torch.arange(start, start + queries, device=kept.device)
    separation = (place[:, None] - torch.arange(keys, device=kept.device)).abs()
    # Row by row, then in float64: one long float32 sum would lose the fifth digit.
    by_row = torch.einsum("bhqk,qk->bhq", kept, separation.to(kept.dtype))
    return by_row.double().sum(-1, keepdim=True)


def _on_arcs(kept: Tensor, batch: AnnotatedBatch, start: int) -> Float[Tensor, "batch head 2"]:
    forms = [_on_pairs(kept, pairs, start) for pairs in related_pairs(batch)]
    return torch.stack(forms, dim=-1)


def _on_pairs(
    kept: Tensor, pairs: Int[Tensor, "pair 3"], start: int
) -> Float[Tensor, "batch head"]:
    here = pairs[(pairs[:, 1] >= start) & (pairs[:, 1] < start + kept.shape[2])]
    row, query, key = here.unbind(-1)
    found = kept.new_zeros(kept.shape[:2])
    return found.index_add_(0, row, kept[row, :, query - start, key])


def _apart(kept: Tensor, start: int) -> Peaks:
    """The largest weight between two tokens; overwrites the weights of tokens for themselves."""
    kept.diagonal(start, dim1=-2, dim2=-1).zero_()
    by_query, key = kept.max(-1)
    weight, query = by_query.max(-1)
    return Peaks(weight, query + start, key.gather(-1, query[..., None]).squeeze(-1))
