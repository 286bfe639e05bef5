"""Which heads behave alike: Jensen–Shannon divergences, and map, order and neighbours from these.

    JS(p, q) = H((p+q)/2) − (H(p) + H(q))/2        summed over all rows of all inputs, in nats

With m = (p+q)/2 that is ½(Σ p ln p + Σ q ln q) − Σ m ln m. Only a sum over pairs (query, key) is
left of the rows, so padding and what a causal mask hides are dropped first, and the rest is cut
into blocks that fit into the cache. Three implementations of Σ m ln m agree within 1e-6 of the
divergence; of two heads that are nearly alike, float32 leaves fewer digits of it:

```
divergence_loop       one compiled loop on the CPU, needs numba
divergence_kernel     the same on CUDA, needs Triton, which comes with torch there
sum_middles           plain torch on any device, some ten times slower
```
"""

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Literal

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float, Int
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform
from torch import Tensor
from torch.nn import functional

from headscope.head import name_head
from headscope.metrics.metric import Axis, Grid, Metric, Sums, Variables, label
from headscope.metrics.scaling import scale_to_plane, stress
from headscope.observe.batch import AnnotatedBatch
from headscope.observe.layer import Layer
from headscope.results.measure import Measure

Implementation = Literal["numba", "triton", "torch"]
SMOOTHING = 1e-3
BLOCK = 512  # elements: a block of 144 heads takes 288 kB, which a core's second-level cache holds
BLOCKS_AT_ONCE = 16  # of plain torch
TINY = 1e-30  # only so that the logarithm of padding is finite
NEIGHBOURS = 5
SMALLEST_MAP = 3  # fewer heads than this lie on a line whatever they do

HEAD_DIVERGENCE = Measure(
    "head_divergence",
    title="Divergence of heads",
    meaning="How differently two heads attend.",
    formula="Σ JS(p′, q′) over the rows of all inputs, p′ = 0.999·a + 0.001/n, natural logarithm",
    reference="Clark et al. 2019, §6",
    unit="divergence",
    more="attends less alike",
    with_errors=False,
)
HEAD_POSITION = Measure(
    "head_position",
    title="Map of heads",
    meaning="Where a head lies on a plane that keeps the divergences as well as it can.",
    formula="metric multidimensional scaling of head_divergence to two axes, from the "
    "classical solution",
    reference="Clark et al. 2019, Fig. 6",
    unit="",
    with_errors=False,
)
HEAD_ORDER = Measure(
    "head_order",
    title="Order of heads",
    meaning="Place of a head in an order that puts similar heads side by side.",
    formula="leaves of the average-linkage tree of head_divergence",
    reference="after Clark et al. 2019, §6",
    unit="",
    with_errors=False,
)
NEAREST_HEAD = Measure(
    "nearest_head",
    title="Nearest heads",
    meaning="The heads that attend most alike, nearest first.",
    formula="the heads with the least head_divergence",
    reference="after Clark et al. 2019, §6",
    unit="",
    with_errors=False,
)


@dataclass(frozen=True)
class HeadDivergence(Metric):
    """Jensen–Shannon divergences between all heads, summed over all rows of all inputs."""

    grid: Grid
    name: str = "head_divergence"
    measures: tuple[Measure, ...] = (HEAD_DIVERGENCE, HEAD_POSITION, HEAD_ORDER, NEAREST_HEAD)
    needs_matrices = True

    def zero(self) -> Sums:
        units = len(self.units)
        divergences = torch.zeros(units, units, dtype=torch.float64)
        return {"divergence": divergences, "rows": torch.zeros((), dtype=torch.float64)}

    def see_layer(self, sums: Sums, layer: Layer) -> None:
        """Keep the weights of a layer, and compare all heads once every layer is there."""
        batch = layer.batch
        weights: dict[int, Tensor] = batch.once(self.name, dict)
        weights[layer.index] = layer.weights(0, batch.mask.shape[1])
        if len(weights) == len(self.grid.layers):
            heads = [weights.pop(index) for index in range(len(self.grid.layers))]
            self._compare(sums, batch, heads)

    def _compare(
        self,
        sums: Sums,
        batch: AnnotatedBatch,
        layers: list[Float[Tensor, "batch head query key"]],
    ) -> None:
        """Add the divergences of every input of a batch."""
        firsts, lengths = batch.mask.int().argmax(1).tolist(), batch.mask.sum(1).tolist()
        for row, (first, length) in enumerate(zip(firsts, lengths, strict=True)):
            real = slice(first, first + length)
            heads = torch.cat([weights[row, :, real, real] for weights in layers])
            sums["divergence"] += divergence(heads, causal=batch.is_causal)
        sums["rows"] += sum(lengths)

    def compute(self, sums: Sums) -> Variables:
        """head_divergence, and where the heads can be laid out, head_position and their order."""
        unit, other = Axis("unit", self.units), Axis("other", self.units)
        rows, matrix = float(sums["rows"]), sums["divergence"].numpy()
        if rows == 0:
            matrix = np.full_like(matrix, np.nan)
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
        positions, misfit = head_positions(matrix)
        rank = Axis("neighbour", range(min(NEIGHBOURS, len(matrix) - 1)))
        nearest = np.array(self.units)[nearest_heads(matrix, len(rank))]
        head_rank = np.argsort(head_order(matrix))
        return {
            "head_position": label(positions, unit, Axis("axis", ("x", "y"))).assign_attrs(
                stress=misfit
            ),
            "head_order": label(head_rank, unit),
            "nearest_head": label(nearest, unit, rank),
        }


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
    divergence: Float[np.ndarray, "unit unit"],
) -> tuple[Float[np.ndarray, "unit axis"], float]:
    """Metric multidimensional scaling to two axes, and its normalised stress (0 is a perfect fit).

    Divergences are scaled to a largest value of one, so that the map does not depend on how many
    rows they were summed over.
    """
    scaled = divergence / divergence.max()
    positions = scale_to_plane(scaled)
    return positions, stress(positions, scaled)


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


def divergence(
    weights: Float[Tensor, "unit query key"], *, causal: bool
) -> Float[Tensor, "unit unit"]:
    """Divergences between all heads of a model, summed over the rows of one input (Fig. 6).

    Rows are smoothed first, p' = (1 − s)·p + s/n with n the number of tokens, so that no logarithm
    is infinite. Keys that a causal model hides hold s/n in every head and add nothing. The result
    is float64 and may still be on the device of the weights.
    """
    blocks = cut_blocks(weights, causal, SMOOTHING)
    implementation = choose_implementation(weights.device)
    if implementation == "numba":
        from headscope.metrics import divergence_loop

        sums = torch.from_numpy(divergence_loop.sum_middles(blocks.numpy()))
    elif implementation == "triton":
        from headscope.metrics import divergence_kernel

        sums = divergence_kernel.sum_middles(blocks)
    else:
        sums = sum_middles(blocks)
    return divergence_of_sums(sums)


def choose_implementation(device: torch.device) -> Implementation:
    """Compiled logarithms where their compiler is there and fits the device, else plain torch."""
    compilers: dict[str, Implementation] = {"cpu": "numba", "cuda": "triton"}
    compiler = compilers.get(device.type)
    return compiler if compiler is not None and find_spec(compiler) is not None else "torch"


def cut_blocks(
    weights: Float[Tensor, "unit query key"], causal: bool, smoothing: float
) -> Float[Tensor, "block unit element"]:
    """Smoothed weights of all visible pairs, cut into blocks; the last one is filled with zeros."""
    size = weights.shape[-1]
    elements = weights.detach().float().flatten(1)
    if causal:
        query, key = torch.tril_indices(size, size, device=weights.device)
        elements = elements[:, query * size + key]
    elements = torch.add(elements * (1 - smoothing), smoothing / size)
    padded = functional.pad(elements, (0, -elements.shape[1] % BLOCK))
    return padded.unflatten(1, (-1, BLOCK)).transpose(0, 1).contiguous()


def sum_middles(blocks: Float[Tensor, "block unit element"]) -> Float[Tensor, "unit unit"]:
    """Σ m ln m with m = (p+q)/2 for every pair of units, upper triangle.

    One unit against all after it, some blocks at a time, so that little memory is needed.
    """
    units = blocks.shape[1]
    sums = torch.zeros(units, units, dtype=torch.float64, device=blocks.device)
    for part in blocks.split(BLOCKS_AT_ONCE):
        for unit in range(units):
            middle = (part[:, unit, None] + part[:, unit:]) / 2
            terms = middle.clamp(min=TINY).log_().mul_(middle)
            sums[unit, unit:] += terms.sum((0, 2), dtype=torch.float64)
    return sums


def divergence_of_sums(middles: Float[Tensor, "unit unit"]) -> Float[Tensor, "unit unit"]:
    """Divergences from Σ m ln m of every pair; of a unit with itself that is Σ p ln p."""
    negative_entropy = middles.diagonal()
    upper = ((negative_entropy[:, None] + negative_entropy) / 2 - middles).triu(1)
    return (upper + upper.T).clamp(min=0)
