"""How sure a head is at its surest: the largest weight of every input, over all inputs."""

import torch

from headscope.metrics.metric import Axis, Grid
from headscope.metrics.ratio import HeadRatio, Terms
from headscope.metrics.shares import HEADVIS
from headscope.observe.layer import Layer
from headscope.results.measure import Measure

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


def peak_histogram(grid: Grid) -> HeadRatio:
    """Shares of inputs by the largest weight of a head."""
    return HeadRatio(PEAK_HISTOGRAM, grid, peak_terms, PEAK)


def peak_terms(layer: Layer) -> Terms:
    """One for the bin of every input's largest weight, and one for every input."""
    weight = layer.peaks(with_self=True).weight
    places = (weight * BINS).long().clamp(0, BINS - 1)
    found = places[..., None] == torch.arange(BINS, device=places.device)
    return found.float(), torch.ones_like(weight)[..., None]
