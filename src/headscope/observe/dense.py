"""A layer as whole matrices, tokens × tokens for every head: everything can be asked of it.

The weights are read a few times only: once to drop what does not count, then once for each of the
sums, which are computed on first use. What is linear in the key follows from `columns`, what is
linear in the query from `rows`.
"""

from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from headscope.model.writes import norm_weighted
from headscope.observe.batch import SPECIAL, AnnotatedBatch, related_pairs
from headscope.observe.layer import (
    Spans,
    at_least,
    cached,
    counted_rows,
    keep,
    on_diagonal,
    separation,
    sum_by_text,
    sum_entropies,
    weight_of_rows,
    weight_to_first,
    weight_to_null,
)
from headscope.observe.offsets import separation_bins, sum_by_offset, sum_spans

ENTROPY_SMOOTHING = 1e-4


@dataclass(frozen=True)
class DenseLayer:
    """Weights of one layer for one batch, and the sums that `Layer` names."""

    index: int
    weights: Float[Tensor, "batch head query key"]
    batch: AnnotatedBatch
    norms: Float[Tensor, "batch head key"] | None = None  # where both readings are wanted

    @cached
    def normed(self) -> "DenseLayer":
        """The layer with its weights multiplied by the norms of what each key would give."""
        assert self.norms is not None  # the study asked for both readings
        return DenseLayer(self.index, norm_weighted(self.weights, self.norms), self.batch)

    @cached
    def wide(self) -> Float[Tensor, "batch head query key"]:
        """The weights in float32: a sum of two-byte weights would be rounded to two bytes."""
        return self.weights.float()

    @cached
    def kept(self) -> Float[Tensor, "batch head query key"]:
        """Weights of the pairs that count, zero elsewhere; rows are not renormalised."""
        return keep(self.wide, self.batch.pairs)

    @cached
    def rows(self) -> Float[Tensor, "batch head query"]:
        return self.kept.sum(-1)

    @cached
    def columns(self) -> Float[Tensor, "batch head key"]:
        return self.kept.sum(-2)

    @cached
    def total(self) -> Float[Tensor, "batch head"]:
        return self.rows.sum(-1)

    @cached
    def own(self) -> Float[Tensor, "batch head query"]:
        return on_diagonal(self.kept, 0)

    @cached
    def to_null(self) -> Float[Tensor, "batch head query"]:
        return weight_to_null(self.wide, self.batch)

    @cached
    def to_first(self) -> Float[Tensor, "batch head query"]:
        return weight_to_first(self.wide, self.batch)

    @cached
    def everything(self) -> Float[Tensor, "batch head query"]:
        return weight_of_rows(self.wide, self.batch)

    @cached
    def counted(self) -> Bool[Tensor, "batch head query"]:
        return counted_rows(self.to_null, self.rows)

    @cached
    def nats(self) -> Float[Tensor, "batch head"]:
        return sum_entropies(self.kept, self.rows, self.counted)

    @property
    def on_arcs(self) -> Float[Tensor, "batch head form"]:
        return self._pair_sums[..., :2]

    @property
    def distance(self) -> Float[Tensor, "batch head"]:
        return self.spans.distance if self.batch.arcs is None else self._pair_sums[..., 2]

    @cached
    def _pair_sums(self) -> Float[Tensor, "batch head feature"]:
        """Kept weight on both forms of arcs and its distance: one product for all of them."""
        features = self.batch.once("pair features", partial(_pair_features, self.batch))
        return self.kept.flatten(2) @ features

    @cached
    def spans(self) -> Spans:
        bins = separation_bins(self.kept.shape[-1])
        return sum_spans(self.kept, 0, bins, is_lower=self.batch.is_causal)

    def peaks(self, with_self: bool) -> "DensePeaks":
        """The largest kept weight of every input and head, a token's own counting or not."""
        return self._peaks if with_self else self._peaks_apart

    @cached
    def _peaks(self) -> "DensePeaks":
        """With a token's own; several metrics ask for them."""
        return DensePeaks(self.kept, self.batch.sought_from)

    @cached
    def _peaks_apart(self) -> "DensePeaks":
        """Without a token's own; several metrics ask for them, too."""
        apart = self.kept.clone()
        apart.diagonal(dim1=-2, dim2=-1).zero_()
        return DensePeaks(apart, self.batch.sought_from)

    def on_pairs(self, pairs: Int[Tensor, "pair 3"], least: float) -> Float[Tensor, "batch head"]:
        """Weight of pairs that count; weights below `least` are taken as zero."""
        row, query, key = pairs.unbind(-1)
        weights = at_least(self.wide[row, :, query, key], least)
        return sum_by_text(weights.T, row, len(self.batch.rows)).float()

    def on_offset(self, offset: int) -> Float[Tensor, "batch head"]:
        """Kept weight between every token and the one at an offset."""
        return on_diagonal(self.kept, offset).sum(-1)

    def by_offset(self, longest: int) -> Float[Tensor, "batch head bin"]:
        """Kept weight at every offset up to a longest one, and of all others together."""
        is_lower = self.batch.is_causal
        return sum_by_offset(self.kept, 0, longest, is_lower, is_lower=is_lower)

    def look(self, start: int, stop: int) -> Float[Tensor, "batch head query key"]:
        """The weights of some query rows as they are, null filter not applied."""
        return self.weights[:, :, start:stop].float()

    def text(self, row: int, start: int, stop: int) -> Float[Tensor, "head query key"]:
        """The same of one input of the batch, up to its last token at least."""
        return self.weights[row, :, start:stop].float()

    def corner(
        self, size: int, query: Int[Tensor, "cell"], key: Int[Tensor, "cell"]
    ) -> Float[Tensor, "batch head cell"]:
        """The weights of some cells within the first `size` rows, as they are."""
        return self.weights[:, :, query, key].float()

    @cached
    def to_special(self) -> Float[Tensor, "batch head query special"]:
        """Weight that every query pays to [CLS], to [SEP] and to punctuation."""
        return received(self.kept, self.batch.one_hot("special", len(SPECIAL)))

    @cached
    def smoothed_entropy(self) -> Float[Tensor, "batch head query"]:
        """Entropy of every smoothed row, null tokens included."""
        return smoothed_entropy(self.kept, self.batch.mask)


@dataclass(frozen=True)
class DensePeaks:
    """The largest weights of whole matrices; a pair is searched only when it is asked for."""

    kept: Float[Tensor, "batch head query key"]
    sought_from: int = 0

    @cached
    def weight(self) -> Float[Tensor, "batch head"]:
        """The largest weight of every input and head."""
        return (self._sought.amax(-2) if self.sought_from else self.by_key).amax(-1)

    @cached
    def by_key(self) -> Float[Tensor, "batch head key"]:
        """The largest weight that every key receives, wherever peaks are sought."""
        return self.kept.amax(-2)

    def locate(
        self, row: Int[Tensor, "*place"], head: Int[Tensor, "*place"]
    ) -> tuple[Int[Tensor, "*place"], Int[Tensor, "*place"]]:
        """Query and key of some of them; of equal ones the first."""
        cell = self._sought[row, head].flatten(-2).argmax(-1)
        size = self.kept.shape[-1] - self.sought_from
        return cell // size + self.sought_from, cell % size + self.sought_from

    @property
    def _sought(self) -> Float[Tensor, "batch head query key"]:
        return self.kept[..., self.sought_from :, self.sought_from :]


def received(
    weights: Float[Tensor, "batch head query key"], classes: Shaped[Tensor, "batch key class"]
) -> Float[Tensor, "batch head query class"]:
    """Weight that every query pays to every class of keys: one matrix product for all classes."""
    return weights @ classes[:, None].to(weights.dtype)


def smoothed_entropy(
    weights: Float[Tensor, "batch head query key"],
    mask: Bool[Tensor, "batch key"],
    amount: float = ENTROPY_SMOOTHING,
) -> Float[Tensor, "batch head query"]:
    """Entropy in nats of every row smoothed over the n tokens of the input (Clark et al., Fig. 4).

    p' = (1 − amount)·p + amount/n, zero on padding.
    """
    mask = mask[:, None, None, :]
    smoothed = (1 - amount) * weights + amount / mask.sum(-1, keepdim=True)
    smoothed = smoothed.masked_fill(~mask, 0.0)
    return -torch.xlogy(smoothed, smoothed).sum(-1)


def _pair_features(batch: AnnotatedBatch) -> Float[Tensor, "batch pair feature"]:
    """Per pair: the attender is the parent, the receiver is the parent, separation."""
    texts, tokens = batch.mask.shape
    features = torch.zeros(texts, tokens, tokens, 3, device=batch.mask.device)
    for form, pairs in enumerate(related_pairs(batch)):
        features[(*pairs.unbind(-1), form)] = 1.0
    features[..., 2] = separation(0, tokens, tokens, batch.mask.device)
    return features.flatten(1, 2)
