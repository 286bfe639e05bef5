"""What metrics ask of one layer of one batch: named sums of its attention under the null filter.

```
DenseLayer   whole matrices: everything can be asked of it     dense.py
RowsLayer    blocks of query rows, added up                    rows.py
FusedLayer   queries, keys and the sum of every row            fused.py
```

The last two never hold a matrix. What all three compute is defined here once.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headscope.observe.batch import AnnotatedBatch

# Reading a cached property is like reading a property, but type checkers do not accept one where a
# protocol asks for the other.
cached = property if TYPE_CHECKING else cached_property

MOST_NULL = 0.9  # rows with more than this on null tokens say nothing about the rest


class Peaks(Protocol):
    """The largest kept weight of every input and head."""

    @property
    def weight(self) -> Float[Tensor, "batch head"]: ...

    def locate(
        self, row: Int[Tensor, "*place"], head: Int[Tensor, "*place"]
    ) -> tuple[Int[Tensor, "*place"], Int[Tensor, "*place"]]:
        """Query and key of the peaks of some inputs and heads."""
        ...


@dataclass(frozen=True)
class Spans:
    """How far attention reaches: what `headscope.observe.offsets` says of separations."""

    weight: Float[Tensor, "*text head bin"]  # kept weight of the pairs at every separation
    distance: Float[Tensor, "*text head"]  # Σ a[i, j]·|i − j|
    squares: Float[Tensor, "*text head"]  # Σ a[i, j]·|i − j|²

    def __add__(self, other: "Spans") -> "Spans":
        return Spans(
            self.weight + other.weight,
            self.distance + other.distance,
            self.squares + other.squares,
        )


class Layer(Protocol):
    """One layer's attention for one batch; weights are kept where the pair counts."""

    @property
    def index(self) -> int:
        """Place of the layer in the result."""
        ...

    @property
    def batch(self) -> AnnotatedBatch: ...

    @property
    def rows(self) -> Float[Tensor, "batch head query"]:
        """Kept weight that every query pays."""
        ...

    @property
    def columns(self) -> Float[Tensor, "batch head key"]:
        """Kept weight that every key receives."""
        ...

    @property
    def total(self) -> Float[Tensor, "batch head"]:
        """Kept weight of the whole input: the denominator of Eqs. 3, 4 and 6."""
        ...

    @property
    def own(self) -> Float[Tensor, "batch head query"]:
        """Kept weight that every token pays to itself."""
        ...

    @property
    def to_null(self) -> Float[Tensor, "batch head query"]:
        """Weight that every real query, null or not, pays to the null tokens."""
        ...

    @property
    def to_first(self) -> Float[Tensor, "batch head query"]:
        """Weight that every real query pays to the first token, null or not."""
        ...

    @property
    def everything(self) -> Float[Tensor, "batch head query"]:
        """Weight that every real query pays at all; less than one where the family has a sink."""
        ...

    @property
    def counted(self) -> Bool[Tensor, "batch head query"]:
        """Rows whose entropy means something (Eq. 7)."""
        ...

    @property
    def nats(self) -> Float[Tensor, "batch head"]:
        """Entropies of the counted rows, null weight dropped and the rest renormalised, summed."""
        ...

    @property
    def on_arcs(self) -> Float[Tensor, "batch head form"]:
        """Kept weight on dependency arcs: the attender is the parent, the receiver is."""
        ...

    @property
    def distance(self) -> Float[Tensor, "batch head"]:
        """Σ a[i, j]·|i − j| over the kept weights, in tokens."""
        ...

    @property
    def spans(self) -> Spans:
        """Kept weight by separation in powers of two, and its squared separations."""
        ...

    def peaks(self, with_self: bool) -> Peaks:
        """The largest kept weight of every input and head, a token's own counting or not.

        It is sought among the tokens from `batch.sought_from` on.
        """
        ...

    def on_pairs(self, pairs: Int[Tensor, "pair 3"], least: float) -> Float[Tensor, "batch head"]:
        """Weight of pairs (input, query, key) that count, in the order of the inputs.

        Weights below `least` are taken as zero.
        """
        ...

    def on_offset(self, offset: int) -> Float[Tensor, "batch head"]:
        """Kept weight between every token and the one at an offset."""
        ...

    def by_offset(self, longest: int) -> Float[Tensor, "batch head bin"]:
        """Kept weight at every offset up to a longest one, and of all others together.

        `headscope.observe.offsets` says which place is which offset.
        """
        ...

    def look(self, start: int, stop: int) -> Float[Tensor, "batch head query key"]:
        """The weights of some query rows as they are, null filter not applied."""
        ...

    def text(self, row: int, start: int, stop: int) -> Float[Tensor, "head query key"]:
        """The same of one input of the batch, up to its last token at least."""
        ...

    def corner(
        self, size: int, query: Int[Tensor, "cell"], key: Int[Tensor, "cell"]
    ) -> Float[Tensor, "batch head cell"]:
        """The weights of some cells within the first `size` rows, as they are."""
        ...


@dataclass(frozen=True)
class PeakPairs:
    """The largest kept weights and the pairs that have them."""

    weight: Float[Tensor, "*text head"]
    query: Int[Tensor, "*text head"]
    key: Int[Tensor, "*text head"]

    def locate(
        self, row: Int[Tensor, "*place"], head: Int[Tensor, "*place"]
    ) -> tuple[Int[Tensor, "*place"], Int[Tensor, "*place"]]:
        """Query and key of the peaks of some inputs and heads."""
        return self.query[row, head], self.key[row, head]

    def larger(self, other: "PeakPairs") -> "PeakPairs":
        """Of two pairs the one with the larger weight; of equal ones that of `self`."""
        better = other.weight > self.weight
        return PeakPairs(
            torch.where(better, other.weight, self.weight),
            torch.where(better, other.query, self.query),
            torch.where(better, other.key, self.key),
        )


@dataclass(frozen=True, kw_only=True)
class LayerSums:
    """The sums of a layer whose matrix is never held, of some of its rows, or of one of its texts.

    `Layer` says what each of them is.
    """

    rows: Float[Tensor, "*text head query"]
    to_null: Float[Tensor, "*text head query"]
    everything: Float[Tensor, "*text head query"]
    own: Float[Tensor, "*text head query"]
    columns: Float[Tensor, "*text head key"]
    nats: Float[Tensor, "*text head"]
    on_arcs: Float[Tensor, "*text head form"]
    distance: Float[Tensor, "*text head"]
    apart: PeakPairs  # over the pairs of two different tokens
    sought_from: int = 0  # the first token that peaks may be of

    @cached
    def total(self) -> Float[Tensor, "*text head"]:
        """Kept weight of the whole input."""
        return self.rows.sum(-1)

    @cached
    def counted(self) -> Bool[Tensor, "*text head query"]:
        """Rows whose entropy means something."""
        return counted_rows(self.to_null, self.rows)

    def peaks(self, with_self: bool) -> PeakPairs:
        """The largest kept weight of every input and head, a token's own counting or not."""
        if not with_self:
            return self.apart
        weight, token = self.own[..., self.sought_from :].max(-1)
        token = token + self.sought_from
        return self.apart.larger(PeakPairs(weight, token, token))


def keep(
    wide: Float[Tensor, "batch head query key"], pairs: Bool[Tensor, "batch query key"]
) -> Float[Tensor, "batch head query key"]:
    """Weights of the pairs that count, zero elsewhere; rows are not renormalised."""
    return torch.where(pairs[:, None], wide, 0.0)


def weight_to_null(
    wide: Float[Tensor, "batch head query key"], batch: AnnotatedBatch, start: int = 0
) -> Float[Tensor, "batch head query"]:
    """Weight that the real queries from `start` on pay to the null tokens."""
    if not batch.has_null:
        return wide.new_zeros(wide.shape[:-1])
    if batch.null_is_first:
        paid = wide[..., 0]
    else:
        paid = (wide @ batch.null.float()[:, None, :, None]).squeeze(-1)
    return _of_real_queries(paid, batch, start)


def weight_of_rows(
    wide: Float[Tensor, "batch head query key"], batch: AnnotatedBatch, start: int = 0
) -> Float[Tensor, "batch head query"]:
    """Weight that the real queries from `start` on pay at all."""
    return _of_real_queries(wide.sum(-1), batch, start)


def weight_to_first(
    wide: Float[Tensor, "batch head query key"], batch: AnnotatedBatch, start: int = 0
) -> Float[Tensor, "batch head query"]:
    """Weight that the real queries from `start` on pay to the first token."""
    return _of_real_queries(wide[..., 0], batch, start)


def _of_real_queries(
    paid: Float[Tensor, "batch head query"], batch: AnnotatedBatch, start: int
) -> Float[Tensor, "batch head query"]:
    real = batch.mask[:, None, start : start + paid.shape[-1]]
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
    kept: Float[Tensor, "*text query key"],
    rows: Float[Tensor, "*text query"],
    counted: Bool[Tensor, "*text query"],
) -> Float[Tensor, "*text"]:
    """The renormalised entropies of the counted rows, summed; the weights are read once."""
    # Not xlogy, which takes its logarithms one by one. Of a zero the logarithm only must be finite.
    logs = kept.clamp(min=torch.finfo(kept.dtype).tiny).log_().mul_(kept)
    entropy = renormalised_entropy(rows, logs.sum(-1) / rows)
    return entropy.masked_fill(~counted, 0.0).sum(-1)


def separation(
    start: int, stop: int, keys: int, device: torch.device
) -> Float[Tensor, "query key"]:
    """|i − j| in tokens between some queries and the first so many keys."""
    queries = torch.arange(start, stop, device=device, dtype=torch.float32)
    return (queries[:, None] - torch.arange(keys, device=device, dtype=torch.float32)).abs()


def sum_distances(
    weights: Float[Tensor, "*text query key"], apart: Float[Tensor, "query key"]
) -> Float[Tensor, "*text"]:
    """Σ a·|i − j|, row by row, then in float64: one long float32 sum would lose the fifth digit."""
    by_row = torch.einsum("...qk,qk->...q", weights, apart.to(weights.dtype))
    return by_row.double().sum(-1)


def on_diagonal(
    kept: Float[Tensor, "*text query key"], offset: int
) -> Float[Tensor, "*text query"]:
    """The kept weights between queries and the keys at an offset from them."""
    return kept.diagonal(offset, dim1=-2, dim2=-1).contiguous()


def largest_apart(
    kept: Float[Tensor, "*text query key"], start: int, sought_from: int = 0
) -> PeakPairs:
    """The largest weight between two tokens from `sought_from` on; overwrites all other weights."""
    kept.diagonal(start, dim1=-2, dim2=-1).zero_()
    kept[..., :sought_from].zero_()
    kept[..., : max(0, sought_from - start), :].zero_()
    by_query, key = kept.max(-1)
    weight, query = by_query.max(-1)
    return PeakPairs(weight, query + start, key.gather(-1, query[..., None]).squeeze(-1))


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


def to_the_total(
    rows: Float[Tensor, "head query"], columns: Float[Tensor, "head key"]
) -> Float[Tensor, "head query"]:
    """1 − null weight is rounded where nearly all is null; the columns have the exact sum."""
    total = rows.double().sum(-1, keepdim=True).clamp(min=torch.finfo(torch.float32).tiny)
    return (rows * (columns.sum(-1, keepdim=True) / total)).float()
