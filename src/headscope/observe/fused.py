"""A layer from queries, keys and the log-sum-exp of every row; its matrix is never held.

With a = exp(z − lse), z the scores, and s the weight that a row pays to tokens that are not null:

  row entropy, null weight dropped and the rest renormalised   ln s − (Σ a·z) / s + lse
  largest weight of all                                        where z − lse is largest

What is linear in the key follows from sums over columns, what is linear in the query from those
over rows; weights of chosen pairs (arcs, a token and itself) are found one by one. A pass over the
scores gives the rest: a GPU's kernel keeps them in registers, elsewhere blocks stay in the cache.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from importlib.util import find_spec

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headscope.model.attention import PackedAttention, PlainAttention, TextAttention, widen
from headscope.model.capture.modes import block_rows
from headscope.observe.batch import AnnotatedBatch, related_pairs
from headscope.observe.layer import (
    LayerSums,
    PeakPairs,
    Spans,
    at_least,
    cached,
    counted_rows,
    largest_apart,
    renormalised_entropy,
    separation,
    sum_distances,
    to_the_total,
)
from headscope.observe.offsets import near_offsets, separation_bins, sum_by_offset, sum_spans
from headscope.observe.packed import PackedLayer, pack_layer
from headscope.observe.rows import RowsLayer, build_rows, look_at

PAIRS_AT_A_TIME = 2**14
BAND = 128  # queries whose scores for the keys around them are held at a time
WIDEST = 256  # head width that fits a GPU's registers


@dataclass(frozen=True)
class _Places:
    """Where a text is in the batch, and where what counts is in the text: the same in all layers.

    To ask a GPU for it once per layer would keep it waiting.
    """

    span: slice
    content: Bool[Tensor, "token"]
    null: Int[Tensor, "some"]
    related: tuple[Int[Tensor, "pair 2"], ...]


@dataclass(frozen=True, kw_only=True)
class FusedLayer(LayerSums):
    """The sums of all texts, and their queries and keys for whatever else is asked."""

    index: int
    batch: AnnotatedBatch
    texts: Sequence[TextAttention]
    places: Sequence[_Places]

    def look(self, start: int, stop: int) -> Float[Tensor, "batch head query key"]:
        """The weights of some query rows as they are, null filter not applied."""
        spans, tokens = [each.span for each in self.places], self.batch.mask.shape[1]
        return look_at(self.texts, spans, tokens)(start, stop)

    def text(self, row: int, start: int, stop: int) -> Float[Tensor, "head query key"]:
        """The same of one input of the batch, up to its last token at least."""
        return self.look(start, stop)[row]

    def corner(
        self, size: int, query: Int[Tensor, "cell"], key: Int[Tensor, "cell"]
    ) -> Float[Tensor, "batch head cell"]:
        """The weights of some cells within the first `size` rows, as they are."""
        return self.look(0, size)[:, :, query, key]

    @cached
    def to_first(self) -> Float[Tensor, "batch head query"]:
        """Weight that every real query pays to the first token."""
        first = torch.zeros(1, dtype=torch.long, device=self.batch.mask.device)
        paid = [_weights_of_keys(text, first)[..., 0] for text in self.texts]
        return _spread(paid, self.places, self.batch.mask.shape[1])

    def on_offset(self, offset: int) -> Float[Tensor, "batch head"]:
        """Kept weight between every token and the one at an offset, pair by pair."""
        pairs = zip(self.texts, self.places, strict=True)
        return torch.stack([_on_offset(text, place, offset) for text, place in pairs]).float()

    def by_offset(self, longest: int) -> Float[Tensor, "batch head bin"]:
        """Kept weight at every offset up to a longest one, from a band of scores; then the rest."""
        pairs = zip(self.texts, self.places, strict=True)
        near = torch.stack([_near_by_offset(text, place, longest) for text, place in pairs])
        further = (self.total - near.sum(-1)).clamp(min=0)
        return torch.cat([near, further[..., None]], dim=-1).float()

    @cached
    def spans(self) -> Spans:
        """Kept weight by separation, some rows of a text at a time."""
        bins = separation_bins(self.batch.mask.shape[1])
        pairs = zip(self.texts, self.places, strict=True)
        found = [_spans(text, place, bins) for text, place in pairs]
        return Spans(
            torch.stack([each.weight for each in found]),
            torch.stack([each.distance for each in found]),
            torch.stack([each.squares for each in found]),
        )

    def on_pairs(self, pairs: Int[Tensor, "pair 3"], least: float) -> Float[Tensor, "batch head"]:
        """Weight of pairs that count, without those below `least`, pair by pair."""
        ends = torch.searchsorted(pairs[:, 0].contiguous(), _counted_up(self.texts, pairs.device))
        counts = ends.diff().tolist()
        found = [
            _on_pairs(text, own[:, 1:] - place.span.start, least)
            for text, place, own in zip(self.texts, self.places, pairs.split(counts), strict=True)
        ]
        return torch.stack(found).float()


@dataclass(frozen=True)
class PassSums:
    """Sums over the pairs that count, and the largest weight between two tokens."""

    columns: Float[Tensor, "head key"]
    scores: Float[Tensor, "head"]  # Σ row weight · a · z
    distance: Float[Tensor, "head"]  # Σ a · |i − j|
    apart: PeakPairs
    rows: Float[Tensor, "head query"] | None = None  # where the pass goes row by row


def fuse_layer(
    index: int, attention: PlainAttention | PackedAttention, batch: AnnotatedBatch
) -> FusedLayer | PackedLayer | RowsLayer:
    """All sums of a layer; texts at once, or one by one, each without its padding."""
    if isinstance(attention, PackedAttention):
        return pack_layer(index, attention, batch)
    places = batch.once("places", lambda: [_places(batch, row) for row in range(len(batch.rows))])
    tokens = batch.mask.shape[1]
    if any(text.kind is None for text in attention.texts):
        look = look_at(attention.texts, [each.span for each in places], tokens)
        return build_rows(index, attention.texts[0], batch, look)
    sought = batch.sought_from
    pairs = zip(attention.texts, places, strict=True)
    texts = [_sum_text(text, place, sought) for text, place in pairs]
    return FusedLayer(
        index=index,
        batch=batch,
        texts=attention.texts,
        places=places,
        rows=_spread([text.rows for text in texts], places, tokens),
        to_null=_spread([text.to_null for text in texts], places, tokens),
        everything=_spread([text.everything for text in texts], places, tokens),
        own=_spread([text.own for text in texts], places, tokens),
        columns=_spread([text.columns for text in texts], places, tokens),
        nats=torch.stack([text.nats for text in texts]),
        on_arcs=torch.stack([text.on_arcs for text in texts]),
        distance=torch.stack([text.distance for text in texts]),
        apart=_stack([text.apart for text in texts], places),
        sought_from=sought,
    )


def _places(batch: AnnotatedBatch, row: int) -> _Places:
    first, count = int(batch.mask[row].int().argmax()), int(batch.mask[row].sum())
    span = slice(first, first + count)
    related = [pairs[pairs[:, 0] == row, 1:] - first for pairs in related_pairs(batch)]
    null = batch.null[row, span].nonzero()[:, 0]
    return _Places(span, batch.content[row, span], null, tuple(related))


def _sum_text(text: TextAttention, places: _Places, sought_from: int) -> LayerSums:
    content = places.content
    to_null = _weights_of_keys(text, places.null).sum(-1)
    rows = (1 - to_null).clamp(min=0).masked_fill(~content, 0.0)
    counted = counted_rows(to_null, rows)
    found = sum_pass(text, content, torch.where(counted, 1 / rows, 0.0), sought_from)
    without_scores = torch.where(counted, renormalised_entropy(rows, -text.lse), 0.0)
    tokens = torch.arange(len(content), device=content.device)
    own = weights_of_pairs(text, torch.stack([tokens, tokens], -1))
    related = [weights_of_pairs(text, pairs).double().sum(-1) for pairs in places.related]
    return LayerSums(
        rows=to_the_total(rows, found.columns) if found.rows is None else found.rows,
        to_null=to_null,
        everything=torch.ones_like(to_null),  # a plain softmax pays all it has
        own=own.masked_fill(~content, 0.0),
        columns=found.columns.float(),
        nats=without_scores.double().sum(-1) - found.scores,
        on_arcs=torch.stack(related, dim=-1),
        distance=found.distance,
        apart=found.apart,
    )


def sum_pass(
    text: TextAttention,
    content: Bool[Tensor, "token"],
    row_weights: Float[Tensor, "head query"],
    sought_from: int = 0,
) -> PassSums:
    """Reduce a text with a causal or full mask; null tokens are no part of any pair."""
    if text.query.is_cuda and _has_kernel(text.query):
        from headscope.observe.fused_kernel import sum_on_gpu

        found = sum_on_gpu(text, content, row_weights)
        # The kernel seeks among all tokens that count.
        return replace(found, apart=_seek(text, content, sought_from)) if sought_from else found
    return sum_in_blocks(text, content, row_weights, sought_from=sought_from)


def _has_kernel(query: Tensor) -> bool:
    """Whether the GPU kernel takes these numbers, and its compiler is there."""
    known = query.dtype in (torch.float32, torch.float16, torch.bfloat16)
    return known and query.shape[-1] <= WIDEST and find_spec("triton") is not None


def sum_in_blocks(
    text: TextAttention,
    content: Bool[Tensor, "token"],
    row_weights: Float[Tensor, "head query"],
    block: int | None = None,
    sought_from: int = 0,
) -> PassSums:
    """The pass in plain tensor operations, `block` query rows at a time."""
    heads, tokens = text.query.shape[:2]
    block = block or block_rows(heads, tokens, content.device)
    silent = _silent(content, sought_from)
    columns = text.lse.new_zeros(heads, tokens, dtype=torch.float64)
    scores, distance = columns.new_zeros(heads), columns.new_zeros(heads)
    apart = PeakPairs(text.lse.new_zeros(heads), *columns.new_zeros(2, heads).long())
    paid: list[Tensor] = []
    for start in range(0, tokens, block):
        rows = slice(start, min(start + block, tokens))
        found = _sum_block(text, content, row_weights, rows, silent)
        columns[:, : found.columns.shape[1]] += found.columns
        scores += found.scores
        distance += found.distance
        apart = apart.larger(found.apart)
        assert found.rows is not None
        paid.append(found.rows)
    return PassSums(columns * content, scores, distance, apart, torch.cat(paid, -1) * content)


def _sum_block(
    text: TextAttention, content: Tensor, row_weights: Tensor, rows: slice, silent: Tensor
) -> PassSums:
    scores, weights = _seen_block(text, rows)
    keys = weights.shape[-1]
    of_queries, of_keys = content[rows].to(weights.dtype), content[:keys].to(weights.dtype)
    columns = torch.matmul(of_queries, weights)
    far = separation(rows.start, rows.stop, keys, content.device)
    distance = sum_distances(weights, far * of_queries[:, None] * of_keys)
    by_row = scores.mul_(weights) @ of_keys
    paid = weights @ of_keys
    apart = _largest(weights, silent, rows)
    return PassSums(columns, (by_row * row_weights[:, rows]).sum(-1), distance, apart, paid)


def _seen_block(text: TextAttention, rows: slice) -> tuple[Tensor, Tensor]:
    """Scores and weights of some queries for the keys that they may see."""
    keys = rows.stop if text.kind == "causal" else text.key.shape[1]
    scores = text.scores(rows.start, rows.stop, keys)
    return scores, (scores - text.lse[:, rows, None]).exp_()


def _silent(content: Bool[Tensor, "token"], sought_from: int) -> Int[Tensor, "some"]:
    """Tokens that no largest weight is sought of."""
    sought = content.clone()
    sought[:sought_from] = False
    return (~sought).nonzero()[:, 0]


def _seek(text: TextAttention, content: Bool[Tensor, "token"], sought_from: int) -> PeakPairs:
    """The largest weight between two of the tokens that are sought, in blocks of rows."""
    heads, tokens = text.query.shape[:2]
    block, silent = block_rows(heads, tokens, content.device), _silent(content, sought_from)
    found = []
    for start in range(0, tokens, block):
        rows = slice(start, min(start + block, tokens))
        found.append(_largest(_seen_block(text, rows)[1], silent, rows))
    return reduce(PeakPairs.larger, found)


def _largest(weights: Tensor, silent: Int[Tensor, "some"], rows: slice) -> PeakPairs:
    """The largest weight between two tokens that are sought; overwrites the others."""
    weights.index_fill_(1, silent[(silent >= rows.start) & (silent < rows.stop)] - rows.start, 0)
    weights.index_fill_(2, silent[silent < weights.shape[-1]], 0)
    return largest_apart(weights, rows.start)


def _on_offset(text: TextAttention, place: _Places, offset: int) -> Float[Tensor, "head"]:
    query = torch.arange(len(place.content), device=place.content.device)
    key = query + offset
    inside = (key >= 0) & (key < len(query))
    pairs = torch.stack([query, key], -1)[inside]
    counted = place.content[pairs].all(-1)
    return weights_of_pairs(text, pairs[counted]).double().sum(-1)


def _spans(text: TextAttention, place: _Places, bins: int) -> Spans:
    heads, tokens = text.query.shape[:2]
    block = block_rows(heads, tokens, text.query.device)
    found = []
    for start in range(0, tokens, block):
        rows = slice(start, min(start + block, tokens))
        weights = _seen_block(text, rows)[1]
        counts = place.content[rows, None] & place.content[: weights.shape[-1]]
        found.append(sum_spans(torch.where(counts, weights, 0.0), start, bins))
    return reduce(Spans.__add__, found)


def _on_pairs(
    text: TextAttention, pairs: Int[Tensor, "pair 2"], least: float
) -> Float[Tensor, "head"]:
    parts = (_weights_of_pairs(text, some) for some in pairs.split(PAIRS_AT_A_TIME))
    none = text.lse.new_zeros(len(text.query), dtype=torch.float64)
    return sum((at_least(part, least).double().sum(-1) for part in parts), none)


def _counted_up(texts: Sequence[TextAttention], device: torch.device) -> Int[Tensor, "text+1"]:
    return torch.arange(len(texts) + 1, device=device)


def _near_by_offset(
    text: TextAttention, place: _Places, longest: int
) -> Float[Tensor, "head near"]:
    """Kept weight at the near offsets: of some queries and the keys around them at a time."""
    tokens, is_causal = len(place.content), text.kind == "causal"
    found = text.lse.new_zeros(
        len(text.query), len(near_offsets(longest, is_causal=is_causal)), dtype=torch.float64
    )
    for start in range(0, tokens, BAND):
        stop = min(start + BAND, tokens)
        first, last = max(0, start - longest), stop if is_causal else min(tokens, stop + longest)
        weights = replace(
            text,
            query=text.query[:, start:stop],
            key=text.key[:, first:last],
            lse=text.lse[:, start:stop],
            kind="full",
        ).weights(0, stop - start)
        pairs = place.content[start:stop, None] & place.content[first:last]
        kept = torch.where(pairs.tril(start - first) if is_causal else pairs, weights, 0.0)
        found += sum_by_offset(kept, start - first, longest, is_causal)[..., :-1]
    return found


def weights_of_pairs(
    text: TextAttention, pairs: Int[Tensor, "pair 2"]
) -> Float[Tensor, "head pair"]:
    """exp(scaling·q·k − lse) of single pairs (query, key) of a causal or full mask."""
    parts = [_weights_of_pairs(text, some) for some in pairs.split(PAIRS_AT_A_TIME)]
    return torch.cat(parts, dim=-1)


def _weights_of_pairs(text: TextAttention, pairs: Tensor) -> Tensor:
    query, key = pairs.unbind(-1)
    groups = text.query.shape[0] // text.key.shape[0]
    keys = widen(text.key[:, key]).repeat_interleave(groups, 0)
    scores = (widen(text.query[:, query]) * keys).sum(-1) * text.scaling
    return _seen((scores - text.lse[:, query]).exp(), text, query, key)


def _weights_of_keys(
    text: TextAttention, keys: Int[Tensor, "some"]
) -> Float[Tensor, "head query some"]:
    """The weights that all queries pay to a few keys."""
    groups = text.query.shape[0] // text.key.shape[0]
    few = widen(text.key[:, keys]).repeat_interleave(groups, 0)
    scores = widen(text.query) @ few.mT * text.scaling
    queries = torch.arange(text.query.shape[1], device=keys.device)
    return _seen((scores - text.lse[..., None]).exp(), text, queries[:, None], keys)


def _seen(weights: Tensor, text: TextAttention, query: Tensor, key: Tensor) -> Tensor:
    return weights.masked_fill(key > query, 0.0) if text.kind == "causal" else weights


def _spread(
    parts: Sequence[Float[Tensor, "head token"]], places: Sequence[_Places], tokens: int
) -> Float[Tensor, "batch head token"]:
    """The values of every text at its tokens, zero on padding."""
    spread = parts[0].new_zeros(len(parts), parts[0].shape[0], tokens)
    for row, (part, place) in enumerate(zip(parts, places, strict=True)):
        spread[row, :, place.span] = part
    return spread


def _stack(peaks: Sequence[PeakPairs], places: Sequence[_Places]) -> PeakPairs:
    pairs = [(peak, place.span.start) for peak, place in zip(peaks, places, strict=True)]
    return PeakPairs(
        torch.stack([peak.weight for peak in peaks]),
        torch.stack([peak.query + start for peak, start in pairs]),
        torch.stack([peak.key + start for peak, start in pairs]),
    )
