"""A layer's sums from queries, keys and the log-sum-exp of every row; its matrix is never held.

With a = exp(z − lse), z the scores, and s the weight that a row pays to tokens that are not null:

  row entropy, null weight dropped and the rest renormalised   ln s + lse − (Σ a·z) / s
  largest weight of all                                        where z − lse is largest

What is linear in the key follows from sums over columns, what is linear in the query from sums over
rows, and the weights of chosen pairs (arcs, a token and itself) are found one by one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headscope.model.attention import PlainAttention, TextAttention, widen
from headscope.model.capture.kernels import block_rows
from headscope.observe.batch import AnnotatedBatch
from headscope.observe.fused_pass import sum_text
from headscope.observe.pairs import related_pairs
from headscope.observe.reduced import Peaks, ReducedLayer, counted_rows
from headscope.observe.rows import GrowingLayer, sum_rows

PAIRS_AT_A_TIME = 2**14


@dataclass(frozen=True)
class TextSums:
    """What one text adds; see `ReducedLayer`."""

    rows: Float[Tensor, "head query"]
    columns: Float[Tensor, "head key"]
    to_null: Float[Tensor, "head query"]
    nats: Float[Tensor, "head"]
    pair_sums: Float[Tensor, "head feature"]
    apart: Peaks  # without a batch axis
    own: Float[Tensor, "head query"]


def reduce_layer(index: int, attention: PlainAttention, batch: AnnotatedBatch) -> ReducedLayer:
    """All sums of a layer; texts one by one, each without its padding."""
    places = batch.once("places", lambda: [_places(batch, row) for row in range(len(batch.rows))])
    spans = [each.span for each in places]
    look = _look(attention.texts, spans, batch.mask.shape[1])
    if any(text.kind is None for text in attention.texts):
        return _reduce_rows(index, attention.texts[0], batch, look)
    texts = [_reduce_text(text, each) for text, each in zip(attention.texts, places, strict=True)]
    tokens, paid = batch.mask.shape[1], batch.mask[:, None].expand(-1, texts[0].rows.shape[0], -1)
    return ReducedLayer(
        index=index,
        batch=batch,
        rows=_spread([text.rows for text in texts], spans, tokens),
        columns=_spread([text.columns for text in texts], spans, tokens),
        to_null=_spread([text.to_null for text in texts], spans, tokens),
        everything=paid.float(),  # a plain softmax pays all it has
        nats=torch.stack([text.nats for text in texts]),
        pair_sums=torch.stack([text.pair_sums for text in texts]),
        apart=_stack([text.apart for text in texts], spans),
        own=_spread([text.own for text in texts], spans, tokens),
        look=look,
        on_offset=partial(_on_offset, attention.texts, places),
    )


def _on_offset(
    texts: Sequence[TextAttention], places: Sequence["_Places"], offset: int
) -> Float[Tensor, "batch head"]:
    """Kept weight between every token and the one at an offset, pair by pair."""
    sums = []
    for text, place in zip(texts, places, strict=True):
        query = torch.arange(len(place.content), device=place.content.device)
        key = query + offset
        inside = (key >= 0) & (key < len(query))
        pairs = torch.stack([query, key], -1)[inside]
        counted = place.content[pairs].all(-1)
        sums.append(weights_of_pairs(text, pairs[counted]).double().sum(-1))
    return torch.stack(sums).float()


def _reduce_rows(
    index: int, text: TextAttention, batch: AnnotatedBatch, look: Callable[[int, int], Tensor]
) -> ReducedLayer:
    """Under a mask that is more than causal or full: block by block, from rebuilt weights."""
    batches, tokens = batch.mask.shape
    block = block_rows(batches * text.query.shape[0], tokens, batch.mask.device)
    layer = GrowingLayer(batch)
    for start in range(0, tokens, block):
        layer.add(sum_rows(look(start, start + block), batch, start), start)
    return layer.finish(index, look)


@dataclass(frozen=True)
class _Places:
    """Where a text is in the batch, and where what counts is in the text: the same in all layers.

    To ask a GPU for it once per layer would keep it waiting.
    """

    span: slice
    content: Bool[Tensor, "token"]
    null: Int[Tensor, "some"]
    related: tuple[Int[Tensor, "pair 2"], ...]


def _places(batch: AnnotatedBatch, row: int) -> _Places:
    first, count = int(batch.mask[row].int().argmax()), int(batch.mask[row].sum())
    span = slice(first, first + count)
    related = [pairs[pairs[:, 0] == row, 1:] - first for pairs in related_pairs(batch)]
    null = batch.null[row, span].nonzero()[:, 0]
    return _Places(span, batch.content[row, span], null, tuple(related))


def _reduce_text(text: TextAttention, places: _Places) -> TextSums:
    content = places.content
    to_null = _weights_of_keys(text, places.null).sum(-1)
    rows = (1 - to_null).clamp(min=0).masked_fill(~content, 0.0)
    counted = counted_rows(to_null, rows)
    found = sum_text(text, content, torch.where(counted, 1 / rows, 0.0))
    logs = torch.where(counted, rows.log() + text.lse, 0.0)
    tokens = torch.arange(len(content), device=content.device)
    own = weights_of_pairs(text, torch.stack([tokens, tokens], -1))
    related = [weights_of_pairs(text, pairs).double().sum(-1) for pairs in places.related]
    return TextSums(
        rows=_to_the_total(rows, found.columns) if found.rows is None else found.rows,
        columns=found.columns.float(),
        to_null=to_null,
        nats=logs.double().sum(-1) - found.scores,
        pair_sums=torch.stack([*related, found.distance], dim=-1),
        apart=found.apart,
        own=own.masked_fill(~content, 0.0),
    )


def _to_the_total(
    rows: Float[Tensor, "head query"], columns: Float[Tensor, "head key"]
) -> Float[Tensor, "head query"]:
    """One less the null weight is rounded where nearly all is null; the columns know the sum."""
    total = rows.double().sum(-1, keepdim=True).clamp(min=torch.finfo(torch.float32).tiny)
    return (rows * (columns.sum(-1, keepdim=True) / total)).float()


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
    parts: Sequence[Float[Tensor, "head token"]], spans: Sequence[slice], tokens: int
) -> Float[Tensor, "batch head token"]:
    """The values of every text at its tokens, zero on padding."""
    spread = parts[0].new_zeros(len(parts), parts[0].shape[0], tokens)
    for row, (part, span) in enumerate(zip(parts, spans, strict=True)):
        spread[row, :, span] = part
    return spread


def _stack(peaks: Sequence[Peaks], spans: Sequence[slice]) -> Peaks:
    pairs = list(zip(peaks, spans, strict=True))
    return Peaks(
        torch.stack([peak.weight for peak in peaks]),
        torch.stack([peak.query + span.start for peak, span in pairs]),
        torch.stack([peak.key + span.start for peak, span in pairs]),
    )


def _look(
    texts: Sequence[TextAttention], spans: Sequence[slice], tokens: int
) -> Callable[[int, int], Float[Tensor, "batch head query key"]]:
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
