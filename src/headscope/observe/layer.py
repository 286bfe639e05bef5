"""What metrics ask of one layer of one batch: named sums of its attention under the null filter.

```
BlockLayer     any attention body on any device: blocks of query rows; a whole matrix is one block
PackedLayer    plain softmax on a GPU: queries, keys and the sum of every row       packed.py
even_layer     attention that is the same everywhere: the baseline of every measure
```

Every formula of a sum stands once, in `RowBlock`, for some query rows of a layer. Weights are kept
where the pair counts (`AnnotatedBatch.pairs`), zero elsewhere. Rows of padding may hold anything,
NaN included: they are dropped by `where`, never by a product with zero.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, reduce

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad

from headscope.model.attention import RowsOf
from headscope.model.capture.modes import block_rows
from headscope.model.writes import norm_weighted
from headscope.observe.batch import AnnotatedBatch, related_pairs
from headscope.observe.offsets import Spans, separation_bins, sum_by_offset, sum_spans

MOST_NULL = 0.9  # rows with more than this on null tokens say nothing about the rest


@dataclass(frozen=True)
class RowBlock:
    """The weights of the queries from `start` on, and what they add to each sum of a layer.

    Of a causal model the keys end with the last of the queries: none of them sees a later one.
    """

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
        pairs = self.batch.pairs_of(self.start, self.stop)[..., : self.weights.shape[-1]]
        return torch.where(pairs[:, None], self.wide, 0.0)

    @cached_property
    def rows(self) -> Float[Tensor, "batch head query"]:
        return self.kept.sum(-1)

    @cached_property
    def columns(self) -> Float[Tensor, "batch head key"]:
        return self.over_all_keys(self.kept.sum(-2))

    @cached_property
    def self_weight(self) -> Float[Tensor, "batch head query"]:
        return self.on_offset(0)

    @cached_property
    def to_null(self) -> Float[Tensor, "batch head query"]:
        if not self.batch.has_null:
            return self.wide.new_zeros(self.wide.shape[:-1])
        if self.batch.null_is_first:
            return self.to_first
        null = self.batch.null.float()[:, None, : self.weights.shape[-1], None]
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
        to_itself = self.kept.diagonal(self.start, dim1=-2, dim2=-1)
        self_weight = to_itself.clone()
        to_itself.zero_()  # and put back: a copy of the whole block would take longer
        largest = _largest(self.kept, self.start, self.batch.first_peak_token)
        to_itself.copy_(self_weight)
        return largest

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

    def over_all_keys(self, values: Float[Tensor, "*any some"]) -> Float[Tensor, "*any key"]:
        """Values of the keys of these queries, with zero for all later keys."""
        later = self.batch.mask.shape[1] - values.shape[-1]
        return pad(values, (0, later)) if later else values

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
    running = pad(weights.double().cumsum(-1), (1, 0))
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


@dataclass(frozen=True, kw_only=True)
class LayerSums:
    """The sums of a layer; `Layer` says what each of them is."""

    rows: Float[Tensor, "batch head query"]
    columns: Float[Tensor, "batch head key"]
    self_weight: Float[Tensor, "batch head query"]
    to_null: Float[Tensor, "batch head query"]
    row_total: Float[Tensor, "batch head query"]
    entropy_sum: Float[Tensor, "batch head"]
    on_arcs: Float[Tensor, "batch head form"]
    distance: Float[Tensor, "batch head"]
    largest: Float[Tensor, "batch head"]
    largest_apart: Float[Tensor, "batch head"]


class Layer(ABC):
    """One layer's attention for one batch; weights are kept where the pair counts."""

    index: int  # place of the layer in the result
    batch: AnnotatedBatch

    @property
    @abstractmethod
    def sums(self) -> LayerSums | RowBlock:
        """All that is added up over the rows of the layer."""

    @abstractmethod
    def weights(self, start: int, stop: int) -> Float[Tensor, "batch head query key"]:
        """The weights of some query rows as they are, null filter not applied, in float32."""

    @property
    @abstractmethod
    def block(self) -> int:
        """Number of query rows in a block."""

    @property
    def rows(self) -> Float[Tensor, "batch head query"]:
        """Kept weight that every query pays."""
        return self.sums.rows

    @property
    def columns(self) -> Float[Tensor, "batch head key"]:
        """Kept weight that every key receives."""
        return self.sums.columns

    @cached_property
    def total(self) -> Float[Tensor, "batch head"]:
        """Kept weight of the whole input: the denominator of Eqs. 3, 4 and 6."""
        return self.rows.sum(-1)

    @property
    def self_weight(self) -> Float[Tensor, "batch head query"]:
        """Kept weight that every token pays to itself."""
        return self.sums.self_weight

    @property
    def to_null(self) -> Float[Tensor, "batch head query"]:
        """Weight that every real query, null or not, pays to the null tokens."""
        return self.sums.to_null

    @property
    def row_total(self) -> Float[Tensor, "batch head query"]:
        """All weight that every real query pays; less than one where the family has a sink."""
        return self.sums.row_total

    @cached_property
    def counted(self) -> Bool[Tensor, "batch head query"]:
        """Rows whose entropy means something (Eq. 7)."""
        return counted_rows(self.to_null, self.rows)

    @property
    def entropy_sum(self) -> Float[Tensor, "batch head"]:
        """Entropies of the counted rows, null weight dropped and the rest renormalised, summed."""
        return self.sums.entropy_sum

    @property
    def on_arcs(self) -> Float[Tensor, "batch head form"]:
        """Kept weight on dependency arcs: the attender is the parent, the receiver is."""
        return self.sums.on_arcs

    @property
    def distance(self) -> Float[Tensor, "batch head"]:
        """Σ a[i, j]·|i − j| over the kept weights, in tokens."""
        return self.sums.distance

    def largest(self, *, with_self: bool) -> Float[Tensor, "batch head"]:
        """The largest kept weight of every input, a token's weight on itself counting or not.

        It is that between tokens from `batch.first_peak_token` on.
        """
        return self.sums.largest if with_self else self.sums.largest_apart

    @cached_property
    def to_first(self) -> Float[Tensor, "batch head query"]:
        """Weight that every real query pays to the first token, null or not."""
        return torch.cat([block.to_first for block in self.blocks()], dim=-1)

    @cached_property
    def spans(self) -> Spans:
        """Kept weight by separation in powers of two, and its moments."""
        bins = separation_bins(self.batch.mask.shape[1])
        is_lower = self.batch.is_causal
        spans = (sum_spans(b.kept, b.start, bins, is_lower=is_lower) for b in self.blocks())
        return reduce(Spans.__add__, spans)

    def on_pairs(self, pairs: Int[Tensor, "pair 3"], least: float) -> Float[Tensor, "batch head"]:
        """Weight of pairs (input, query, key) that count, in the order of the inputs.

        Weights below `least` are taken as zero.
        """
        sums = [block.on_pairs(pairs, least) for block in self.blocks()]
        return torch.stack(sums).sum(0).float()

    def on_offset(self, offset: int) -> Float[Tensor, "batch head"]:
        """Kept weight between every token and the one at an offset."""
        sums = [block.on_offset(offset).double().sum(-1) for block in self.blocks()]
        return torch.stack(sums).sum(0).float()

    def by_offset(self, longest: int) -> Float[Tensor, "batch head bin"]:
        """Kept weight at every offset up to a longest one, and of all others together.

        `headscope.observe.offsets` says which place is which offset.
        """
        is_causal = self.batch.is_causal
        sums = [
            sum_by_offset(block.kept, block.start, longest, is_causal, is_lower=is_causal).double()
            for block in self.blocks()
        ]
        return torch.stack(sums).sum(0).float()

    def of_rows(
        self,
        compute: Callable[
            [Float[Tensor, "batch head query key"]], Float[Tensor, "batch head query *item"]
        ],
    ) -> Float[Tensor, "batch head query *item"]:
        """What a function makes of every row of kept weights."""
        blocks = (block.over_all_keys(block.kept) for block in self.blocks())
        return torch.cat([compute(weights) for weights in blocks], dim=2)

    def once(self, name: str, make: Callable[[], Tensor]) -> Tensor:
        """Compute a value for several metrics on first use, and return it from then on."""
        if name not in self._made:
            self._made[name] = make()
        return self._made[name]

    @cached_property
    def _made(self) -> dict[str, Tensor]:
        return {}

    def corner(
        self, size: int, query: Int[Tensor, "cell"], key: Int[Tensor, "cell"]
    ) -> Float[Tensor, "batch head cell"]:
        """The weights of some cells within the first `size` rows, as they are."""
        return self.weights(0, size)[:, :, query, key]

    def text(self, row: int, start: int, stop: int) -> Float[Tensor, "head query key"]:
        """Some query rows of one input of the batch, up to its last token at least, as they are."""
        return self.weights(start, stop)[row]

    def blocks(self) -> Iterator[RowBlock]:
        """All query rows in consecutive blocks."""
        tokens = self.batch.mask.shape[1]
        for start in range(0, tokens, self.block):
            stop = min(start + self.block, tokens)
            keys = stop if self.batch.is_causal else tokens
            yield RowBlock(self.batch, start, self.weights(start, stop)[..., :keys])


class BlockLayer(Layer):
    """A layer whose rows can be computed again, some at a time.

    Of a whole matrix each sum is made when it is first asked for. Of several blocks all sums are
    made in one pass, and each further question computes the rows once more.
    """

    def __init__(
        self,
        index: int,
        batch: AnnotatedBatch,
        rows_of: RowsOf,
        block: int,
        norms: Float[Tensor, "batch head key"] | None = None,
    ) -> None:
        self.index, self.batch = index, batch
        self._rows_of, self._block = rows_of, block
        self._norms = norms  # of what each key would give, where both readings are wanted

    @property
    def block(self) -> int:
        return self._block

    def weights(self, start: int, stop: int) -> Float[Tensor, "batch head query key"]:
        return self._rows_of(start, stop).float()

    def blocks(self) -> Iterator[RowBlock]:
        if self._is_whole:
            yield self._all_rows
        else:
            yield from super().blocks()

    @property
    def sums(self) -> LayerSums | RowBlock:
        return self._all_rows if self._is_whole else self._added

    @cached_property
    def normed(self) -> "BlockLayer":
        """The layer with every weight times the norm of what its key would give."""
        norms = self._norms
        assert norms is not None  # the study asked for both readings

        def rows_of(start: int, stop: int) -> Tensor:
            return norm_weighted(self._rows_of(start, stop), norms)

        return BlockLayer(self.index, self.batch, rows_of, self._block)

    @property
    def _is_whole(self) -> bool:
        return self._block >= self.batch.mask.shape[1]

    @cached_property
    def _all_rows(self) -> RowBlock:
        return RowBlock(self.batch, 0, self._rows_of(0, self.batch.mask.shape[1]))

    @cached_property
    def _added(self) -> LayerSums:
        return add_up(super().blocks())


def add_up(blocks: Iterator[RowBlock]) -> LayerSums:
    """The sums of all blocks: what every query has stands side by side, the rest is added.

    In float64, for there may be thousands of blocks.
    """
    by_query: dict[str, list[Tensor]] = {}
    added: dict[str, Tensor] = {}
    largest: dict[str, Tensor] = {}
    for block in blocks:
        for name in ("rows", "to_null", "row_total", "self_weight"):
            by_query.setdefault(name, []).append(getattr(block, name))
        for name in ("columns", "entropy_sum", "on_arcs", "distance"):
            values = getattr(block, name).double()
            added[name] = added[name] + values if name in added else values
        for name in ("largest", "largest_apart"):
            values = getattr(block, name)
            largest[name] = torch.maximum(largest[name], values) if name in largest else values
    joined = {name: torch.cat(parts, dim=-1) for name, parts in by_query.items()}
    added["columns"] = added["columns"].float()
    return LayerSums(**joined, **added, **largest)


class EvenLayer(BlockLayer):
    """A layer of one head that spreads its attention evenly over what each query sees."""

    def on_pairs(self, pairs: Int[Tensor, "pair 3"], least: float) -> Float[Tensor, "batch head"]:
        """However small the weights are: in a long input all of them are below any least."""
        return super().on_pairs(pairs, 0.0)


def even_layer(batch: AnnotatedBatch) -> EvenLayer:
    """a[i, j] = 1 / the number of tokens that i sees, null tokens and itself included."""
    return batch.once("even layer", lambda: _even_layer(batch))


def _even_layer(batch: AnnotatedBatch) -> EvenLayer:
    texts, tokens = batch.mask.shape
    seen = batch.mask.cumsum(1) if batch.is_causal else batch.mask.sum(1, keepdim=True)
    even = (1 / seen.clamp(min=1).double()).expand(texts, tokens)

    def rows_of(start: int, stop: int) -> Tensor:
        sees = batch.mask[:, start:stop, None] & batch.mask[:, None, :]
        if batch.is_causal:
            sees = sees.tril(start)
        return (sees * even[:, start:stop, None])[:, None].float()

    return EvenLayer(0, batch, rows_of, block_rows(texts, tokens, batch.mask.device))
