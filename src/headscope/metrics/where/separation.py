"""How far a head looks, mean, spread and shares by powers of two; how sure it is at its surest.

```
separation |i − j|   0     1    2–3   4–7   8–15  …
share of attention  .05   .60   .20   .10    .05        distance 2.2, spread 2.6
```

All pairs count, those with the first token too. Distance and entropy have the terms of
`headscope.metrics.where.spread`; there null tokens are left out, here no token is null.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from headscope.metrics.metric import GROUP, Axis, Grid, Records, State, Sums, Variables, add, label
from headscope.metrics.ratio import (
    HeadRatio,
    Terms,
    TextRatio,
    TextTerms,
    contributions_of,
    pooled_variables,
    sum_by_group,
)
from headscope.metrics.where import spread
from headscope.metrics.where.shares import EVEN, HEADVIS, even_of
from headscope.metrics.where.surface import even_weights
from headscope.observe.batch import AnnotatedBatch
from headscope.observe.layer import Layer
from headscope.observe.offsets import separation_starts
from headscope.results.measure import Baseline, Measure, Role
from headscope.results.replicates import GROUPS

MOMENTS = ("weight", "distance", "squares")

DISTANCE = replace(
    spread.DISTANCE,
    meaning="Mean distance of attention in tokens, that to the first token included.",
    reference=f"{HEADVIS}; Vig & Belinkov 2019, Eq. 6, without the null filter",
    baselines=(Baseline("distance_even", EVEN),),
    published=(),
)
ENTROPY = replace(
    spread.ENTROPY,
    meaning="How widely a token's attention is spread over all that it sees.",
    formula="mean over tokens i of −Σ_j a[i, j] ln a[i, j]",
    reference=HEADVIS,
    baselines=(Baseline("entropy_even", EVEN),),
    role=Role("spread", "broadly, over all it sees"),
    published=(),
)
DISTANCE_SPREAD = Measure(
    "distance_spread",
    title="Spread of the distance",
    meaning="Standard deviation of the distance of attention, over all pairs of a head.",
    formula="√(Σ a[i, j]·|i − j|² / Σ a[i, j] − distance²)",
    reference=f"{HEADVIS}, which gives its square",
    unit="tokens",
    range="0 to half of the longest input, in tokens",
    cost="n², one sum along diagonals that distance_histogram shares",
    more="looks near and far",
)
DISTANCE_HISTOGRAM = Measure(
    "distance_histogram",
    title="Attention by distance",
    meaning="Share of attention at this distance or further, up to the next power of two.",
    formula="Σ a[i, j]·[s ≤ |i − j| < 2s] / Σ a[i, j] for s = 1, 2, 4 …; s = 0 is the token itself",
    reference=HEADVIS,
    cost="n², one sum along diagonals",
    more="looks more often this far",
    axes={"separation": "Distance from"},
    baselines=(Baseline("distance_histogram_even", EVEN),),
)
DISTANCE_EVEN, ENTROPY_EVEN, HISTOGRAM_EVEN = map(even_of, (DISTANCE, ENTROPY, DISTANCE_HISTOGRAM))
BINS = 50
PEAK = Axis("peak", tuple(place / BINS for place in range(BINS)))

PEAK_HISTOGRAM = Measure(
    "peak_histogram",
    title="Largest weight of an input",
    meaning="Share of the inputs in which the head's largest weight is this large, or up to 0.02 "
    "larger.",
    formula="number of inputs with p ≤ max a[i, j] < p + 0.02, i > 0, j > 0 / number of inputs; "
    "the first token is left out as query and key",
    reference=HEADVIS,
    cost="n², one maximum",
    more="is this sure of one pair in more of the inputs",
    axes={"peak": "Largest weight from"},
)


def distance(grid: Grid) -> HeadRatio:
    """Mean distance of attention in tokens."""
    return HeadRatio(DISTANCE, grid, spread.distance_terms)


def entropy(grid: Grid) -> HeadRatio:
    """Mean entropy of the rows."""
    return HeadRatio(ENTROPY, grid, spread.entropy_terms)


def distance_histogram(grid: Grid, tokens: int) -> HeadRatio:
    """Share of attention by separation, of inputs of at most so many tokens."""
    axis = separation_axis(tokens)
    return HeadRatio(DISTANCE_HISTOGRAM, grid, partial(_histogram_terms, len(axis)), axis)


def separation_axis(tokens: int) -> Axis:
    """The least separation of every share."""
    return Axis("separation", separation_starts(tokens))


def _histogram_terms(bins: int, layer: Layer) -> Terms:
    found = layer.spans.weight
    missing = bins - found.shape[-1]  # a batch of shorter inputs has fewer
    return torch.nn.functional.pad(found, (0, missing)), layer.total[..., None]


def even_lines(tokens: int) -> list[TextRatio]:
    """Distance, entropy and histogram of attention that is the same everywhere."""
    axis = separation_axis(tokens)
    return [
        TextRatio(DISTANCE_EVEN, _per_row(_even_distance)),
        TextRatio(ENTROPY_EVEN, _per_row(_even_entropy)),
        TextRatio(HISTOGRAM_EVEN, _per_row(partial(_even_histogram, axis)), axis),
    ]


Rows = Callable[[AnnotatedBatch], Float[Tensor, "batch query item"]]


def _per_row(values: Rows) -> Callable[[AnnotatedBatch], TextTerms]:
    """The values of all rows added up, and how many rows there are."""

    def terms(batch: AnnotatedBatch) -> TextTerms:
        real = batch.mask[..., None]
        return (values(batch) * real).sum(1), real.sum(1).double()

    return terms


def _even_distance(batch: AnnotatedBatch) -> Float[Tensor, "batch query one"]:
    before, after = _around(batch)
    steps = (before * (before + 1) + after * (after + 1)) / 2
    return (steps * even_weights(batch))[..., None]


def _even_entropy(batch: AnnotatedBatch) -> Float[Tensor, "batch query one"]:
    return -torch.where(batch.mask, even_weights(batch), 1.0).log()[..., None]


def _even_histogram(axis: Axis, batch: AnnotatedBatch) -> Float[Tensor, "batch query bin"]:
    starts = torch.tensor(axis.labels, device=batch.mask.device, dtype=torch.float64)
    last = torch.where(starts == 0, 0.0, 2 * starts - 1)

    def reached(far: Float[Tensor, "batch query"]) -> Float[Tensor, "batch query bin"]:
        return (torch.minimum(far[..., None], last) - starts + 1).clamp(min=0)

    before, after = _around(batch)
    both = reached(before) + reached(after)
    both[..., 0] = 1  # the token itself
    return both * even_weights(batch)[..., None]


def _around(batch: AnnotatedBatch) -> tuple[Float[Tensor, "batch query"], ...]:
    """How many tokens before and after it every token sees."""
    before = (batch.mask.double().cumsum(1) - 1).clamp(min=0)
    after = batch.mask.double().sum(1, keepdim=True) - 1 - before
    return before, torch.zeros_like(before) if batch.is_causal else after.clamp(min=0)


@dataclass(frozen=True)
class DistanceSpread:
    """The standard deviation of the distance: of all pairs of a head, not input by input."""

    grid: Grid
    name: str = "distance_spread"
    measures: tuple[Measure, ...] = (DISTANCE_SPREAD,)
    merge = staticmethod(add)

    def zero(self, inputs: int) -> State:
        return State({name: np.zeros((GROUPS, *self.grid.shape)) for name in MOMENTS})

    def update_layer(self, state: State, layer: Layer) -> None:
        found = torch.stack([layer.total.double(), layer.distance.double(), layer.spans.squares], 1)
        moments = sum_by_group(found, layer.batch.groups)
        state.receive(partial(_add, state, layer.index), moments)

    def compute(self, sums: Sums, records: Records) -> Variables:
        """distance_spread(layer, head) with its errors, and its value for every layer."""
        moments = [sums[name] for name in MOMENTS]
        total = moments[0]
        whole = _deviation(*(each.sum(0) for each in moments))
        without = _deviation(*(each.sum(0) - each for each in moments))
        numerator = contributions_of(whole, without, total)
        axes = (GROUP, *self.grid.axes)
        return pooled_variables(self.name, label(numerator, *axes), label(total, *axes))


def _add(state: State, index: int, moments: Float[np.ndarray, "group moment head"]) -> None:
    for place, name in enumerate(MOMENTS):
        state.sums[name][:, index] += moments[:, place]


def _deviation(
    weight: Float[np.ndarray, "*any"],
    distance: Float[np.ndarray, "*any"],
    squares: Float[np.ndarray, "*any"],
) -> Float[np.ndarray, "*any"]:
    """The standard deviation times the weight: √(Σa·d²·Σa − (Σa·d)²)."""
    return np.sqrt(np.maximum(squares * weight - distance**2, 0.0))


def peak_histogram(grid: Grid) -> HeadRatio:
    """Shares of inputs by the largest weight of a head."""
    return HeadRatio(PEAK_HISTOGRAM, grid, peak_terms, PEAK)


def peak_terms(layer: Layer) -> Terms:
    """One for the bin of every input's largest weight, and one for every input."""
    weight = layer.peaks(with_self=True).weight
    places = (weight * BINS).long().clamp(0, BINS - 1)
    found = places[..., None] == torch.arange(BINS, device=places.device)
    return found.float(), torch.ones_like(weight)[..., None]
