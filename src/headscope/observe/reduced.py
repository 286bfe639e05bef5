"""One layer whose weights were never held all at once: the sums that metrics ask for.

It has what `ObservedLayer` computes from whole matrices, found from blocks of query rows or from
queries and keys. What needs the matrix itself is refused with a reason.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headscope.errors import RunError
from headscope.observe.batch import AnnotatedBatch
from headscope.observe.concentration import MOST_NULL

OF_MATRICES = ("kept", "weights", "to_special", "smoothed_entropy")


@dataclass(frozen=True)
class Peaks:
    """The largest kept weight of every input and head, and the pair that has it."""

    weight: Float[Tensor, "batch head"]
    query: Int[Tensor, "batch head"]
    key: Int[Tensor, "batch head"]

    def locate(
        self, row: Int[Tensor, "*place"], head: Int[Tensor, "*place"]
    ) -> tuple[Int[Tensor, "*place"], Int[Tensor, "*place"]]:
        """Query and key of some of them."""
        return self.query[row, head], self.key[row, head]

    def larger(self, other: "Peaks") -> "Peaks":
        """Of two pairs the one with the larger weight; of equal ones that of `self`."""
        better = other.weight > self.weight
        return Peaks(
            torch.where(better, other.weight, self.weight),
            torch.where(better, other.query, self.query),
            torch.where(better, other.key, self.key),
        )


@dataclass(frozen=True)
class ReducedLayer:
    """Sums of one layer for one batch; see `ObservedLayer` for what each of them is."""

    index: int
    batch: AnnotatedBatch
    rows: Float[Tensor, "batch head query"]
    columns: Float[Tensor, "batch head key"]
    to_null: Float[Tensor, "batch head query"]
    everything: Float[Tensor, "batch head query"]
    nats: Float[Tensor, "batch head"]
    pair_sums: Float[Tensor, "batch head feature"]
    apart: Peaks  # over the pairs of two different tokens
    own: Float[Tensor, "batch head query"]  # kept weight that every token pays to itself
    look: Callable[[int, int], Float[Tensor, "batch head query key"]]
    on_offset: Callable[[int], Float[Tensor, "batch head"]]

    @cached_property
    def total(self) -> Float[Tensor, "batch head"]:
        """Kept weight of the whole input."""
        return self.rows.sum(-1)

    @cached_property
    def counted(self) -> Bool[Tensor, "batch head query"]:
        """Rows whose entropy means something (Eq. 7)."""
        return counted_rows(self.to_null, self.rows)

    def peaks(self, with_self: bool) -> Peaks:
        """The largest kept weight of every input and head, a token's own counting or not."""
        if not with_self:
            return self.apart
        weight, token = self.own.max(-1)
        return self.apart.larger(Peaks(weight, token, token))

    def __getattr__(self, name: str) -> Any:
        if name in OF_MATRICES:
            raise RunError(
                f"A metric asks for {name!r} of whole attention matrices, which inputs of "
                f"{self.batch.mask.shape[1]} tokens do not get; leave that metric out, or set the "
                "option attention=dense if there is memory for them."
            )
        raise AttributeError(name)


def counted_rows(
    to_null: Float[Tensor, "*batch query"], rows: Float[Tensor, "*batch query"]
) -> Bool[Tensor, "*batch query"]:
    """Rows that pay enough to other tokens than null for their entropy to mean something."""
    return (to_null <= MOST_NULL) & (rows > 0)
