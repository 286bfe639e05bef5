"""The tokens that a head looks from and at: by attention mass, and by mass for their frequency.

```
key mass of a token      Σ a[i, j] over its occurrences j      what it receives
query mass of a token    Σ a[i, j] over its occurrences i      what it pays
```

The first token of an input is no key here and no query: it takes what a head has no use for. Every
row sums to one, so that a query's mass is what it does not rest there: how much the head does for
the token.

Within a shard the whole vocabulary has room; of the shard a table of heads × the tokens that occur
is kept. Where that would be more than TABLE bytes, the rarest of them are left out, occurrences and
mass together, so that lift is not biased; what they have is still part of the total.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from headscope.metrics.metric import Axis, Grid, Metric, Sums, Variables
from headscope.observe.batch import AnnotatedBatch
from headscope.observe.layer import Layer
from headscope.results.measure import Measure
from headscope.results.records import ORDERS, SIDES

RANKS = 50
LEAST = 10  # occurrences of a token that is ranked by lift; of fewer, lift is mostly chance
TABLE = 2**27  # bytes of the table of a shard
NO_TOKEN = -1
ALL_COUNT, ALL_MASS = "all_count", "all_mass"  # of the whole vocabulary, while a shard is computed

TOP_TOKEN_SHARE = Measure(
    "top_token_share",
    title="Share of a top token",
    meaning="Share of the head's attention that is paid by (query) or to (key) one token of the "
    "vocabulary, the first token of every input left out.",
    formula="Σ a[i, j] over the occurrences i (query) or j (key) of the token / Σ a[i, j], "
    "i > 0 (query), j > 0; lift divides it by the token's share of all tokens",
    reference="Luger, Kamath et al. 2026; lift added",
    axes={"side": "Side", "by": "Ordered by", "top": "Rank"},
    with_errors=False,
    also=("top_token", "top_token_lift", "top_token_count"),
)


@dataclass(frozen=True)
class TopTokens(Metric):
    """Per head the RANKS tokens of most mass and of most lift, of queries and of keys."""

    grid: Grid
    vocabulary: int
    ranks: int = RANKS
    least: int = LEAST
    table: int = TABLE
    name: str = "top_tokens"
    measures: tuple[Measure, ...] = (TOP_TOKEN_SHARE,)

    def zero(self) -> Sums:
        return {
            "id": torch.zeros(0, dtype=torch.int64),
            "count": torch.zeros(0, dtype=torch.int64),
            "mass": torch.zeros(len(SIDES), *self.grid.shape, 0, dtype=torch.float64),
            "total": torch.zeros(len(SIDES), *self.grid.shape, dtype=torch.float64),
            "tokens": torch.zeros((), dtype=torch.int64),
        }

    def see_text(self, sums: Sums, batch: AnnotatedBatch) -> None:
        """Count the occurrences of every token."""
        if ALL_COUNT not in sums:
            device, shape = batch.mask.device, (len(SIDES), *self.grid.shape, self.vocabulary)
            sums[ALL_COUNT] = torch.zeros(self.vocabulary, dtype=torch.int64, device=device)
            sums[ALL_MASS] = torch.zeros(shape, dtype=torch.float32, device=device)
        runs = _runs(batch)
        sums[ALL_COUNT][runs.ids] += runs.lengths

    def see_layer(self, sums: Sums, layer: Layer) -> None:
        """Add what every token pays and receives."""
        runs = _runs(layer.batch)
        for side, values in enumerate((layer.row_total - layer.to_first, layer.columns)):
            sums[ALL_MASS][side, layer.index][:, runs.ids] += runs.sum(values)

    def shrink(self, sums: Sums) -> Sums:
        """Keep the tokens that occur; the most frequent of them, if their table is too large."""
        if ALL_COUNT not in sums:
            return sums
        count, mass = sums[ALL_COUNT], sums[ALL_MASS]
        most = max(self.ranks, self.table // (8 * mass[..., 0].numel()))
        ids = count.sort(descending=True, stable=True).indices[:most].sort().values
        ids = ids[count[ids] > 0]
        return {
            "id": ids,
            "count": count[ids],
            "mass": mass[..., ids].double(),
            "total": mass.sum(-1, dtype=torch.float64),
            "tokens": count.sum(),
        }

    def merge(self, left: Sums, right: Sums) -> Sums:
        """The sums of both, token by token."""
        ids = torch.cat([left["id"], right["id"]]).unique()
        count = torch.zeros(len(ids), dtype=torch.int64)
        mass = torch.zeros(len(SIDES), *self.grid.shape, len(ids), dtype=torch.float64)
        for sums in (left, right):
            places = torch.searchsorted(ids, sums["id"])
            count[places] += sums["count"]
            mass[..., places] += sums["mass"]
        added = {name: left[name] + right[name] for name in ("total", "tokens")}
        return {"id": ids, "count": count, "mass": mass, **added}

    def compute(self, sums: Sums) -> Variables:
        """top_token (an id), _share, _lift and _count by layer, head, side, order and rank."""
        arrays = {name: values.numpy() for name, values in sums.items()}
        shape = (*self.grid.shape, len(SIDES), len(ORDERS), self.ranks)
        shares, lifts = np.full((2, *shape), np.nan, np.float32)
        ids, counts = np.full((2, *shape), NO_TOKEN, np.int64)
        for index, order, top, share, lift in self._tops(arrays):
            at = (*index[1:], index[0], order, slice(len(top)))
            shares[at], lifts[at] = share[top], lift[top]
            ids[at], counts[at] = arrays["id"][top], arrays["count"][top]
        axes = Axis("side", SIDES), Axis("by", ORDERS), Axis("top", range(self.ranks))
        tables = {"": ids, "_count": counts, "_share": shares, "_lift": lifts}
        return {f"top_token{end}": self.grid.array(values, *axes) for end, values in tables.items()}

    def _tops(
        self, arrays: Mapping[str, np.ndarray]
    ) -> Iterator[tuple[tuple[int, ...], int, Int[np.ndarray, "top"], np.ndarray, np.ndarray]]:
        """For every side and head and both orders places of the first tokens, and all values."""
        frequency = arrays["count"] / max(int(arrays["tokens"]), 1)
        is_frequent = arrays["count"] >= self.least
        for index in np.ndindex(arrays["total"].shape):
            if arrays["total"][index] <= 0:
                continue
            share = arrays["mass"][index] / arrays["total"][index]
            lift = share / frequency
            yield index, ORDERS.index("mass"), largest(share, self.ranks), share, lift
            frequent = np.where(is_frequent, lift, 0.0)
            yield index, ORDERS.index("lift"), largest(frequent, self.ranks), share, lift


def largest(values: Float[np.ndarray, "item"], count: int) -> Int[np.ndarray, "top"]:
    """Places of the largest values above 0, the largest first; of equal ones the first.

    They are compared to four significant digits, so that rounding does not order tokens.
    """
    count = min(count, len(values))
    if count == 0:
        return np.zeros(0, dtype=np.int64)
    mantissa, exponent = np.frexp(values)
    values = np.ldexp(np.round(mantissa, 4), exponent)
    bound = np.partition(values, -count)[-count]
    few = np.flatnonzero((values >= bound) & (values > 0))
    return few[np.lexsort((few, -values[few]))][:count]


@dataclass(frozen=True)
class _Runs:
    """The tokens of a batch in the order of their ids, so that equal ones lie together."""

    order: Int[Tensor, "token"]  # places in the flat batch
    ids: Int[Tensor, "run"]
    lengths: Int[Tensor, "run"]

    def sum(self, values: Float[Tensor, "batch head token"]) -> Float[Tensor, "head run"]:
        """Sums over equal tokens; always in the same order, so that the bits do not change."""
        flat = values.transpose(1, 2).flatten(0, 1)[self.order].contiguous()
        return torch.segment_reduce(flat, "sum", lengths=self.lengths, axis=0, unsafe=True).T


def _runs(batch: AnnotatedBatch) -> _Runs:
    """Of all tokens but the first of every input."""

    def make() -> _Runs:
        counted = batch.mask.clone()
        counted[:, 0] = False
        places = counted.flatten().nonzero()[:, 0]
        tokens = batch.labels["token"].flatten()[places]
        ids, lengths = torch.unique(tokens, return_counts=True)
        return _Runs(places[tokens.argsort(stable=True)], ids, lengths)

    return batch.once("runs of equal tokens", make)
