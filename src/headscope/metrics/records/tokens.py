"""The tokens that a head looks from and at: by attention mass, and by mass for their frequency.

```
key mass of a token      Σ a[i, j] over its occurrences j      what it receives
query mass of a token    Σ a[i, j] over its occurrences i      what it pays
```

The first token of an input is no key here and no query: it takes what a head has no use for. Every
row sums to one, so that a query's mass is what it does not rest there: how much the head does for
the token.

The state is a table of heads × the tokens that occur in the shard. Where that would be more than
TABLE bytes, the rarest of them are left out of the shard, occurrences and mass together, so that
lift is not biased; what they have is still part of the total.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from headscope.metrics.metric import Axis, Grid, Records, State, Sums, Variables
from headscope.observe.batch import AnnotatedBatch
from headscope.observe.layer import Layer
from headscope.results.measure import Measure
from headscope.results.records import ORDERS, SIDES

RANKS = 50
LEAST = 10  # occurrences of a token that is ranked by lift; of fewer, lift is mostly chance
TABLE = 2**27  # bytes of the table of a shard
NOTHING = -1
FIELDS = ("share", "lift", "count")

TOP_TOKEN_SHARE = Measure(
    "top_token_share",
    title="Share of a top token",
    meaning="Share of the head's attention that is paid by (query) or to (key) one token of the "
    "vocabulary, the first token of every input left out.",
    formula="Σ a[i, j] over the occurrences i (query) or j (key) of the token / Σ a[i, j], "
    "i > 0 (query), j > 0; lift divides it by the token's share of all tokens",
    reference="Luger, Kamath et al. 2026; lift added",
    cost="n: sums over rows and columns, by token",
    axes={"side": "Side", "by": "Ordered by", "top": "Rank"},
    with_errors=False,
    also=("top_token", "top_token_lift", "top_token_count"),
)


@dataclass(frozen=True)
class TopTokens:
    """Per head the RANKS tokens of most mass and of most lift, of queries and of keys."""

    grid: Grid
    vocabulary: int
    ranks: int = RANKS
    least: int = LEAST
    table: int = TABLE
    name: str = "top_tokens"
    measures: tuple[Measure, ...] = (TOP_TOKEN_SHARE,)

    def zero(self, inputs: int) -> State:
        nothing = np.zeros(0)
        total = np.zeros((len(SIDES), *self.grid.shape))
        mass = np.zeros((len(SIDES), *self.grid.shape, 0))
        return State(
            {"id": nothing, "count": nothing, "mass": mass, "total": total, "tokens": np.zeros(1)}
        )

    def update_text(self, state: State, batch: AnnotatedBatch) -> None:
        """Count the occurrences of every token."""
        runs = _runs(batch)
        room = self._room(state, "count", (self.vocabulary,), batch, torch.int64)
        room[runs.ids] += runs.lengths

    def update_layer(self, state: State, layer: Layer) -> None:
        """Add what every token pays and receives."""
        runs, shape = _runs(layer.batch), (len(SIDES), *self.grid.shape, self.vocabulary)
        room = self._room(state, "mass", shape, layer.batch, torch.float32)
        for side, values in enumerate((layer.row_total - layer.to_first, layer.columns)):
            room[side, layer.index][:, runs.ids] += runs.sum(values)

    def condense(self, state: State) -> None:
        """Keep the tokens that occur; the most frequent of them, if their table is too large."""
        if not {"count", "mass"} <= set(state.on_device):
            return
        count, mass = (state.on_device.pop(name).cpu().numpy() for name in ("count", "mass"))
        most = max(self.ranks, self.table // (8 * len(SIDES) * int(np.prod(self.grid.shape))))
        kept = np.sort(np.argsort(-count, kind="stable")[:most])
        kept = kept[count[kept] > 0]
        state.sums["id"], state.sums["count"] = kept.astype(float), count[kept].astype(float)
        state.sums["mass"] = mass[..., kept].astype(float)
        state.sums["total"] = mass.sum(-1, dtype=np.float64)
        state.sums["tokens"] = np.array([count.sum()], dtype=float)

    def merge(self, left: Sums, right: Sums) -> Sums:
        """The sums of both, token by token."""
        ids = np.union1d(left["id"], right["id"])
        count = np.zeros(len(ids))
        mass = np.zeros((len(SIDES), *self.grid.shape, len(ids)))
        for each in (left, right):
            places = np.searchsorted(ids, each["id"])
            count[places] += each["count"]
            mass[..., places] += each["mass"]
        added = {name: left[name] + right[name] for name in ("total", "tokens")}
        return {"id": ids, "count": count, "mass": mass, **added}

    def compute(self, sums: Sums, records: Records) -> Variables:
        """top_token (an id), _share, _lift and _count by layer, head, side, order and rank."""
        shape = (*self.grid.shape, len(SIDES), len(ORDERS), self.ranks)
        found = {name: np.full(shape, np.nan, np.float32) for name in FIELDS[:2]}
        whole = {name: np.full(shape, NOTHING, np.int64) for name in ("id", "count")}
        for place, order, top, fields in self._tops(sums):
            at = (*place[1:], place[0], order, slice(len(top)))
            for name in FIELDS[:2]:
                found[name][at] = fields[name][top]
            whole["id"][at], whole["count"][at] = sums["id"][top], sums["count"][top]
        axes = Axis("side", SIDES), Axis("by", ORDERS), Axis("top", range(self.ranks))
        named = {"top_token": whole["id"], "top_token_count": whole["count"]}
        named |= {f"top_token_{name}": values for name, values in found.items()}
        return {name: self.grid.array(values, *axes) for name, values in named.items()}

    def _tops(
        self, sums: Sums
    ) -> Iterator[tuple[tuple[int, ...], int, Int[np.ndarray, "top"], dict[str, np.ndarray]]]:
        """For every side and head and both orders, places of the first tokens, and all values."""
        frequency = sums["count"] / max(sums["tokens"].item(), 1.0)
        enough = sums["count"] >= self.least
        for place in np.ndindex(sums["total"].shape):
            if sums["total"][place] <= 0:
                continue
            share = sums["mass"][place] / sums["total"][place]
            fields = {"share": share, "lift": share / frequency}
            yield place, ORDERS.index("mass"), largest(share, self.ranks), fields
            among = np.where(enough, fields["lift"], 0.0)
            yield place, ORDERS.index("lift"), largest(among, self.ranks), fields

    def _room(
        self,
        state: State,
        name: str,
        shape: tuple[int, ...],
        batch: AnnotatedBatch,
        dtype: torch.dtype,
    ) -> Tensor:
        """A table of the whole vocabulary, where the batch is; `condense` makes sums of it."""
        if name not in state.on_device:
            state.on_device[name] = torch.zeros(shape, dtype=dtype, device=batch.mask.device)
        return state.on_device[name]


def largest(values: Float[np.ndarray, "item"], count: int) -> Int[np.ndarray, "top"]:
    """Places of the largest values above 0, the largest first; of equal ones the first."""
    count = min(count, len(values))
    if count == 0:
        return np.zeros(0, dtype=np.int64)
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
    return batch.once("runs of equal tokens", partial(_find_runs, batch))


def _find_runs(batch: AnnotatedBatch) -> _Runs:
    """Of all tokens but the first of every input."""
    counted = batch.mask.clone()
    counted[:, 0] = False
    places = counted.flatten().nonzero()[:, 0]
    tokens = batch.labels["token"].flatten()[places]
    ids, lengths = torch.unique(tokens, return_counts=True)
    return _Runs(places[tokens.argsort(stable=True)], ids, lengths)
