"""One short stretch of the corpus with the attention of every head, to be drawn (Fig. 1)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch

from headscope.metrics.metric import Axis, Grid, Records, State, Sums, Variables
from headscope.metrics.surface import SEP
from headscope.observe.batch import AnnotatedBatch
from headscope.observe.layer import ObservedLayer

NONE = np.inf


@dataclass(frozen=True)
class ExampleMap:
    """The input whose length is nearest to `size`; of a longer one the first token and a stretch
    around its first [SEP], so that every kind of token can be seen.

    Of several inputs the first in the corpus is taken: batches and shards do not matter.

    Variables: example_map
    Formula: a[i, j] of one short stretch of the corpus, as it is
    Reference: Vig & Belinkov 2019, Fig. 4; Clark et al. 2019, Fig. 1
    Range: 0 to 1
    Cost: the weights of one input are kept
    """

    grid: Grid
    decode: Callable[[Sequence[int]], Sequence[str]]  # ids to readable tokens
    size: int = 32
    name: str = "example"

    def zero(self, inputs: int) -> State:
        """No example yet."""
        weights = np.zeros((*self.grid.shape, self.size, self.size))
        ids = np.full(self.size, -1.0)
        return State({"rank": np.full(2, NONE), "weights": weights, "ids": ids})

    def update_layer(self, state: State, layer: ObservedLayer) -> None:
        """Keep the weights if the batch has a better example, or the one being kept."""
        batch = layer.batch
        rank, row, runs, ids = batch.once(f"example {self.size}", partial(self._best, batch))
        if rank > tuple(state.sums["rank"]):
            return
        shown = slice(0, len(ids))
        state.sums["rank"][:] = rank
        state.sums["ids"][:] = -1
        state.sums["ids"][shown] = ids
        rows = torch.cat([layer.look(*run)[row] for run in runs], dim=1)
        weights = torch.cat([rows[..., start:stop] for start, stop in runs], dim=2)

        def keep(weights: np.ndarray) -> None:
            state.sums["weights"][layer.index] = 0
            state.sums["weights"][layer.index, :, shown, shown] = weights

        state.receive(keep, weights)

    def _best(
        self, batch: AnnotatedBatch
    ) -> tuple[tuple[int, int], int, list[tuple[int, int]], list[int]]:
        """Rank and place of the best example of a batch, and the runs of tokens to show of it."""
        lengths = batch.mask.sum(-1).tolist()
        ranks = [(abs(n - self.size), int(k)) for n, k in zip(lengths, batch.numbers, strict=True)]
        row = min(range(len(ranks)), key=ranks.__getitem__)
        places = self._places(batch.labels["special"][row, : lengths[row]].tolist())
        ids = batch.labels["token"][row].tolist()
        return ranks[row], row, _runs(places), [ids[place] for place in places]

    def _places(self, special: Sequence[int]) -> list[int]:
        """The tokens to show of an input, given the special class of each."""
        if len(special) <= self.size:
            return list(range(len(special)))
        around = special.index(SEP) if SEP in special else 0
        start = min(max(1, around - self.size * 2 // 3), len(special) - self.size + 1)
        return [0, *range(start, start + self.size - 1)]

    def merge(self, left: Sums, right: Sums) -> Sums:
        """The better of the two."""
        return left if tuple(left["rank"]) <= tuple(right["rank"]) else right

    def compute(self, sums: Sums, records: Records) -> Variables:
        """example_map(layer, head, query, key), labelled with the tokens; none without inputs."""
        ids = [int(index) for index in sums["ids"] if index >= 0]
        if not ids:
            return {}
        tokens = tuple(f"{place} {text}" for place, text in enumerate(self.decode(ids)))
        weights = sums["weights"][..., : len(ids), : len(ids)]
        example = self.grid.array(weights, Axis("query", tokens), Axis("key", tokens))
        return {"example_map": example.assign_attrs(sentence=int(sums["rank"][1]))}


def _runs(places: Sequence[int]) -> list[tuple[int, int]]:
    """Start and stop of the stretches of consecutive tokens."""
    starts = [p for p in places if p - 1 not in places]
    stops = [p + 1 for p in places if p + 1 not in places]
    return list(zip(starts, stops, strict=True))
