"""A layer of a whole batch from queries, keys and the log-sum-exp of every row, on a GPU.

The matrix is never held. With a = exp(z − lse), z the scores, and s the weight that a row pays to
tokens that are not null, the entropy of the row, null weight dropped and the rest renormalised, is

    ln s − (Σ a·z) / s + lse

What is linear in the key follows from sums over columns, what is linear in the query from those
over rows. Two kernels read queries and keys, for all texts at once, token behind token: one finds
the weights of chosen pairs (to null tokens, to oneself, on arcs), one goes over all pairs of every
text and keeps nothing but sums over keys.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headscope.model.attention import PackedAttention, Packing, widen
from headscope.model.capture.gpu.packed import visible
from headscope.model.capture.modes import block_rows
from headscope.observe.batch import AnnotatedBatch, packing_of, related_pairs
from headscope.observe.layer import (
    Layer,
    LayerSums,
    at_least,
    counted_rows,
    renormalised_entropy,
    sum_by_text,
    sum_segments,
)
from headscope.observe.offsets import near_offsets

PAIRS_AT_A_TIME = 2**20
NOTHING = -1  # in place of a key: a pair that has no weight


@dataclass(frozen=True)
class KeySums:
    """Sums over the queries that count, for every key."""

    columns: Float[Tensor, "head token"]
    scores: Float[Tensor, "head token"]  # Σ row weight · a · z
    distance: Float[Tensor, "head token"]  # Σ a · |i − j|
    peak: Float[Tensor, "head token"]  # the largest weight paid by another token; -1 if none counts


class _Places(NamedTuple):
    """What counts in the texts of a batch: the same in all layers."""

    content: Bool[Tensor, "token"]
    queries: Int[Tensor, "pair"]  # of the pairs whose weights are asked for
    keys: Int[Tensor, "pair"]
    nulls: int  # null keys of a text, at most
    arcs: tuple[Int[Tensor, "text+1"], ...]  # where the arcs of every text begin, for both forms


class PackedLayer(Layer):
    """The sums of all texts, and their queries and keys for whatever else is asked."""

    def __init__(
        self,
        index: int,
        batch: AnnotatedBatch,
        attention: PackedAttention,
        counting: PackedAttention,
        sums: LayerSums,
    ) -> None:
        self.index, self.batch = index, batch
        self._attention = attention
        self._counting = counting  # rows that do not count have endless sums, so no weight
        self._sums = sums

    @property
    def sums(self) -> LayerSums:
        return self._sums

    @property
    def block(self) -> int:
        texts, tokens = self.batch.mask.shape
        return block_rows(texts * self.rows.shape[1], tokens, self.rows.device)

    def weights(self, start: int, stop: int) -> Float[Tensor, "batch head query key"]:
        return _look(self._attention, self.batch, slice(start, min(stop, self.rows.shape[-1])))

    def text(self, row: int, start: int, stop: int) -> Float[Tensor, "head query key"]:
        firsts = packing_of(self.batch.host or self.batch).firsts  # no question to a GPU
        return _text(self._attention, slice(int(firsts[row]), int(firsts[row + 1])), start, stop)

    def corner(
        self, size: int, query: Int[Tensor, "cell"], key: Int[Tensor, "cell"]
    ) -> Float[Tensor, "batch head cell"]:
        packing, mask = self._attention.packing, self.batch.mask
        make = partial(_cells, packing, mask, query, key)
        queries, keys = self.batch.once(f"cells of {size}", make)
        weights = weights_of_pairs(self._attention, queries, keys)
        return weights.unflatten(1, (len(mask), len(query))).transpose(0, 1)

    @cached_property
    def to_first(self) -> Float[Tensor, "batch head query"]:
        packing = self._attention.packing
        queries = torch.arange(len(packing.place), device=packing.place.device)
        firsts = packing.firsts[packing.text.long()]
        weights = weights_of_pairs(self._attention, queries.int(), firsts.int())
        return packing.unpack(weights).transpose(0, 1)

    def on_offset(self, offset: int) -> Float[Tensor, "batch head"]:
        make = partial(_at_offset, self._attention.packing, self._content, offset)
        queries, keys = self.batch.once(f"offset {offset}", make)
        weights = weights_of_pairs(self._attention, queries, keys)
        return self._attention.packing.unpack(weights).sum(-1).T

    def by_offset(self, longest: int) -> Float[Tensor, "batch head bin"]:
        offsets = near_offsets(longest, is_causal=self.batch.is_causal)
        near = sum_offsets(self._counting, self._content, offsets)
        further = (self.total - near.sum(-1, dtype=self.total.dtype)).clamp(min=0)
        return torch.cat([near, further[..., None].to(near.dtype)], dim=-1)

    def on_pairs(self, pairs: Int[Tensor, "pair 3"], least: float) -> Float[Tensor, "batch head"]:
        packing, texts = self._attention.packing, len(self.batch.rows)
        total = self.total.new_zeros(texts, self.rows.shape[1], dtype=torch.float64)
        for some in pairs.split(PAIRS_AT_A_TIME):
            row, queries, keys = _packed_pairs(packing, some)
            weights = weights_of_pairs(self._attention, queries.int(), keys.int())
            total += sum_by_text(at_least(weights, least), row, texts)
        return total.float()

    @property
    def _content(self) -> Bool[Tensor, "token"]:
        return self._attention.packing.pack(self.batch.content)


def pack_layer(index: int, attention: PackedAttention, batch: AnnotatedBatch) -> PackedLayer:
    """All sums of a layer."""
    packing, places = attention.packing, places_of(batch)
    weights, tokens = weights_of_pairs(attention, places.queries, places.keys), len(places.content)
    to_null, self_weight, on_arcs = weights.split(
        [places.nulls * tokens, tokens, weights.shape[1] - (places.nulls + 1) * tokens], dim=1
    )
    to_null = to_null.unflatten(1, (places.nulls, tokens)).sum(1)
    rows = (1 - to_null).clamp(min=0).masked_fill(~places.content, 0.0)
    counted = counted_rows(to_null, rows)
    row_weights = torch.where(counted, 1 / rows, 0.0)
    endless = attention.lse.masked_fill(~places.content, torch.inf)
    counting = replace(attention, lse=endless)
    key_sums = sum_keys(counting, places.content, row_weights, batch.first_peak_token)
    entropy = torch.where(counted, renormalised_entropy(rows, -attention.lse), 0.0)
    spread = packing.unpack(
        torch.stack([rows, to_null, torch.ones_like(rows), self_weight * places.content,
                     key_sums.columns, entropy - key_sums.scores, key_sums.distance])
    ).transpose(1, 2)  # fmt: skip
    largest_apart = _largest_apart(packing, key_sums.peak, batch.first_peak_token)
    largest_self = spread[3][..., batch.first_peak_token :].amax(-1)
    sums = LayerSums(
        rows=to_the_total(spread[0], spread[4].double()),
        to_null=spread[1],
        row_total=spread[2],
        self_weight=spread[3],
        columns=spread[4],
        entropy_sum=spread[5].sum(-1, dtype=torch.float64),
        distance=spread[6].sum(-1, dtype=torch.float64),
        on_arcs=_by_text(on_arcs, places.arcs),
        largest=torch.maximum(largest_apart, largest_self),
        largest_apart=largest_apart,
    )
    return PackedLayer(index, batch, attention, counting, sums)


def to_the_total(
    rows: Float[Tensor, "batch head query"], columns: Float[Tensor, "batch head key"]
) -> Float[Tensor, "batch head query"]:
    """1 − null weight is rounded where nearly all is null; the columns have the exact sum."""
    total = rows.double().sum(-1, keepdim=True).clamp(min=torch.finfo(torch.float32).tiny)
    return (rows * (columns.sum(-1, keepdim=True) / total)).float()


def places_of(batch: AnnotatedBatch) -> _Places:
    """What counts in a batch; the host can compute it before a GPU is free."""
    return batch.once_on_host("packed places", _places)


def _places(batch: AnnotatedBatch) -> _Places:
    packing = packing_of(batch)
    tokens = torch.arange(len(packing.place), device=packing.place.device)
    null_keys = _null_keys(packing, packing.pack(batch.null))  # null text
    to_null = null_keys[:, packing.text]
    related = [_packed_pairs(packing, pairs) for pairs in related_pairs(batch)]
    nulls = len(null_keys)
    queries = torch.cat([tokens.repeat(nulls + 1), *(pairs[1] for pairs in related)])
    keys = torch.cat([to_null.flatten(), tokens, *(pairs[2] for pairs in related)])
    texts = torch.arange(packing.shape[0] + 1, device=tokens.device)
    arcs = [torch.searchsorted(pairs[0].contiguous(), texts) for pairs in related]
    content = packing.pack(batch.content)
    return _Places(
        content, queries.int(), keys.int(), nulls, (arcs[0], arcs[1] + len(related[0][0]))
    )


def _null_keys(packing: Packing, null: Bool[Tensor, "token"]) -> Int[Tensor, "null text"]:
    """The null tokens of every text, one to a row; texts with fewer than others have gaps."""
    null_tokens = null.nonzero()[:, 0]
    text = packing.text[null_tokens].long()
    counts = torch.bincount(text, minlength=packing.shape[0])
    most = max(1, int(counts.max()))
    first = counts.cumsum(0) - counts
    number = torch.arange(len(null_tokens), device=null_tokens.device) - first[text]
    keys = null_tokens.new_full((most, packing.shape[0]), NOTHING)
    keys[number, text] = null_tokens
    return keys


def _packed_pairs(packing: Packing, pairs: Int[Tensor, "pair 3"]) -> Int[Tensor, "3 pair"]:
    """Text, query and key of pairs, which are in the order of texts, as numbers of tokens."""
    number, width = packing.number, packing.shape[1]
    row, query, key = pairs.unbind(-1)
    return torch.stack([row, number[row * width + query], number[row * width + key]])


def _by_text(
    weights: Float[Tensor, "head pair"], arcs: tuple[Int[Tensor, "text+1"], ...]
) -> Float[Tensor, "text head form"]:
    """Sums over the arcs of every text, always in the same order."""
    work = _kernel(weights, "sum_segments_on_gpu", sum_segments)
    return torch.stack([work(weights, at) for at in arcs], dim=-1)


def _largest_apart(
    packing: Packing, peak: Float[Tensor, "head token"], first_peak_token: int
) -> Float[Tensor, "text head"]:
    """The largest weight between two tokens of every text, from a certain token on."""
    by_key = packing.unpack(peak, -1.0)[..., first_peak_token:]  # head text token
    return by_key.amax(-1).clamp(min=0).T


def _at_offset(
    packing: Packing, content: Bool[Tensor, "token"], offset: int
) -> tuple[Int[Tensor, "token"], Int[Tensor, "token"]]:
    """Every token and the one at an offset of the same text, if both count."""
    queries = torch.arange(len(content), device=content.device)
    keys = (queries + offset).clamp(0, len(content) - 1)
    inside = (queries + offset == keys) & (packing.text == packing.text[keys])
    fits = inside & content & content[keys]
    return queries.int(), keys.masked_fill(~fits, NOTHING).int()


def _cells(packing: Packing, mask: Tensor, query: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
    """Query and key of the same cells of every text, if it has them."""
    tokens = packing.number.unflatten(0, packing.shape)
    there = mask[:, query] & mask[:, key]
    keys = tokens[:, key].masked_fill(~there, NOTHING)
    return tokens[:, query].flatten().int(), keys.flatten().int()


def _text(
    attention: PackedAttention, span: slice, start: int, stop: int
) -> Float[Tensor, "head query key"]:
    rows = slice(span.start + start, min(span.start + stop, span.stop))
    key = widen(attention.key[span]).transpose(0, 1)
    query = widen(attention.query[rows]).transpose(0, 1).unflatten(0, (len(key), -1))
    scores = (query @ key[:, None].mT).flatten(0, 1) * attention.scaling
    weights = (scores - attention.lse[:, rows, None]).exp()
    return weights.tril(start) if attention.kind == "causal" else weights


def _look(
    attention: PackedAttention, batch: AnnotatedBatch, rows: slice
) -> Float[Tensor, "batch head query key"]:
    tokens = attention.packing.number.unflatten(0, attention.packing.shape)
    key = widen(attention.key[tokens]).transpose(1, 2)
    query = widen(attention.query[tokens[:, rows]]).transpose(1, 2).unflatten(1, (key.shape[1], -1))
    scores = (query @ key[:, :, None].mT).flatten(1, 2) * attention.scaling
    lse = attention.packing.unpack(attention.lse, torch.inf).transpose(0, 1)[..., rows, None]
    seen = batch.mask[:, None, rows, None] & batch.mask[:, None, None, :]
    if attention.kind == "causal":
        seen = seen.tril(rows.start)
    return (scores - lse).exp().masked_fill(~seen, 0.0)


def weights_of_pairs(
    attention: PackedAttention, queries: Int[Tensor, "pair"], keys: Int[Tensor, "pair"]
) -> Float[Tensor, "head pair"]:
    """exp(scaling·q·k − lse) of single pairs of tokens; zero without a key or where it is later."""
    return _kernel(attention.lse, "weigh_pairs_on_gpu", weigh_pairs)(attention, queries, keys)


def sum_keys(
    attention: PackedAttention,
    content: Bool[Tensor, "token"],
    row_weights: Float[Tensor, "head token"],
    first_peak_token: int = 0,
) -> KeySums:
    """Sum over all pairs of every text, for every key; null tokens take part in no pair.

    Rows that do not count have an infinite log-sum-exp. The largest weights are those that queries
    from `first_peak_token` on pay.
    """
    work = _kernel(attention.lse, "sum_keys_on_gpu", sum_keys_plainly)
    return work(attention, content, row_weights, first_peak_token)


def sum_offsets(
    attention: PackedAttention, content: Bool[Tensor, "token"], offsets: range
) -> Float[Tensor, "text head offset"]:
    """The weight of every text at each offset, query less key; null tokens take no part."""
    work = _kernel(attention.lse, "sum_offsets_on_gpu", sum_offsets_plainly)
    return work(attention, content, offsets)


def _kernel(tensor: Tensor, name: str, plain: Callable) -> Callable:
    if not tensor.is_cuda:
        return plain
    from headscope.observe import packed_kernel

    return getattr(packed_kernel, name)


def weigh_pairs(attention: PackedAttention, queries: Tensor, keys: Tensor) -> Tensor:
    """`weights_of_pairs` in plain torch: the reference for the kernel."""
    groups = attention.query.shape[1] // attention.key.shape[1]
    q = widen(attention.query[queries.long()])
    k = widen(attention.key[keys.clamp(min=0).long()]).repeat_interleave(groups, 1)
    scores = (q * k).sum(-1).T * attention.scaling
    weights = (scores - attention.lse[:, queries.long()]).exp()
    unseen = keys < 0
    if attention.kind == "causal":
        unseen = unseen | (keys > queries)
    return weights.masked_fill(unseen, 0.0)


def sum_keys_plainly(
    attention: PackedAttention, content: Tensor, row_weights: Tensor, first_peak_token: int = 0
) -> KeySums:
    """`sum_keys` over the matrix of all tokens: the reference for the kernel."""
    groups = attention.query.shape[1] // attention.key.shape[1]
    query = widen(attention.query).transpose(0, 1)
    key = widen(attention.key).repeat_interleave(groups, 1).transpose(0, 1)
    scores = query @ key.mT * attention.scaling
    counts = visible(attention.packing, attention.kind) & content[:, None] & content
    weights = (scores - attention.lse[..., None]).exp().masked_fill(~counts, 0.0)
    position = torch.arange(len(content), device=content.device)
    apart = (position[:, None] - position).abs()
    first = attention.packing.firsts[attention.packing.text]
    silent = (position < first + first_peak_token)[:, None]
    peak = weights.masked_fill((apart == 0) | silent, 0.0).amax(-2).masked_fill(~content, -1.0)
    return KeySums(
        weights.sum(-2),
        (weights * scores * row_weights[..., None]).sum(-2),
        (weights * apart).sum(-2),
        peak,
    )


def sum_offsets_plainly(attention: PackedAttention, content: Tensor, offsets: range) -> Tensor:
    """`sum_offsets` offset by offset: the reference for the kernel."""
    packing, sums = attention.packing, []
    for offset in offsets:
        queries, keys = _at_offset(packing, content, -offset)
        weights = weigh_pairs(attention, queries, keys)
        sums.append(packing.unpack(weights).sum(-1).T)
    return torch.stack(sums, dim=-1)
