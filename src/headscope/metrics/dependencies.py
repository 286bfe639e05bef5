"""How much attention follows dependency arcs (Vig & Belinkov 2019, Eq. 4, Fig. 8).

Two tokens are related if their words are: one the parent of the other. Pieces of one word are not
related; a token with itself is not, but stays in the denominator.
"""

from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor

from headscope.metrics import text_ratio
from headscope.metrics.head_ratio import HeadRatio, Terms
from headscope.metrics.metric import Axis, Grid
from headscope.metrics.text_ratio import TextRatio
from headscope.observe.batch import FORMS, AnnotatedBatch
from headscope.observe.layer import ObservedLayer
from headscope.observe.pairs import count_related, pairs_of_queries

FORM = Axis("form", FORMS)


def alignment_terms(layer: ObservedLayer) -> Terms:
    """Σ a[i,j]·dep(i,j) in the three forms, and Σ a[i,j]."""
    return _with_either(layer.pair_sums[..., :2]), layer.total[..., None]


def baseline_terms(batch: AnnotatedBatch, with_self: bool) -> text_ratio.Terms:
    """The terms of `alignment_terms` with every weight 1 over the same pairs."""
    pairs = pairs_of_queries(batch).sum(1, keepdim=True)
    if not with_self:
        pairs = pairs - batch.content.sum(1, keepdim=True)
    return _with_either(count_related(batch)), pairs


def dependency_alignment(grid: Grid) -> HeadRatio:
    """Share of attention between related tokens, by who is the parent.

    Variables: dependency_alignment, dependency_alignment_*
    Formula: Σ a[i, j]·dep(i, j) / Σ a[i, j]; dep: i is the parent, j is the parent, either
    Reference: Vig & Belinkov 2019, Eq. 4, Fig. 8
    Range: 0 to 1; either is the sum of the other two
    Cost: n², one product with the pair features that distance shares
    """
    return HeadRatio(
        "dependency_alignment", grid, alignment_terms, FORM, "attention along dependency arcs"
    )


def dependency_baseline() -> TextRatio:
    """Share of the pairs that are related.

    Variables: dependency_baseline, dependency_baseline_se
    Formula: Σ dep(i, j) / pairs that count
    Reference: Vig & Belinkov 2019, Fig. 8
    Range: 0 to 1
    Cost: n and the arcs, once for all heads
    """
    terms = partial(baseline_terms, with_self=True)
    return TextRatio("dependency_baseline", terms, FORM, "alignment of even attention")


def dependency_baseline_without_self() -> TextRatio:
    """Share of the pairs of two different tokens that are related.

    Variables: dependency_baseline_without_self, dependency_baseline_without_self_se
    Formula: Σ dep(i, j) / pairs that count and have i ≠ j
    Reference: Vig & Belinkov 2019, Fig. 8, the other reading of it
    Range: 0 to 1
    Cost: n and the arcs, once for all heads
    """
    terms = partial(baseline_terms, with_self=False)
    return TextRatio("dependency_baseline_without_self", terms, FORM)


def _with_either(directed: Float[Tensor, "*any two"]) -> Float[Tensor, "*any form"]:
    return torch.cat([directed, directed.sum(-1, keepdim=True)], dim=-1)
