"""Divergences between all heads over a corpus, and what follows: map, order, neighbours."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
import xarray as xr

from headscope.metrics.clusters import head_order, head_positions, nearest_heads, why_no_map
from headscope.metrics.divergence import divergence
from headscope.metrics.metric import Axis, Grid, Records, State, Sums, Variables, add, label
from headscope.observe.layer import ObservedLayer

NEIGHBOURS = 5


@dataclass(frozen=True)
class HeadDivergence:
    """Jensen–Shannon divergences summed over all rows of all inputs (Clark et al. 2019, §6).

    Variables: head_divergence
    Formula: Σ JS(p′, q′) over the rows of all inputs, p′ = 0.999·a + 0.001/n, natural logarithm
    Reference: Clark et al. 2019, §6
    Range: 0 to rows · ln 2
    Cost: n² for every pair of heads of the model: the dearest metric

    Variables: head_position
    Formula: metric multidimensional scaling of head_divergence to two axes
    Reference: Clark et al. 2019, Fig. 6
    Range: any; only the distances mean something
    Cost: from head_divergence alone

    Variables: head_order, nearest_head
    Formula: leaves of the average-linkage tree of head_divergence; the heads that diverge least
    Reference: after Clark et al. 2019, §6
    Range: places from 0; names of heads
    Cost: from head_divergence alone
    """

    grid: Grid
    seed: int = 0  # of the map
    name: str = "head_divergence"

    def zero(self, inputs: int) -> State:
        """No rows compared yet."""
        units = len(self.units)
        return State({"divergence": np.zeros((units, units)), "rows": np.zeros(())})

    def update_batch(self, state: State, layers: Sequence[ObservedLayer]) -> None:
        """Compare all heads on every input of a batch."""
        batch = layers[0].batch
        firsts, lengths = batch.mask.int().argmax(1).tolist(), batch.mask.sum(1).tolist()
        for row, (first, length) in enumerate(zip(firsts, lengths, strict=True)):
            real = slice(first, first + length)
            heads = torch.cat([layer.weights[row, :, real, real] for layer in layers])
            state.receive(partial(_add, state, length), divergence(heads, causal=batch.is_causal))

    def merge(self, left: Sums, right: Sums) -> Sums:
        """Sums add."""
        return add(left, right)

    def compute(self, sums: Sums, records: Records) -> Variables:
        """head_divergence, and where the heads can be laid out, head_position and their order."""
        unit, other = Axis("unit", self.units), Axis("other", self.units)
        rows = float(sums["rows"])
        matrix = sums["divergence"] if rows else np.full_like(sums["divergence"], np.nan)
        named = label(matrix, unit, other).assign_attrs(rows=rows, bound=rows * np.log(2))
        reason = why_no_map(matrix)
        if reason is not None:
            return {"head_divergence": named.assign_attrs(no_map=reason)}
        return {"head_divergence": named, **self._layout(matrix, unit)}

    @property
    def units(self) -> tuple[str, ...]:
        """All heads of all layers, L0H0 first."""
        return tuple(
            f"L{layer}H{head}" for layer in self.grid.layers for head in range(self.grid.heads)
        )

    def _layout(self, matrix: np.ndarray, unit: Axis) -> dict[str, xr.DataArray]:
        positions, stress = head_positions(matrix, seed=self.seed)
        rank = Axis("neighbour", range(min(NEIGHBOURS, len(matrix) - 1)))
        nearest = np.array(self.units)[nearest_heads(matrix, len(rank))]
        place = np.argsort(head_order(matrix))
        return {
            "head_position": label(positions, unit, Axis("axis", ("x", "y"))).assign_attrs(
                stress=stress
            ),
            "head_order": label(place, unit),
            "nearest_head": label(nearest, unit, rank),
        }


def _add(state: State, rows: int, found: np.ndarray) -> None:
    state.sums["divergence"][...] += found
    state.sums["rows"][...] += rows
