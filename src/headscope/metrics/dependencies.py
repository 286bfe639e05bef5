"""How much attention follows dependency arcs, and how long these are (Vig & Belinkov 2019, Fig. 8).

Two tokens are related if their words are: one the parent of the other. Pieces of one word are not
related; a token with itself is not, but stays in the denominator.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from headscope.metrics.metric import Axis, Grid, Records, State, Sums, Variables, add, label
from headscope.metrics.ratio import HeadRatio, Terms, TextRatio, TextTerms
from headscope.observe.batch import (
    FORMS,
    AnnotatedBatch,
    count_by_separation,
    count_related,
    each_once,
    pairs_of_queries,
    related_pairs,
)
from headscope.observe.layer import Layer
from headscope.results.measure import Baseline, Measure, Published

FORM = Axis("form", FORMS)
LONGEST = 100  # separations shown one by one; longer ones count in the mean span only
VIG = "GPT-2 small, Vig & Belinkov 2019"

DEPENDENCY_ALIGNMENT = Measure(
    "dependency_alignment",
    title="Dependency alignment",
    meaning="Share of attention between the words of one dependency arc.",
    formula="Σ a[i, j]·dep(i, j) / Σ a[i, j]; dep: i is the parent, j is the parent, either",
    reference="Vig & Belinkov 2019, Eq. 4, Fig. 8",
    range="0 to 1; either is the sum of the other two",
    cost="n², one product with the pair features that distance shares",
    more="follows dependency arcs more",
    axes={"form": "Form"},
    baselines=(Baseline("dependency_baseline", "every pair weighs the same"),),
    published=(Published("highest, in L4H11", VIG, 0.42, {"form": "either"}),),
)
DEPENDENCY_BASELINE = Measure(
    "dependency_baseline",
    title="Dependency alignment of even attention",
    meaning="Share of the pairs that are related.",
    formula="Σ dep(i, j) / pairs that count",
    reference="Vig & Belinkov 2019, Fig. 8",
    cost="n and the arcs, once for all heads",
    axes={"form": "Form"},
)
DEPENDENCY_BASELINE_WITHOUT_SELF = Measure(
    "dependency_baseline_without_self",
    title="Dependency alignment of even attention to other tokens",
    meaning="Share of the pairs of two different tokens that are related.",
    formula="Σ dep(i, j) / pairs that count and have i ≠ j",
    reference="Vig & Belinkov 2019, Fig. 8, the other reading of it",
    cost="n and the arcs, once for all heads",
    axes={"form": "Form"},
)
DEPENDENCY_PROBABILITY = Measure(
    "dependency_probability",
    title="Probability of a dependency",
    meaning="Share of the token pairs at a separation that are related.",
    formula="related pairs at the separation / pairs at the separation; error √(p(1 − p)/pairs)",
    reference="Vig & Belinkov 2019, text on Fig. 8",
    cost="n·100 and the arcs, once for all heads",
    axes={"separation": "Separation"},
    published=(
        Published("of neighbours", VIG, 0.42, {"separation": "1"}),
        Published("of tokens 5 apart", VIG, 0.07, {"separation": "5"}),
        Published("of tokens 10 apart", VIG, 0.02, {"separation": "10"}),
    ),
)
DEPENDENCY_WITHIN = Measure(
    "dependency_within",
    title="Dependencies within a separation",
    meaning="Share of the related pairs that are at most this far apart.",
    formula="arcs up to the separation / arcs",
    reference="Vig & Belinkov 2019, text on Fig. 8",
    range="0 to 1, rising",
    cost="none beyond dependency_probability",
    axes={"separation": "Separation"},
    published=(Published("of all relations", VIG, 0.998, {"separation": "18"}),),
    with_errors=False,
)
MEAN_DEPENDENCY_SPAN = Measure(
    "mean_dependency_span",
    title="Mean span of a dependency",
    meaning="How many tokens apart related tokens are.",
    formula="Σ |i − j| of related pairs / related pairs",
    reference="Vig & Belinkov 2019, text on Fig. 8",
    unit="tokens",
    range="from 1, in tokens",
    cost="none beyond dependency_probability",
    published=(Published("mean span", VIG, 3.89),),
    with_errors=False,
)


def alignment_terms(layer: Layer) -> Terms:
    """Σ a[i,j]·dep(i,j) in the three forms, and Σ a[i,j]."""
    return _with_either(layer.on_arcs), layer.total[..., None]


def baseline_terms(batch: AnnotatedBatch, with_self: bool) -> TextTerms:
    """The terms of `alignment_terms` with every weight 1 over the same pairs."""
    pairs = pairs_of_queries(batch).sum(1, keepdim=True)
    if not with_self:
        pairs = pairs - batch.content.sum(1, keepdim=True)
    return _with_either(count_related(batch)), pairs


def dependency_alignment(grid: Grid) -> HeadRatio:
    """Share of attention between related tokens, by who is the parent."""
    return HeadRatio(DEPENDENCY_ALIGNMENT, grid, alignment_terms, FORM)


def dependency_baseline() -> TextRatio:
    """Share of the pairs that are related."""
    return TextRatio(DEPENDENCY_BASELINE, partial(baseline_terms, with_self=True), FORM)


def dependency_baseline_without_self() -> TextRatio:
    """Share of the pairs of two different tokens that are related."""
    terms = partial(baseline_terms, with_self=False)
    return TextRatio(DEPENDENCY_BASELINE_WITHOUT_SELF, terms, FORM)


def _with_either(directed: Float[Tensor, "*any two"]) -> Float[Tensor, "*any form"]:
    return torch.cat([directed, directed.sum(-1, keepdim=True)], dim=-1)


@dataclass(frozen=True)
class DependencySpan:
    """Fraction of token pairs at each separation that are related, and the spans of those.

    A pair of tokens is counted once, whichever of the two is the query.
    """

    name: str = "dependency_span"

    @property
    def measures(self) -> tuple[Measure, ...]:
        return DEPENDENCY_PROBABILITY, DEPENDENCY_WITHIN, MEAN_DEPENDENCY_SPAN

    def zero(self, inputs: int) -> State:
        sums = {name: np.zeros(LONGEST + 1) for name in ("pairs", "related")}
        return State(sums | {"arcs": np.zeros(1), "span": np.zeros(1)})

    def update_text(self, state: State, batch: AnnotatedBatch) -> None:
        arcs = torch.cat(related_pairs(batch))
        arcs = each_once(arcs[arcs[:, 1] > arcs[:, 2]], batch.mask.shape[1])
        separation = arcs[:, 1] - arcs[:, 2]
        near = torch.bincount(separation[separation <= LONGEST], minlength=LONGEST + 1)
        state.sums["pairs"] += count_by_separation(batch, LONGEST).cpu().numpy()
        state.sums["related"] += near.cpu().numpy()
        state.sums["arcs"] += len(arcs)
        state.sums["span"] += float(separation.sum())

    def merge(self, left: Sums, right: Sums) -> Sums:
        return add(left, right)

    def compute(self, sums: Sums, records: Records) -> Variables:
        """P(dependency | separation) with its binomial error, share of arcs within, mean span."""
        pairs, related, arcs = sums["pairs"][1:], sums["related"][1:], sums["arcs"][0]
        with np.errstate(invalid="ignore", divide="ignore"):
            probability = related / pairs
            error = np.sqrt(probability * (1 - probability) / pairs)
            within, span = related.cumsum() / arcs, sums["span"][0] / arcs
        axis = Axis("separation", range(1, LONGEST + 1))
        return {
            "dependency_probability": label(probability, axis),
            "dependency_probability_se": label(error, axis),
            "dependency_within": label(within, axis),
            "mean_dependency_span": label(np.asarray(span)),
        }
