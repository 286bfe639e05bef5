"""A layer as blocks of query rows, computed by the model's own function and added up.

Everything here is a sum over queries, a row of its own for every query, or a maximum: so it does
not matter how many rows a block has.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headscope.model.attention import TextAttention
from headscope.model.capture.modes import block_rows
from headscope.observe.batch import AnnotatedBatch, related_pairs
from headscope.observe.layer import (
    LayerSums,
    Spans,
    at_least,
    cached,
    counted_rows,
    keep,
    largest_apart,
    on_diagonal,
    separation,
    sum_by_text,
    sum_distances,
    sum_entropies,
    weight_of_rows,
    weight_to_first,
    weight_to_null,
)
from headscope.observe.offsets import separation_bins, sum_by_offset, sum_spans

Look = Callable[[int, int], Float[Tensor, "batch head query key"]]


@dataclass(frozen=True, kw_only=True)
class RowsLayer(LayerSums):
    """The sums of all blocks, and the model's own function to compute some rows once more."""

    index: int
    batch: AnnotatedBatch
    block: int  # query rows at a time
    weights: Look

    def look(self, start: int, stop: int) -> Float[Tensor, "batch head query key"]:
        """The weights of some query rows as they are, null filter not applied."""
        return self.weights(start, stop).float()

    def text(self, row: int, start: int, stop: int) -> Float[Tensor, "head query key"]:
        """The same of one input of the batch, up to its last token at least."""
        return self.look(start, stop)[row]

    def corner(
        self, size: int, query: Int[Tensor, "cell"], key: Int[Tensor, "cell"]
    ) -> Float[Tensor, "batch head cell"]:
        """The weights of some cells within the first `size` rows, as they are."""
        return self.weights(0, size)[:, :, query, key].float()

    @cached
    def to_first(self) -> Float[Tensor, "batch head query"]:
        """Weight that every real query pays to the first token; computes all rows once more."""
        tokens = self.batch.mask.shape[1]
        blocks = [
            weight_to_first(self.look(start, min(start + self.block, tokens)), self.batch, start)
            for start in range(0, tokens, self.block)
        ]
        return torch.cat(blocks, dim=-1)

    def on_offset(self, offset: int) -> Float[Tensor, "batch head"]:
        """Kept weight between every token and the one at an offset; computes all rows once more."""
        blocks = (on_diagonal(kept, start + offset) for start, kept in self._blocks())
        return _add_up(block.double().sum(-1) for block in blocks)

    def by_offset(self, longest: int) -> Float[Tensor, "batch head bin"]:
        """Kept weight at every offset up to a longest one; computes all rows once more."""
        is_causal = self.batch.is_causal
        return _add_up(sum_by_offset(kept, start, longest, is_causal).double()
                       for start, kept in self._blocks())  # fmt: skip

    @cached
    def spans(self) -> Spans:
        """Kept weight by separation; computes all rows once more."""
        bins = separation_bins(self.batch.mask.shape[1])
        return reduce(Spans.__add__, (sum_spans(kept, at, bins) for at, kept in self._blocks()))

    def on_pairs(self, pairs: Int[Tensor, "pair 3"], least: float) -> Float[Tensor, "batch head"]:
        """Weight of pairs that count, without those below `least`; computes all rows once more."""
        found = [self._on_some(pairs, least, start, kept) for start, kept in self._blocks()]
        return torch.stack(found).sum(0).float()

    def _on_some(
        self, pairs: Int[Tensor, "pair 3"], least: float, start: int, kept: Tensor
    ) -> Float[Tensor, "batch head"]:
        row, query, key = _of_block(pairs, start, kept).unbind(-1)
        weights = at_least(kept[row, :, query - start, key], least)
        return sum_by_text(weights.T, row, len(kept))

    def _blocks(self) -> Iterator[tuple[int, Float[Tensor, "batch head query key"]]]:
        """The kept weights of some query rows after others, with the first of each."""
        tokens = self.batch.mask.shape[1]
        for start in range(0, tokens, self.block):
            stop = min(start + self.block, tokens)
            yield start, keep(self.look(start, stop), self.batch.pairs_of(start, stop))


def _add_up(parts: Iterable[Tensor]) -> Tensor:
    """The sum of the blocks, each in float64."""
    return torch.stack(list(parts)).sum(0).float()


class RowsBuilder:
    """Adds up the blocks of a layer; nothing of a block is kept but its share of the sums.

    Kept blocks would lie scattered between the large matrices that come and go, and the memory
    between them could not be used again.
    """

    def __init__(self, batch: AnnotatedBatch) -> None:
        self._batch = batch
        self._block = 0  # queries of the first one
        self._total: LayerSums | None = None

    def add(self, weights: Float[Tensor, "batch head query key"], start: int) -> None:
        """Add the block of queries from `start` on."""
        sums, count = sum_rows(weights, self._batch, start), weights.shape[2]
        if self._total is None:
            self._total, self._block = _empty(sums, self._batch.mask.shape[1]), count
        total = self._total
        for whole, part in zip(_of_queries(total), _of_queries(sums), strict=True):
            whole[..., start : start + count] = part
        for whole, part in zip(_added(total), _added(sums), strict=True):
            whole.add_(part)
        self._total = replace(total, apart=total.apart.larger(sums.apart))

    def finish(self, index: int, weights: Look) -> RowsLayer:
        """The layer, once all its blocks have been added."""
        assert self._total is not None
        total = self._total
        return RowsLayer(
            index=index,
            batch=self._batch,
            block=self._block,
            weights=weights,
            rows=total.rows,
            to_null=total.to_null,
            everything=total.everything,
            own=total.own,
            columns=total.columns.float(),
            nats=total.nats,
            on_arcs=total.on_arcs,
            distance=total.distance,
            apart=total.apart,
            sought_from=self._batch.sought_from,
        )


def sum_rows(
    weights: Float[Tensor, "batch head query key"], batch: AnnotatedBatch, start: int
) -> LayerSums:
    """Reduce the weights of the queries from `start` on."""
    stop, keys = start + weights.shape[2], weights.shape[3]
    wide = weights.float()
    kept = keep(wide, batch.pairs_of(start, stop))
    to_null, rows = weight_to_null(wide, batch, start), kept.sum(-1)
    return LayerSums(
        rows=rows,
        to_null=to_null,
        everything=weight_of_rows(wide, batch, start),
        own=on_diagonal(kept, start),
        columns=kept.sum(-2),
        nats=sum_entropies(kept, rows, counted_rows(to_null, rows)),
        on_arcs=_on_arcs(kept, batch, start),
        distance=sum_distances(kept, separation(start, stop, keys, kept.device)),
        apart=largest_apart(kept, start, batch.sought_from),  # last: it overwrites weights
    )


def _of_queries(sums: LayerSums) -> tuple[Tensor, ...]:
    return sums.rows, sums.to_null, sums.everything, sums.own


def _added(sums: LayerSums) -> tuple[Tensor, ...]:
    return sums.columns, sums.nats, sums.on_arcs, sums.distance


def _empty(sums: LayerSums, tokens: int) -> LayerSums:
    """Room for all queries, and sums in float64: there may be thousands of blocks."""
    rooms = [part.new_zeros(*part.shape[:-1], tokens) for part in _of_queries(sums)]
    rows, to_null, everything, own = rooms
    zeros = [torch.zeros_like(part, dtype=torch.float64) for part in _added(sums)]
    columns, nats, on_arcs, distance = zeros
    return LayerSums(
        rows=rows,
        to_null=to_null,
        everything=everything,
        own=own,
        columns=columns,
        nats=nats,
        on_arcs=on_arcs,
        distance=distance,
        apart=sums.apart,
    )


def _on_arcs(kept: Tensor, batch: AnnotatedBatch, start: int) -> Float[Tensor, "batch head form"]:
    forms = [_on_pairs(kept, pairs, start) for pairs in related_pairs(batch)]
    return torch.stack(forms, dim=-1)


def _on_pairs(
    kept: Tensor, pairs: Int[Tensor, "pair 3"], start: int
) -> Float[Tensor, "batch head"]:
    row, query, key = _of_block(pairs, start, kept).unbind(-1)
    found = kept.new_zeros(kept.shape[:2])
    return found.index_add_(0, row, kept[row, :, query - start, key])


def _of_block(pairs: Int[Tensor, "pair 3"], start: int, kept: Tensor) -> Int[Tensor, "some 3"]:
    """The pairs whose queries are in a block."""
    return pairs[(pairs[:, 1] >= start) & (pairs[:, 1] < start + kept.shape[2])]


def build_rows(index: int, text: TextAttention, batch: AnnotatedBatch, look: Look) -> RowsLayer:
    """Under a mask that is more than causal or full: block by block, from rebuilt weights."""
    texts, tokens = batch.mask.shape
    block = block_rows(texts * text.query.shape[0], tokens, batch.mask.device)
    builder = RowsBuilder(batch)
    for start in range(0, tokens, block):
        builder.add(look(start, start + block), start)
    return builder.finish(index, look)


def look_at(texts: Sequence[TextAttention], spans: Sequence[slice], tokens: int) -> Look:
    """The weights of some columns of the batch as queries; padded rows are zero."""

    def look(start: int, stop: int) -> Tensor:
        stop = min(stop, tokens)
        found = texts[0].lse.new_zeros(len(texts), len(texts[0].query), stop - start, tokens)
        for row, (text, span) in enumerate(zip(texts, spans, strict=True)):
            low, high = max(start, span.start), min(stop, span.stop)
            if low < high:
                weights = text.weights(low - span.start, high - span.start)
                found[row, :, low - start : high - start, span] = weights
        return found

    return look
