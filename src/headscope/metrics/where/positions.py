"""Where and how far a head looks in raw text; no token is null here.

How much of its attention it pays to itself, its neighbours, the first token, delimiters:

```
            key 0  1  2  3
query 0         s                 s  self, n  next (no causal head sees it)
      1         f  s  n           f  first, p  previous
      2         f  p  s  n
      3         f     p  s
```

Rows are those of all tokens, the special ones included; each row of a usual softmax sums to one, so
that a share is a mean over the rows that have such a key. How far, by powers of two:

```
separation |i − j|   0     1    2–3   4–7   8–15  …
share of attention  .05   .60   .20   .10    .05        distance 2.2, spread 2.6
```

Distance and entropy have the terms of `headscope.metrics.where.spread`.
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
from headscope.metrics.where.surface import (
    SINK_THRESHOLD,
    even_on_offset,
    even_received,
    even_weights,
)
from headscope.observe.batch import AnnotatedBatch
from headscope.observe.layer import Layer
from headscope.observe.offsets import separation_starts
from headscope.results.measure import Baseline, Measure, Role
from headscope.results.replicates import GROUPS

DELIMITER = 0  # the code of delimiters in the label of that name
EVEN = "even attention"
HEADVIS = "Luger, Kamath et al. 2026 (HeadVis)"


def _declare(
    name: str, title: str, whom: str, formula: str, reference: str, role: Role, cost: str = "n"
) -> Measure:
    return Measure(
        name,
        title=title,
        meaning=f"Share of its attention that a token pays to {whom}.",
        formula=formula,
        reference=reference,
        cost=cost,
        more=f"looks more at {whom}",
        baselines=(Baseline(f"{name}_even", EVEN),),
        role=role,
    )


def even_of(measure: Measure) -> Measure:
    """The baseline of a measure: what attention that is the same everywhere gives."""
    return replace(
        measure,
        name=f"{measure.name}_even",
        title=f"{measure.title}, even attention",
        meaning=f"The {measure.name} of a head that spreads its attention evenly.",
        formula=f"the one of {measure.name} with a[i, j] := 1 / the number of tokens that i sees, "
        "however small that is",
        reference="as beside Clark et al. 2019, Fig. 4, the uniform line",
        cost=f"{measure.cost}, once for all heads",
        more="",
        baselines=(),
        published=(),
        role=None,
    )


SELF_SHARE = _declare(
    "self_share",
    "Attention to oneself",
    "itself",
    "Σ a[i, i] / number of tokens i",
    f"{HEADVIS}: mean of the diagonal",
    Role("position", "itself", of="attention"),
)
PREVIOUS_SHARE = _declare(
    "previous_share",
    "Attention to the previous token",
    "the token before it",
    "Σ a[i, i−1] / number of tokens i that have one before them",
    f"{HEADVIS}: mean of the first subdiagonal",
    Role("position", "the previous token", of="attention"),
)
NEXT_SHARE = _declare(
    "next_share",
    "Attention to the next token",
    "the token after it",
    "Σ a[i, i+1] / number of tokens i that have one after them",
    f"as {HEADVIS} for the previous token",
    Role("position", "the next token", of="attention"),
)
FIRST_SHARE = _declare(
    "first_share",
    "Attention to the first token",
    "the first token of the input",
    "Σ a[i, 0] / number of tokens i after the first",
    f"Gu et al. 2024; a head above {SINK_THRESHOLD} is a sink head",
    Role("special", "the first token", of="attention"),
)
DELIMITER_SHARE = _declare(
    "delimiter_share",
    "Attention to delimiters",
    "line breaks and punctuation",
    "Σ_i Σ_j a[i, j]·[j is a delimiter] / number of tokens i; a delimiter is a token of nothing "
    "but line breaks and Unicode punctuation, spaces aside; special tokens are none",
    "after Clark et al. 2019, Fig. 2, with every mark of punctuation",
    Role("special", "line breaks and punctuation", of="attention"),
    "n, from the sums over columns",
)
DECLARED = (SELF_SHARE, PREVIOUS_SHARE, NEXT_SHARE, FIRST_SHARE, DELIMITER_SHARE)
EVENS = tuple(map(even_of, DECLARED))

# What a head pays to the keys of a share, and the same of even attention, for every input.
Paid = Callable[[Layer], Float[Tensor, "batch head"]]
EvenlyPaid = Callable[[AnnotatedBatch], Float[Tensor, "batch"]]


def shares(grid: Grid, *, is_causal: bool) -> list[HeadRatio | TextRatio]:
    """All shares that a head can have, and those of even attention; a causal one sees no next."""
    found: list[HeadRatio | TextRatio] = []
    for measure, even, (missing, paid, evenly) in zip(DECLARED, EVENS, _SHARES, strict=True):
        if not (is_causal and measure is NEXT_SHARE):
            found.append(HeadRatio(measure, grid, partial(_terms, paid, missing)))
            found.append(TextRatio(even, partial(_even_terms, evenly, missing)))
    return found


def _terms(paid: Paid, missing: int, layer: Layer) -> Terms:
    """What is paid, and how many rows can pay it: all, or all but one of every input."""
    found, rows = paid(layer), _rows(layer.batch, missing)[:, None, None]
    return found[..., None], rows.expand(-1, found.shape[1], -1).to(found.dtype)


def _even_terms(evenly: EvenlyPaid, missing: int, batch: AnnotatedBatch) -> TextTerms:
    return evenly(batch)[:, None], _rows(batch, missing)[:, None].double()


def _rows(batch: AnnotatedBatch, missing: int) -> Float[Tensor, "batch"]:
    return (batch.mask.sum(1) - missing).clamp(min=0)


def to_delimiters(layer: Layer) -> Float[Tensor, "batch head"]:
    """Σ a[i, j] over the keys that are delimiters."""
    return torch.einsum("bhk,bk->bh", layer.columns, _is_delimiter(layer.batch).to(torch.float32))


def even_to_delimiters(batch: AnnotatedBatch) -> Float[Tensor, "batch"]:
    """`to_delimiters` of attention that is the same everywhere."""
    return (even_received(batch) * _is_delimiter(batch)).sum(1)


def _is_delimiter(batch: AnnotatedBatch) -> Float[Tensor, "batch token"]:
    return batch.one_hot("delimiter", 1)[..., DELIMITER]


# In the order of DECLARED: how many rows of an input cannot pay it, and what is paid.
_SHARES: tuple[tuple[int, Paid, EvenlyPaid], ...] = (
    (0, lambda layer: layer.self_weight.sum(-1), lambda batch: even_weights(batch).sum(1)),
    (1, lambda layer: layer.on_offset(-1), lambda batch: even_on_offset(batch, -1)),
    (1, lambda layer: layer.on_offset(1), lambda batch: even_on_offset(batch, 1)),
    (
        1,
        lambda layer: layer.columns[..., 0] - layer.self_weight[..., 0],
        lambda batch: even_weights(batch)[:, 1:].sum(1),
    ),
    (0, to_delimiters, even_to_delimiters),
)


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
        TextRatio(DISTANCE_EVEN, partial(_per_row, _even_distance)),
        TextRatio(ENTROPY_EVEN, partial(_per_row, _even_entropy)),
        TextRatio(HISTOGRAM_EVEN, partial(_per_row, partial(_even_histogram, axis)), axis),
    ]


Rows = Callable[[AnnotatedBatch], Float[Tensor, "batch query item"]]


def _per_row(values: Rows, batch: AnnotatedBatch) -> TextTerms:
    """The values of all rows added up, and how many rows there are."""
    real = batch.mask[..., None]
    return (values(batch) * real).sum(1), real.sum(1).double()


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
    weight = layer.largest(with_self=True)
    places = (weight * BINS).long().clamp(0, BINS - 1)
    found = places[..., None] == torch.arange(BINS, device=places.device)
    return found.float(), torch.ones_like(weight)[..., None]
