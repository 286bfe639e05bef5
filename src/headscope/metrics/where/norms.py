"""The same measures of attention weighted by what it gives, beside those of raw attention.

Only for runs that ask for both readings; a run that asks for norms alone has all measures of them.
See `headscope.model.writes`.
"""

from collections.abc import Collection

from headscope.metrics.metric import Grid
from headscope.metrics.ratio import HeadRatio, MatrixRatio
from headscope.metrics.what import dependencies
from headscope.metrics.where import spread, surface
from headscope.results.measure import Baseline, Measure

KOBAYASHI = "Kobayashi et al. 2020"
WEIGHTED = "with a′[i, j] = a[i, j]·‖v_j W_O‖ / Σ_k a[i, k]·‖v_k W_O‖ instead of a[i, j]"
COST = "n·d²: the output projection once more, and another pass over the weights"

NULL_SHARE_NORM = Measure(
    "null_share_norm",
    title="Null attention by what it gives",
    meaning="Share of what is taken from the first token or the delimiters.",
    formula=f"the one of null_share {WEIGHTED}",
    reference=KOBAYASHI,
    cost=COST,
    more="takes more from null tokens",
    baselines=(Baseline("null_share_even", "even attention"),),
)
DEPENDENCY_ALIGNMENT_NORM = Measure(
    "dependency_alignment_norm",
    title="Dependency alignment by what is given",
    meaning="Share of what is taken between the words of one dependency arc.",
    formula=f"the one of dependency_alignment {WEIGHTED}",
    reference=KOBAYASHI,
    range="0 to 1; either is the sum of the other two",
    cost="none beyond null_share_norm",
    more="follows dependency arcs more",
    axes={"form": "Form"},
    baselines=(Baseline("dependency_baseline", "even attention"),),
)
SPECIAL_SHARE_NORM = Measure(
    "special_share_norm",
    title="Special tokens by what they give",
    meaning="Share of what is taken from [CLS], [SEP] or punctuation.",
    formula=f"the one of special_share {WEIGHTED}",
    reference=KOBAYASHI,
    cost=COST,
    more="takes more from these tokens",
    axes={"special": "Token"},
    baselines=(Baseline("special_share_even", "even attention"),),
)


def by_norms(ratio: HeadRatio, measure: Measure) -> MatrixRatio:
    """The same ratio of the norm-weighted layer, under another name."""
    return MatrixRatio(
        measure, ratio.grid, lambda layer: ratio.terms(layer.normed), ratio.axis, ratio.shared
    )


def null_share(grid: Grid) -> MatrixRatio:
    """Share taken from null tokens, by the other tokens."""
    return by_norms(spread.null_share(grid), NULL_SHARE_NORM)


def dependency_alignment(grid: Grid) -> MatrixRatio:
    """Share taken between related tokens, by who is the parent."""
    return by_norms(dependencies.dependency_alignment(grid), DEPENDENCY_ALIGNMENT_NORM)


def special_shares(grid: Grid, absent: Collection[str] = ()) -> MatrixRatio:
    """Share taken from [CLS], [SEP] and punctuation."""
    return by_norms(surface.special_shares(grid, absent), SPECIAL_SHARE_NORM)
