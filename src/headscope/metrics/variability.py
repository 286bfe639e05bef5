"""Whether a head's attention depends on content or on position (Vig & Belinkov 2019, Eq. 5).

Σ|a[i,j] − ā[i,j]| / (2 Σ a[i,j]) over the first N positions, where ā is the mean over the inputs
that have the pair. The mean is known only at the end, so every input's N×N corner is recorded with
its shard and read back shard by shard.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from headscope.metrics import ratio
from headscope.metrics.metric import GROUP, Grid, Records, State, Sums, Variables, add, label
from headscope.observe.batch import AnnotatedBatch
from headscope.observe.layer import Layer
from headscope.results.measure import Measure, Published
from headscope.results.replicates import GROUPS

VARIABILITY = Measure(
    "variability",
    title="Variability",
    meaning="0: the same positions in every input; 1: content decides.",
    formula="Σ |a[i, j] − ā[i, j]| / (2 Σ a[i, j]) over the first 10 positions; ā is the mean over "
    "the inputs that have the pair",
    reference="Vig & Belinkov 2019, Eq. 5, Fig. 10",
    cost="100 weights of every input and head are recorded with the shard and read back",
    more="depends more on content than on position",
    published=(Published("lowest, in L4H11", "GPT-2 small, Vig & Belinkov 2019", 0.004),),
)


@dataclass(frozen=True)
class Variability:
    """0 for a head that looks at the same positions in every input, 1 at most."""

    grid: Grid
    is_causal: bool
    size: int = 10  # N, counted from the start of the input, the null token included
    name: str = "variability"

    @property
    def measures(self) -> tuple[Measure, ...]:
        return (VARIABILITY,)

    def zero(self, inputs: int) -> State:
        """Room for one corner per input."""
        layers, heads = self.grid.shape
        cells = len(self._cells)
        sums = {"weight": np.zeros((layers, heads, cells)), "count": np.zeros((layers, 1, cells))}
        corners = np.zeros((inputs, layers, heads, cells), np.float32)
        valid, group = np.zeros((inputs, cells), bool), np.zeros((inputs, 1), np.int64)
        return State(sums, {"corners": corners, "valid": valid, "group": group})

    def update_layer(self, state: State, layer: Layer) -> None:
        """Record and sum the corners of a batch."""
        query, key, valid = layer.batch.once(
            f"corner {self.size}", partial(self._corner, layer.batch)
        )
        weights = layer.look(0, self.size)[:, :, query, key]
        corner = weights.masked_fill(~valid[:, None], 0.0)
        rows = layer.batch.once("rows", lambda: torch.from_numpy(layer.batch.rows).to(query.device))
        here = slice(None, len(query))  # cells are in the order of the input's length
        state.record("corners", (rows, layer.index, slice(None), here), corner)
        state.record("valid", (rows, here), valid)
        state.record("group", (rows,), layer.batch.groups[:, None])
        found = corner.sum(0, dtype=torch.float64), valid.sum(0, dtype=torch.float64)
        state.receive(partial(_add, state, layer.index, here), *found)

    def _corner(self, batch: AnnotatedBatch) -> tuple[Tensor, Tensor, Tensor]:
        """Queries and keys of the cells that a batch can have, and which of its inputs do."""
        cells = self._cells
        cells = cells[cells.max(1) < batch.mask.shape[1]]
        query, key = torch.from_numpy(cells.T.copy()).to(batch.mask.device)
        return query, key, batch.pairs_of(0, self.size)[:, query, key]

    def merge(self, left: Sums, right: Sums) -> Sums:
        return add(left, right)

    def compute(self, sums: Sums, records: Records) -> Variables:
        """variability(layer, head), its error taking the mean as known, and the sums."""
        mean = sums["weight"] / np.maximum(sums["count"], 1)
        total = ratio.zero((GROUPS, *self.grid.shape), (GROUPS, *self.grid.shape))
        for shard in records():
            total = add(total, self._deviation(shard, mean))
        x, y = (label(values, GROUP, *self.grid.axes) for values in total.values())
        return ratio.ratio_variables(self.name, x, y)

    def _deviation(self, shard: Mapping[str, np.ndarray], mean: np.ndarray) -> Sums:
        """Terms of the ratio for the inputs of one shard."""
        corners = torch.from_numpy(np.ascontiguousarray(shard["corners"]))
        valid = torch.from_numpy(np.ascontiguousarray(shard["valid"]))[:, None, None]
        off = (corners - torch.from_numpy(mean).float()).abs_().masked_fill_(~valid, 0.0)
        group, wide = torch.from_numpy(shard["group"][:, 0].copy()), torch.float64
        x, y = off.sum(-1, dtype=wide), 2 * corners.sum(-1, dtype=wide)
        by_group = (ratio.sum_by_group(terms, group).numpy() for terms in (x, y))
        return dict(zip((ratio.NUMERATOR, ratio.DENOMINATOR), by_group, strict=True))

    @property
    def _cells(self) -> np.ndarray:
        """(query, key) of every cell that can count, the shortest input's cells first."""
        query, key = np.indices((self.size, self.size)).reshape(2, -1)
        cells = np.stack([query, key], 1)[(key <= query) & (key > 0) | (not self.is_causal)]
        return cells[np.argsort(cells.max(1), kind="stable")]


def _add(state: State, index: int, here: slice, weight: np.ndarray, count: np.ndarray) -> None:
    state.sums["weight"][index, :, here] += weight
    state.sums["count"][index, 0, here] += count
