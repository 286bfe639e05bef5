"""One layer's attention under the null filter, with the sums that several metrics share.

The weights are read a few times only: once to drop what does not count, then once for each of the
marginal sums below. What is linear in the key follows from `columns`, in the query from `rows`.
"""

from dataclasses import dataclass
from functools import cached_property

from jaxtyping import Float
from torch import Tensor

from headscope.metrics.batch import AnnotatedBatch
from headscope.metrics.concentration import smoothed_entropy
from headscope.metrics.special import SPECIAL, received


@dataclass(frozen=True)
class ObservedLayer:
    """Weights of one layer for one batch; every sum is computed when first asked for."""

    index: int  # place of the layer in the result
    weights: Float[Tensor, "batch head query key"]
    batch: AnnotatedBatch

    @cached_property
    def kept(self) -> Float[Tensor, "batch head query key"]:
        """Weights of the pairs that count, zero elsewhere; rows are not renormalised."""
        return self.weights.float().masked_fill(self.batch.dropped[:, None], 0.0)

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

    @cached_property
    def to_null(self) -> Float[Tensor, "batch head query"]:
        """Weight that every real query, null or not, pays to the null tokens."""
        null = self.batch.null.to(self.weights.dtype)[:, None, :, None]
        paid = (self.weights @ null).squeeze(-1).float()
        return paid.masked_fill(~self.batch.mask[:, None], 0.0)

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
