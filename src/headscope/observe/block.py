"""Some query rows of a layer, and the sums over them: every formula of a sum stands here, once.

Weights are kept where the pair counts (`AnnotatedBatch.pairs`), zero elsewhere. Rows of padding may
hold anything, NaN included: they are dropped by `where`, never by a product with zero.
"""

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headscope.observe.batch import AnnotatedBatch, related_pairs

MOST_NULL = 0.9  # rows with more than this on null tokens say nothing about the rest


@dataclass(frozen=True)
class RowBlock:
    """The weights of the queries from `start` on, and what they add to each sum of a layer."""

    batch: AnnotatedBatch
    start: int
    weights: Float[Tensor, "batch head query key"]  # as they are, the null filter not applied

    @property
    def stop(self) -> int:
        """The query after the last of these."""
        return self.start + self.weights.shape[2]

    @cached_property
    def wide(self) -> Float[Tensor, "batch head query key"]:
        """The weights in float32: a sum of two-byte weights would be rounded to two bytes."""
        return self.weights.float()

    @cached_property
    def kept(self) -> Float[Tensor, "batch head query key"]:
        """Weights of the pairs that count, zero elsewhere; rows are not renormalised."""
        pairs = self.batch.pairs_of(self.start, self.stop)
        return torch.where(pairs[:, None], self.wide, 0.0)

    @cached_property
    def rows(self) -> Float[Tensor, "batch head query"]:
        return self.kept.sum(-1)

    @cached_property
    def columns(self) -> Float[Tensor, "batch head key"]:
        return self.kept.sum(-2)

    @cached_property
    def self_weight(self) -> Float[Tensor, "batch head query"]:
        return self.on_offset(0)

    @cached_property
    def to_null(self) -> Float[Tensor, "batch head query"]:
        if not self.batch.has_null:
            return self.wide.new_zeros(self.wide.shape[:-1])
        if self.batch.null_is_first:
            return self.to_first
        null = self.batch.null.float()[:, None, :, None]
        return self._of_real_queries((self.wide @ null).squeeze(-1))

    @cached_property
    def to_first(self) -> Float[Tensor, "batch head query"]:
        return self._of_real_queries(self.wide[..., 0])

    @cached_property
    def row_total(self) -> Float[Tensor, "batch head query"]:
        return self._of_real_queries(self.wide.sum(-1))

    @cached_property
    def entropy_sum(self) -> Float[Tensor, "batch head"]:
        return sum_entropies(self.kept, self.rows, counted_rows(self.to_null, self.rows))

    @cached_property
    def on_arcs(self) -> Float[Tensor, "batch head form"]:
        forms = [self.on_pairs(pairs, 0.0) for pairs in related_pairs(self.batch)]
        return torch.stack(forms, dim=-1)

    @cached_property
    def distance(self) -> Float[Tensor, "batch head"]:
        """Row by row, then in float64: one long float32 sum would lose the fifth digit."""
        apart = separation(self.start, self.stop, self.kept.shape[-1], self.kept.device)
        return torch.einsum("...qk,qk->...q", self.kept, apart).double().sum(-1)

    @cached_property
    def largest(self) -> Float[Tensor, "batch head"]:
        """Among the tokens from `batch.first_peak_token` on, as queries and as keys."""
        return _largest(self.kept, self.start, self.batch.first_peak_token)

    @cached_property
    def largest_apart(self) -> Float[Tensor, "batch head"]:
        """The same between two different tokens."""
        apart = self.kept.clone()
        apart.diagonal(self.start, dim1=-2, dim2=-1).zero_()
        return _largest(apart, self.start, self.batch.first_peak_token)

    def on_offset(self, offset: int) -> Float[Tensor, "batch head query"]:
        """The kept weights between queries and the keys at an offset from them, in their order."""
        return self.kept.diagonal(self.start + offset, dim1=-2, dim2=-1).contiguous()

    def on_pairs(self, pairs: Int[Tensor, "pair 3"], least: float) -> Float[Tensor, "batch head"]:
        """Float64 sums over those pairs (input, query, key) whose query is one of these.

        The pairs are in the order of the inputs; weights below `least` are taken as zero.
        """
        if self.weights.shape[2] < self.batch.mask.shape[1]:
            query = pairs[:, 1]
            pairs = pairs[(query >= self.start) & (query < self.stop)]
        row, query, key = pairs.unbind(-1)
        weights = at_least(self.wide[row, :, query - self.start, key], least)
        return sum_by_text(weights.T, row, len(self.weights))

    def _of_real_queries(
        self, paid: Float[Tensor, "batch head query"]
    ) -> Float[Tensor, "batch head query"]:
        """What queries pay, zero where they are padding."""
        real = self.batch.mask[:, None, self.start : self.stop]
        return paid.masked_fill(~real, 0.0)


def counted_rows(
    to_null: Float[Tensor, "*text query"], rows: Float[Tensor, "*text query"]
) -> Bool[Tensor, "*text query"]:
    """Rows that pay enough to other tokens than null for their entropy to mean something."""
    return (to_null <= MOST_NULL) & (rows > 0)


def renormalised_entropy(
    rows: Float[Tensor, "*text query"], mean_log: Float[Tensor, "*text query"]
) -> Float[Tensor, "*text query"]:
    """−Σ p ln p in nats with p = a / s, s = Σ a: ln s − (Σ a·ln a) / s."""
    return rows.log() - mean_log


def sum_entropies(
    weights: Float[Tensor, "*text query key"],
    rows: Float[Tensor, "*text query"],
    counted: Bool[Tensor, "*text query"],
) -> Float[Tensor, "*text"]:
    """The renormalised entropies of the counted rows, summed; the weights are read once."""
    # Not xlogy, which takes its logarithms one by one. Of a zero the logarithm only must be finite.
    logs = weights.clamp(min=torch.finfo(weights.dtype).tiny).log_().mul_(weights)
    entropy = renormalised_entropy(rows, logs.sum(-1) / rows)
    return entropy.masked_fill(~counted, 0.0).sum(-1)


def separation(
    start: int, stop: int, keys: int, device: torch.device
) -> Float[Tensor, "query key"]:
    """|i − j| in tokens between some queries and the first so many keys."""
    queries = torch.arange(start, stop, device=device, dtype=torch.float32)
    return (queries[:, None] - torch.arange(keys, device=device, dtype=torch.float32)).abs()


def sum_by_text(
    weights: Float[Tensor, "head pair"], row: Int[Tensor, "pair"], texts: int
) -> Float[Tensor, "text head"]:
    """Sums over the pairs of every text; `row` is the text of every pair, in order."""
    firsts = torch.searchsorted(row.contiguous(), torch.arange(texts + 1, device=row.device))
    return sum_segments(weights, firsts)


def sum_segments(
    weights: Float[Tensor, "head pair"], firsts: Int[Tensor, "segment+1"]
) -> Float[Tensor, "segment head"]:
    """Sums in float64 of stretches of pairs, each from its first pair to that of the next.

    Differences of running sums, always in the same order.
    """
    running = torch.nn.functional.pad(weights.double().cumsum(-1), (1, 0))
    return running[:, firsts].diff(dim=-1).T


def at_least(weights: Float[Tensor, "*any"], least: float) -> Float[Tensor, "*any"]:
    """The weights, zero where they are below the least."""
    return torch.where(weights >= least, weights, 0.0)


def _largest(
    weights: Float[Tensor, "batch head query key"], start: int, first: int
) -> Float[Tensor, "batch head"]:
    """The largest weight between tokens from `first` on; zero where there is none."""
    weights = weights[..., max(0, first - start) :, first:]
    if weights.shape[-1] == 0 or weights.shape[-2] == 0:
        return weights.new_zeros(weights.shape[:2])
    return weights.amax((-2, -1))
