"""Which heads behave alike: their divergences, and the map, order and neighbours from these."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float, Int
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform
from sklearn.manifold import smacof

from headscope.head import name_head
from headscope.metrics.divergence.pairwise import divergence
from headscope.metrics.metric import Axis, Grid, Records, State, Sums, Variables, add, label
from headscope.observe.dense import DenseLayer
from headscope.results.measure import Measure

NEIGHBOURS = 5
# How the paper's released notebook lays heads out: starts, tolerance, most steps.
RELEASED = {"n_init": 5, "eps": 1e-10, "max_iter": 1000}
SMALLEST_MAP = 3  # fewer heads than this lie on a line whatever they do

HEAD_DIVERGENCE = Measure(
    "head_divergence",
    title="Divergence of heads",
    meaning="How differently two heads attend.",
    formula="Σ JS(p′, q′) over the rows of all inputs, p′ = 0.999·a + 0.001/n, natural logarithm",
    reference="Clark et al. 2019, §6",
    unit="divergence",
    range="0 to rows · ln 2",
    cost="n² for every pair of heads of the model: the dearest metric",
    more="attends less alike",
    with_errors=False,
)
HEAD_POSITION = Measure(
    "head_position",
    title="Map of heads",
    meaning="Where a head lies on a plane that keeps the divergences as well as it can.",
    formula="metric multidimensional scaling of head_divergence to two axes",
    reference="Clark et al. 2019, Fig. 6",
    unit="",
    range="any; only the distances mean something",
    cost="from head_divergence alone",
    with_errors=False,
)
HEAD_ORDER = Measure(
    "head_order",
    title="Order of heads",
    meaning="Place of a head in an order that puts similar heads side by side.",
    formula="leaves of the average-linkage tree of head_divergence",
    reference="after Clark et al. 2019, §6",
    unit="",
    range="places from 0",
    cost="from head_divergence alone",
    with_errors=False,
)
NEAREST_HEAD = Measure(
    "nearest_head",
    title="Nearest heads",
    meaning="The heads that attend most alike, nearest first.",
    formula="the heads with the least head_divergence",
    reference="after Clark et al. 2019, §6",
    unit="",
    range="names of heads",
    cost="from head_divergence alone",
    with_errors=False,
)


@dataclass(frozen=True)
class HeadDivergence:
    """Jensen–Shannon divergences between all heads, summed over all rows of all inputs."""

    grid: Grid
    seed: int = 0  # of the map
    name: str = "head_divergence"

    @property
    def measures(self) -> tuple[Measure, ...]:
        return HEAD_DIVERGENCE, HEAD_POSITION, HEAD_ORDER, NEAREST_HEAD

    def zero(self, inputs: int) -> State:
        units = len(self.units)
        return State({"divergence": np.zeros((units, units)), "rows": np.zeros(())})

    def update_batch(self, state: State, layers: Sequence[DenseLayer]) -> None:
        """Compare all heads on every input of a batch."""
        batch = layers[0].batch
        firsts, lengths = batch.mask.int().argmax(1).tolist(), batch.mask.sum(1).tolist()
        for row, (first, length) in enumerate(zip(firsts, lengths, strict=True)):
            real = slice(first, first + length)
            heads = torch.cat([layer.weights[row, :, real, real] for layer in layers])
            state.receive(partial(_add, state, length), divergence(heads, causal=batch.is_causal))

    def merge(self, left: Sums, right: Sums) -> Sums:
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
        layers, heads = self.grid.layers, range(self.grid.heads)
        return tuple(name_head(layer, head) for layer in layers for head in heads)

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


def why_no_map(divergence: Float[np.ndarray, "unit unit"]) -> str | None:
    """The reason why these heads cannot be laid out in a plane, or None."""
    if len(divergence) < SMALLEST_MAP:
        return f"a map needs at least {SMALLEST_MAP} heads and the model has {len(divergence)}"
    if not np.isfinite(divergence).all():
        return "the corpus has no usable segment to compare heads on"
    if not divergence.any():
        return "all heads are the same on this corpus"
    return None


def head_positions(
    divergence: Float[np.ndarray, "unit unit"], *, seed: int
) -> tuple[Float[np.ndarray, "unit axis"], float]:
    """Metric multidimensional scaling to two axes, and its normalised stress (0 is a perfect fit).

    Divergences are scaled to a largest value of one, so that the map does not depend on how many
    rows they were summed over; the best of several seeded random starts is taken, each followed
    as far as in the paper's released notebook.
    """
    scaled = divergence / divergence.max()
    options: dict[str, Any] = {"random_state": seed, "normalized_stress": True, **RELEASED}
    fit: Any = smacof(scaled, metric=True, n_components=2, **options)
    return fit[0] - fit[0].mean(0), float(fit[1])


def head_order(divergence: Float[np.ndarray, "unit unit"]) -> Int[np.ndarray, "unit"]:
    """The heads in the order of the leaves of an average-linkage tree, neighbours side by side."""
    condensed = squareform(divergence, checks=False)
    return leaves_list(linkage(condensed, method="average", optimal_ordering=True))


def nearest_heads(
    divergence: Float[np.ndarray, "unit unit"], count: int
) -> Int[np.ndarray, "unit neighbour"]:
    """For every head the heads that diverge least from it, nearest first."""
    distance = divergence.copy()
    np.fill_diagonal(distance, np.inf)
    return np.argsort(distance, axis=1, kind="stable")[:, :count]
