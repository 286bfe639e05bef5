"""The alignment that a head's distances alone would give it, apart from what the words say.

Near tokens are related far more often than distant ones, so a head that looks at the previous token
follows many arcs without knowing any. Its weight at each offset times the chance of an arc there is
what proximity explains; the rest is syntax.

```
offset i − j        −1     0     1     2    …    64   further
share of the head  .10   .05   .60   .10         0       0
chance of an arc   .42     0   .42   .20         0       0      Σ of the products: expected
```
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
from jaxtyping import Float

from headscope.metrics.metric import GROUP, Grid, Records, State, Sums, Variables, add, label
from headscope.metrics.ratio import contributions_of, pooled_variables, sum_by_group
from headscope.metrics.what.dependencies import FORM
from headscope.observe.batch import AnnotatedBatch
from headscope.observe.layer import Layer
from headscope.observe.offsets import count_arcs_by_offset, count_pairs_by_offset, offset_bins
from headscope.results.measure import Measure
from headscope.results.replicates import GROUPS

LONGEST = 64  # offsets kept apart; hardly any arc is longer

DEPENDENCY_EXPECTED = Measure(
    "dependency_expected",
    title="Dependency alignment expected from distance",
    meaning="The alignment of a head that looks as far as this one, whatever the words are.",
    formula="Σ over offsets o of (share of attention at i − j = o)·(share of the pairs there that "
    "are related); offsets beyond 64 count as one",
    reference="Vig & Belinkov 2019, text on Figs. 8 and 11: relations become rare with distance",
    range="0 to 1; either is the sum of the other two",
    cost="n², one sum along diagonals",
    more="would follow more arcs by its distances alone",
    axes={"form": "Form"},
)


@dataclass(frozen=True)
class ExpectedAlignment:
    """Weight of every head by offset, and how often pairs at an offset are related."""

    grid: Grid
    is_causal: bool
    longest: int = LONGEST
    name: str = "dependency_expected"

    @property
    def measures(self) -> tuple[Measure, ...]:
        return (DEPENDENCY_EXPECTED,)

    def zero(self, inputs: int) -> State:
        bins = offset_bins(self.longest, is_causal=self.is_causal)
        return State(
            {
                "weight": np.zeros((GROUPS, *self.grid.shape, bins)),
                "pairs": np.zeros((GROUPS, bins)),
                "arcs": np.zeros((GROUPS, 2, bins)),
            }
        )

    def update_text(self, state: State, batch: AnnotatedBatch) -> None:
        """Count the pairs at every offset, and those that are related in each direction."""
        found = {
            "pairs": count_pairs_by_offset(batch, self.longest),
            "arcs": count_arcs_by_offset(batch, self.longest),
        }
        for name, values in found.items():
            state.sums[name] += sum_by_group(values, batch.groups).cpu().numpy()

    def update_layer(self, state: State, layer: Layer) -> None:
        """Add the weight of one layer at every offset."""
        weight = sum_by_group(layer.by_offset(self.longest), layer.batch.groups)
        state.receive(partial(_add, state, layer.index), weight)

    def merge(self, left: Sums, right: Sums) -> Sums:
        return add(left, right)

    def compute(self, sums: Sums, records: Records) -> Variables:
        """dependency_expected(layer, head, form) with its errors; see `contributions`."""
        x, y = contributions(sums["weight"], sums["pairs"], sums["arcs"])
        numerator = label(x, GROUP, *self.grid.axes, FORM)
        return pooled_variables(self.name, numerator, label(y, GROUP, *self.grid.axes))


def _add(state: State, index: int, weight: Float[np.ndarray, "group head bin"]) -> None:
    state.sums["weight"][:, index] += weight


def contributions(
    weight: Float[np.ndarray, "group layer head bin"],
    pairs: Float[np.ndarray, "group bin"],
    arcs: Float[np.ndarray, "group two bin"],
) -> tuple[Float[np.ndarray, "group layer head form"], Float[np.ndarray, "group layer head"]]:
    """Numerator and denominator of every group, as every other ratio has them.

    The chance of an arc is known from all groups together, so what a group adds to the sum is not
    its own; see `contributions_of`.
    """
    total = weight.sum(-1)  # group layer head
    whole = _expected(weight.sum(0), pairs.sum(0), arcs.sum(0))
    without = np.broadcast_to(whole, (len(total), *whole.shape)).copy()
    for group in np.flatnonzero(pairs.sum(1)):
        parts = (each.sum(0) - each[group] for each in (weight, pairs, arcs))
        without[group] = _expected(*parts)
    return contributions_of(whole, without, total[..., None]), total


def _expected(
    weight: Float[np.ndarray, "layer head bin"],
    pairs: Float[np.ndarray, "bin"],
    arcs: Float[np.ndarray, "two bin"],
) -> Float[np.ndarray, "layer head form"]:
    """Σ weight at an offset · chance of an arc there, in the three forms."""
    chance = np.divide(arcs, pairs, out=np.zeros_like(arcs), where=pairs > 0.5)
    directed = weight @ chance.T
    return np.concatenate([directed, directed.sum(-1, keepdims=True)], axis=-1)
