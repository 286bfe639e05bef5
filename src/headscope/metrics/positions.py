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

Distance and entropy have the terms of `headscope.metrics.spread`.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import pad

from headscope.metrics import spread
from headscope.metrics.metric import (
    EVEN,
    GROUP,
    Axis,
    Grid,
    Metric,
    Ratio,
    Sums,
    Terms,
    Variables,
    add_by_group,
    contributions_of,
    group_zeros,
    label,
    pooled_variables,
)
from headscope.metrics.surface import SINK_THRESHOLD
from headscope.observe.layer import Layer
from headscope.observe.offsets import separation_starts
from headscope.results.measure import Baseline, Measure

DELIMITER = 0  # the code of delimiters in the label of that name
HEADVIS = "Luger, Kamath et al. 2026 (HeadVis)"


def _declare(
    name: str, title: str, whom: str, formula: str, reference: str, cost: str = "n"
) -> Measure:
    return Measure(
        name,
        title=title,
        meaning=f"Share of its attention that a token pays to {whom}.",
        formula=formula,
        reference=reference,
        more=f"looks more at {whom}",
        baselines=(Baseline(f"{name}_even", EVEN),),
    )


SELF_SHARE = _declare(
    "self_share",
    "Attention to the token itself",
    "itself",
    "Σ a[i, i] / number of tokens i",
    f"{HEADVIS}: mean of the diagonal",
)
PREVIOUS_SHARE = _declare(
    "previous_share",
    "Attention to the previous token",
    "the token before it",
    "Σ a[i, i−1] / number of tokens i that have one before them",
    f"{HEADVIS}: mean of the first subdiagonal",
)
NEXT_SHARE = _declare(
    "next_share",
    "Attention to the next token",
    "the token after it",
    "Σ a[i, i+1] / number of tokens i that have one after them",
    f"as {HEADVIS} for the previous token",
)
FIRST_SHARE = _declare(
    "first_share",
    "Attention to the first token",
    "the first token of the input",
    "Σ a[i, 0] / number of tokens i after the first",
    f"Gu et al. 2024; a head above {SINK_THRESHOLD} is a sink head",
)
DELIMITER_SHARE = _declare(
    "delimiter_share",
    "Attention to delimiters",
    "line breaks and punctuation",
    "Σ_i Σ_j a[i, j]·[j is a delimiter] / number of tokens i; a delimiter is a token of nothing "
    "but line breaks and Unicode punctuation, spaces aside; special tokens are none",
    "after Clark et al. 2019, Fig. 2, with every mark of punctuation",
    "n, from the sums over columns",
)


def shares(grid: Grid, *, is_causal: bool) -> list[Ratio]:
    """All shares that a head can have; a causal one sees no next token."""
    shares = [Ratio(SELF_SHARE, grid, to_itself), Ratio(PREVIOUS_SHARE, grid, to_previous)]
    if not is_causal:
        shares.append(Ratio(NEXT_SHARE, grid, to_next))
    shares.append(Ratio(FIRST_SHARE, grid, to_first))
    shares.append(Ratio(DELIMITER_SHARE, grid, to_delimiters))
    return shares


def to_itself(layer: Layer) -> Terms:
    """Σ a[i, i] over all rows."""
    return _per_row(layer, layer.self_weight.sum(-1))


def to_previous(layer: Layer) -> Terms:
    """Σ a[i, i−1] over the rows after the first."""
    return _per_row(layer, layer.on_offset(-1), without=1)


def to_next(layer: Layer) -> Terms:
    """Σ a[i, i+1] over the rows before the last."""
    return _per_row(layer, layer.on_offset(1), without=1)


def to_first(layer: Layer) -> Terms:
    """Σ a[i, 0] over the rows after the first."""
    return _per_row(layer, layer.columns[..., 0] - layer.self_weight[..., 0], without=1)


def to_delimiters(layer: Layer) -> Terms:
    """Σ a[i, j] over all rows and the keys that are delimiters."""
    is_delimiter = layer.batch.one_hot("delimiter", 1)[..., DELIMITER]
    return _per_row(layer, torch.einsum("bhk,bk->bh", layer.columns, is_delimiter))


def _per_row(layer: Layer, paid: Float[Tensor, "batch head"], without: int = 0) -> Terms:
    """The attention paid, and how many rows can pay it."""
    rows = (layer.batch.mask.sum(1) - without).clamp(min=0)
    return paid[..., None], rows[:, None, None].expand(-1, paid.shape[1], -1).to(paid.dtype)


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
    published=(),
)
DISTANCE_SPREAD = Measure(
    "distance_spread",
    title="Spread of the distance",
    meaning="Standard deviation of the distance of attention, over all pairs of a head.",
    formula="√(Σ a[i, j]·|i − j|² / Σ a[i, j] − distance²)",
    reference=f"{HEADVIS}, which gives its square",
    unit="tokens",
    more="looks near and far",
)
DISTANCE_HISTOGRAM = Measure(
    "distance_histogram",
    title="Attention by distance",
    meaning="Share of attention at this distance or further, up to the next power of two.",
    formula="Σ a[i, j]·[s ≤ |i − j| < 2s] / Σ a[i, j] for s = 1, 2, 4 …; s = 0 is the token itself",
    reference=HEADVIS,
    more="looks more often this far",
    axes={"separation": "Distance from"},
    baselines=(Baseline("distance_histogram_even", EVEN),),
)

BINS = 50
PEAK = Axis("peak", tuple(number / BINS for number in range(BINS)))

PEAK_HISTOGRAM = Measure(
    "peak_histogram",
    title="Largest weight of an input",
    meaning="Share of the inputs in which the head's largest weight is this large, or up to 0.02 "
    "larger.",
    formula="number of inputs with p ≤ max a[i, j] < p + 0.02, i > 0, j > 0 / number of inputs; "
    "the first token is left out as query and key",
    reference=HEADVIS,
    more="is this sure of one pair in more of the inputs",
    axes={"peak": "Largest weight from"},
)


def distance(grid: Grid) -> Ratio:
    """Mean distance of attention in tokens."""
    return Ratio(DISTANCE, grid, spread.distance_terms)


def entropy(grid: Grid) -> Ratio:
    """Mean entropy of the rows."""
    return Ratio(ENTROPY, grid, spread.entropy_terms)


def distance_histogram(grid: Grid, tokens: int) -> Ratio:
    """Share of attention by separation, of inputs up to a length."""
    axis = Axis("separation", separation_starts(tokens))

    def terms(layer: Layer) -> Terms:
        weight = layer.spans.weight
        missing = len(axis) - weight.shape[-1]  # a batch of shorter inputs has fewer
        return pad(weight, (0, missing)), layer.total[..., None]

    return Ratio(DISTANCE_HISTOGRAM, grid, terms, axis)


@dataclass(frozen=True)
class DistanceSpread(Metric):
    """The standard deviation of the distance: of all pairs of a head, not input by input."""

    grid: Grid
    name: str = "distance_spread"
    measures: tuple[Measure, ...] = (DISTANCE_SPREAD,)

    def zero(self) -> Sums:
        return {name: group_zeros(*self.grid.shape) for name in MOMENTS}

    def see_layer(self, sums: Sums, layer: Layer) -> None:
        moments = (layer.total, layer.distance, layer.spans.squares)
        for name, values in zip(MOMENTS, moments, strict=True):
            add_by_group(sums[name][:, layer.index], values, layer.batch.groups)

    def compute(self, sums: Sums) -> Variables:
        """distance_spread(layer, head) with its errors, and its value for every layer."""
        moments = [sums[name].numpy() for name in MOMENTS]
        weight = moments[0]
        of_all = _deviation(*(values.sum(0) for values in moments))
        without = _deviation(*(values.sum(0) - values for values in moments))
        numerator = contributions_of(of_all, without, weight)
        axes = (GROUP, *self.grid.axes)
        return pooled_variables(self.name, label(numerator, *axes), label(weight, *axes))


def _deviation(
    weight: Float[np.ndarray, "*any"],
    distance: Float[np.ndarray, "*any"],
    squares: Float[np.ndarray, "*any"],
) -> Float[np.ndarray, "*any"]:
    """The standard deviation times the weight: √(Σa·d²·Σa − (Σa·d)²)."""
    return np.sqrt(np.maximum(squares * weight - distance**2, 0.0))


def peak_histogram(grid: Grid) -> Ratio:
    """Shares of inputs by the largest weight of a head."""
    return Ratio(PEAK_HISTOGRAM, grid, peak_terms, PEAK, has_even=False)


def peak_terms(layer: Layer) -> Terms:
    """One for the bin of every input's largest weight, and one for every input."""
    weight = layer.largest(with_self=True)
    bins = (weight * BINS).long().clamp(0, BINS - 1)
    in_bin = bins[..., None] == torch.arange(BINS, device=bins.device)
    return in_bin.float(), torch.ones_like(weight)[..., None]
