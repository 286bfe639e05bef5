"""Blocks of query rows added up to one layer.

Everything here is a sum over queries, a row of its own for every query, or a maximum: so it does
not matter how many rows a block has.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headscope.observe.batch import AnnotatedBatch
from headscope.observe.concentration import renormalised_entropy
from headscope.observe.pairs import related_pairs
from headscope.observe.reduced import Peaks, ReducedLayer, counted_rows

OF_QUERIES = ("rows", "to_null", "everything", "own")
ADDED = ("columns", "nats", "pair_sums")


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


class GrowingLayer:
    """What the blocks seen so far add up to; nothing of a block is kept but its share of that.

    Kept blocks would lie scattered between the large matrices that come and go, and the memory
    between them could not be used again.
    """

    def __init__(self, batch: AnnotatedBatch) -> None:
        self._batch = batch
        self._block = 0  # queries of the first one
        self._total: RowSums | None = None

    def add(self, sums: RowSums, start: int) -> None:
        """Take a block of queries from `start` on."""
        count = sums.rows.shape[-1]
        if self._total is None:
            self._total, self._block = _nothing(sums, self._batch.mask.shape[1]), count
        for name in OF_QUERIES:
            getattr(self._total, name)[..., start : start + count] = getattr(sums, name)
        for name in ADDED:
            getattr(self._total, name).add_(getattr(sums, name))
        self._total = replace(self._total, apart=self._total.apart.larger(sums.apart))

    def finish(self, index: int, look: Callable[[int, int], Tensor]) -> ReducedLayer:
        """The layer, when all its blocks are there."""
        assert self._total is not None
        total = self._total
        return ReducedLayer(
            index=index,
            batch=self._batch,
            rows=total.rows,
            columns=total.columns.float(),
            to_null=total.to_null,
            everything=total.everything,
            nats=total.nats,
            pair_sums=total.pair_sums,
            apart=total.apart,
            own=total.own,
            look=lambda start, stop: look(start, stop).float(),
            on_offset=partial(on_offset_by_rows, look, self._batch, self._block),
        )


def _nothing(sums: RowSums, tokens: int) -> RowSums:
    """Room for all queries, and sums in float64: there may be thousands of blocks."""
    rooms = {name: _room(getattr(sums, name), tokens) for name in OF_QUERIES}
    zeros = {name: torch.zeros_like(getattr(sums, name), dtype=torch.float64) for name in ADDED}
    return replace(sums, **rooms, **zeros)


def _room(values: Float[Tensor, "batch head query"], tokens: int) -> Tensor:
    return values.new_zeros(*values.shape[:-1], tokens)


def on_offset_by_rows(
    look: Callable[[int, int], Tensor], batch: AnnotatedBatch, block: int, offset: int
) -> Float[Tensor, "batch head"]:
    """Kept weight between every token and the one at an offset; looks at all rows once more."""
    tokens = batch.mask.shape[1]
    found = torch.zeros((), dtype=torch.float64, device=batch.mask.device)
    for start in range(0, tokens, block):
        kept = _kept(look(start, min(start + block, tokens)), batch, start)
        found = found + kept.diagonal(start + offset, dim1=-2, dim2=-1).double().sum(-1)
    return found.float()


def _kept(weights: Tensor, batch: AnnotatedBatch, start: int) -> Tensor:
    pairs = batch.pairs_of(start, start + weights.shape[2])
    return weights.float().masked_fill(~pairs[:, None], 0.0)


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
