"""One layer's attention under the null filter, with the sums that several metrics share.

The weights are read a few times only: once to drop what does not count, then once for each of the
marginal sums below. What is linear in the key follows from `columns`, in the query from `rows`.
"""

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headscope.observe.batch import AnnotatedBatch
from headscope.observe.concentration import MOST_NULL, renormalised_entropy, smoothed_entropy
from headscope.observe.positions import on_offset
from headscope.observe.special import SPECIAL, received


@dataclass(frozen=True)
class ObservedLayer:
    """Weights of one layer for one batch; every sum is computed when first asked for."""

    index: int  # place of the layer in the result
    weights: Float[Tensor, "batch head query key"]
    batch: AnnotatedBatch

    @cached_property
    def kept(self) -> Float[Tensor, "batch head query key"]:
        """Weights of the pairs that count, zero elsewhere; rows are not renormalised."""
        return torch.where(self.batch.pairs[:, None], self.wide, 0.0)

    @cached_property
    def wide(self) -> Float[Tensor, "batch head query key"]:
        """The weights in float32: a sum of two-byte weights would be rounded to two bytes."""
        return self.weights.float()

    @cached_property
    def rows(self) -> Float[Tensor, "batch head query"]:
        """Kept weight that every query pays."""
        return self.kept.sum(-1)

    @cached_property
    def columns(self) -> Float[Tensor, "batch head key"]:
        """Kept weight that every key receives."""
        return self.kept.sum(-2)

    @cached_property
    def total(self) -> Float[Tensor, "batch head"]:
        """Kept weight of the whole input: the denominator of Eqs. 3, 4 and 6."""
        return self.rows.sum(-1)

    def on_offset(self, offset: int) -> Float[Tensor, "batch head"]:
        """Kept weight between every token and the one at an offset."""
        return on_offset(self.kept, self.batch.mask, offset)

    @cached_property
    def to_null(self) -> Float[Tensor, "batch head query"]:
        """Weight that every real query, null or not, pays to the null tokens."""
        if self.batch.null_is_first:
            paid = self.wide[..., 0]
        else:
            paid = (self.wide @ self.batch.null.float()[:, None, :, None]).squeeze(-1)
        return paid.masked_fill(~self.batch.mask[:, None], 0.0)

    @cached_property
    def everything(self) -> Float[Tensor, "batch head query"]:
        """Weight that every real query pays at all; less than one where the family has a sink."""
        return self.wide.sum(-1).masked_fill(~self.batch.mask[:, None], 0.0)

    @cached_property
    def counted(self) -> Bool[Tensor, "batch head query"]:
        """Rows whose entropy means something (Eq. 7)."""
        return (self.to_null <= MOST_NULL) & (self.rows > 0)

    @cached_property
    def nats(self) -> Float[Tensor, "batch head"]:
        """Entropies of the counted rows, null weight dropped and the rest renormalised, summed."""
        entropy = renormalised_entropy(self.kept, self.rows)
        return entropy.masked_fill(~self.counted, 0.0).sum(-1)

    def peaks(self, with_self: bool) -> "DensePeaks":
        """The largest kept weight of every input and head, a token's own counting or not."""
        if with_self:
            return DensePeaks(self.kept)
        same = torch.eye(self.kept.shape[-1], dtype=torch.bool, device=self.kept.device)
        return DensePeaks(self.kept.masked_fill(same, 0.0))

    def look(self, start: int, stop: int) -> Float[Tensor, "batch head query key"]:
        """The weights of some query rows as they are, null filter not applied."""
        return self.weights[:, :, start:stop].float()

    @cached_property
    def to_special(self) -> Float[Tensor, "batch head query special"]:
        """Weight that every query pays to [CLS], to [SEP] and to punctuation."""
        return received(self.kept, self.batch.one_hot("special", len(SPECIAL)))

    @cached_property
    def smoothed_entropy(self) -> Float[Tensor, "batch head query"]:
        """Entropy of every smoothed row, null tokens included."""
        return smoothed_entropy(self.kept, self.batch.mask)

    @cached_property
    def pair_sums(self) -> Float[Tensor, "batch head feature"]:
        """Kept weight summed with each of `AnnotatedBatch.pair_features`."""
        return self.kept.flatten(2) @ self.batch.pair_features


@dataclass(frozen=True)
class DensePeaks:
    """The largest weights of whole matrices, found where they are asked for."""

    kept: Float[Tensor, "batch head query key"]

    @cached_property
    def weight(self) -> Float[Tensor, "batch head"]:
        """The largest weight of every input and head."""
        return self._cells.amax(-1)

    def locate(
        self, row: Int[Tensor, "*place"], head: Int[Tensor, "*place"]
    ) -> tuple[Int[Tensor, "*place"], Int[Tensor, "*place"]]:
        """Query and key of some of them; of equal ones the first."""
        cell = self._cells[row, head].argmax(-1)
        size = self.kept.shape[-1]
        return cell // size, cell % size

    @cached_property
    def _cells(self) -> Float[Tensor, "batch head cell"]:
        return self.kept.flatten(2)
