"""How much attention follows dependency arcs, and how long these are (Vig & Belinkov 2019, Fig. 8).

Two tokens are related if their words are: one the parent of the other. Pieces of one word are not
related; a token with itself is not, but stays in the denominator.

Near tokens are related far more often than distant ones, so a head that looks at the previous token
follows many arcs without knowing any. The alignment expected from its distances alone is that of a
head which spreads each row by offset as this one does on average, whatever the words say; the rest
is syntax.

```
offset i − j        −1     0     1     2    …    64   further
strength s          .9    .4   5.0   1.1        .2      .2      weight / weight of even attention
```

The strengths are those of one input. Over inputs of all lengths, far offsets would seem to lead to
fewer arcs than they do in short ones, and an even head would seem to know syntax.
"""

from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor

from headscope.metrics.metric import (
    EVEN,
    GROUP,
    Axis,
    Grid,
    Metric,
    Ratio,
    Sums,
    Terms,
    TextRatio,
    TextTerms,
    Variables,
    add_by_group,
    group_zeros,
    label,
    norm_of,
    ratio_variables,
)
from headscope.observe.batch import (
    FORMS,
    AnnotatedBatch,
    count_by_separation,
    count_related,
    each_once,
    pairs_of_queries,
    related_pairs,
)
from headscope.observe.layer import Layer, even_layer, sum_by_text
from headscope.observe.offsets import keys_by_offset, place_of
from headscope.results.measure import Baseline, Measure
from headscope.results.replicates import GROUPS

FORM = Axis("form", FORMS)
LONGEST = 100  # separations shown one by one; longer ones count in the mean span only
APART = 64  # offsets that `dependency_expected` keeps apart; hardly any arc is longer

DEPENDENCY_ALIGNMENT = Measure(
    "dependency_alignment",
    title="Dependency alignment",
    meaning="Share of attention between the words of one dependency arc.",
    formula="Σ a[i, j]·dep(i, j) / Σ a[i, j]; dep: i is the parent, j is the parent, either",
    reference="Vig & Belinkov 2019, Eq. 4, Fig. 8",
    more="follows dependency arcs more",
    axes={"form": "Form"},
    baselines=(
        Baseline("dependency_alignment_even", EVEN),
        Baseline("dependency_expected", "expected from its distances"),
        Baseline("dependency_baseline", "share of pairs"),
    ),
)
DEPENDENCY_ALIGNMENT_NORM = norm_of(DEPENDENCY_ALIGNMENT)
DEPENDENCY_BASELINE = Measure(
    "dependency_baseline",
    title="Share of related pairs",
    meaning="Share of the pairs that are related.",
    formula="Σ dep(i, j) / pairs that count",
    reference="Vig & Belinkov 2019, Fig. 8",
    axes={"form": "Form"},
)
DEPENDENCY_BASELINE_WITHOUT_SELF = Measure(
    "dependency_baseline_without_self",
    title="Share of related pairs of two different tokens",
    meaning="Share of the pairs of two different tokens that are related.",
    formula="Σ dep(i, j) / pairs that count and have i ≠ j",
    reference="Vig & Belinkov 2019, Fig. 8, the other reading of it",
    axes={"form": "Form"},
)
DEPENDENCY_PROBABILITY = Measure(
    "dependency_probability",
    title="Probability of a dependency",
    meaning="Share of the token pairs at a separation that are related.",
    formula="related pairs at the separation / pairs at the separation",
    reference="Vig & Belinkov 2019, text on Fig. 8",
    axes={"separation": "Separation"},
)
DEPENDENCY_WITHIN = Measure(
    "dependency_within",
    title="Dependencies within a separation",
    meaning="Share of the related pairs that are at most this far apart.",
    formula="arcs up to the separation / arcs",
    reference="Vig & Belinkov 2019, text on Fig. 8",
    axes={"separation": "Separation"},
)
MEAN_DEPENDENCY_SPAN = Measure(
    "mean_dependency_span",
    title="Mean span of a dependency",
    meaning="How many tokens apart related tokens are.",
    formula="Σ |i − j| of related pairs / related pairs",
    reference="Vig & Belinkov 2019, text on Fig. 8",
    unit="tokens",
)
DEPENDENCY_EXPECTED = Measure(
    "dependency_expected",
    title="Dependency alignment expected from distance",
    meaning="The alignment of a head that looks as far as this one, whatever the words are.",
    formula="the one of dependency_alignment with Σ_k a[i, k]·s(i − j) / Σ_k s(i − k) for a[i, j]; "
    "s(o): weight of the head at offset o / that of even attention, input by input; offsets beyond "
    "64 count as one",
    reference="Vig & Belinkov 2019, text on Figs. 8 and 11: relations become rare with distance",
    more="would follow more arcs by its distances alone",
    axes={"form": "Form"},
)
SPANS = (DEPENDENCY_PROBABILITY, DEPENDENCY_WITHIN, MEAN_DEPENDENCY_SPAN)


def alignment_terms(layer: Layer) -> Terms:
    """Σ a[i,j]·dep(i,j) in the three forms, and Σ a[i,j]."""
    return _with_either(layer.on_arcs), layer.total[..., None]


def baseline_terms(batch: AnnotatedBatch, with_self: bool) -> TextTerms:
    """The terms of `alignment_terms` with every weight 1 over the same pairs."""
    pairs = pairs_of_queries(batch).sum(1, keepdim=True)
    if not with_self:
        pairs = pairs - batch.content.sum(1, keepdim=True)
    return _with_either(count_related(batch)), pairs


def dependency_alignment(grid: Grid) -> Ratio:
    """Share of attention between related tokens, by who is the parent."""
    return Ratio(DEPENDENCY_ALIGNMENT, grid, alignment_terms, FORM)


def dependency_baseline() -> TextRatio:
    """Share of the pairs that are related."""
    return TextRatio(DEPENDENCY_BASELINE, partial(baseline_terms, with_self=True), FORM)


def dependency_baseline_without_self() -> TextRatio:
    """Share of the pairs of two different tokens that are related."""
    terms = partial(baseline_terms, with_self=False)
    return TextRatio(DEPENDENCY_BASELINE_WITHOUT_SELF, terms, FORM)


def dependency_expected(grid: Grid, longest: int = APART) -> Ratio:
    """Share of attention between related tokens of a head that knows offsets alone."""
    terms = partial(expected_terms, longest=longest)
    return Ratio(DEPENDENCY_EXPECTED, grid, terms, FORM, has_even=False)


def expected_terms(layer: Layer, longest: int) -> Terms:
    """The terms of `alignment_terms` with the weight of every row spread anew, by offsets alone.

    p[i, j] = rows[i]·s(i − j) / Σ_k s(i − k), where s(o) is the head's weight at the offset in this
    input beside that of even attention. Of a head that is even, or that looks at one offset only,
    p is its own attention.
    """
    batch = layer.batch
    even = even_layer(batch).by_offset(longest)
    strength = _ratio(layer.by_offset(longest), even)  # batch head bin
    seen = batch.once(f"keys by offset {longest}", partial(keys_by_offset, batch, longest))
    per_strength = _ratio(layer.rows, strength @ seen.mT)  # batch head query
    directed = []
    for pairs in related_pairs(batch):
        row, query, key = pairs.unbind(-1)
        offset_bin = place_of(query - key, longest, batch.is_causal)
        weights = per_strength[row, :, query] * strength[row, :, offset_bin]
        directed.append(sum_by_text(weights.T, row, len(batch.rows)).float())
    return _with_either(torch.stack(directed, dim=-1)), layer.total[..., None]


def _ratio(numerator: Tensor, denominator: Tensor) -> Tensor:
    return torch.where(denominator > 0, numerator / denominator, 0)


def _with_either(directed: Float[Tensor, "*any two"]) -> Float[Tensor, "*any form"]:
    return torch.cat([directed, directed.sum(-1, keepdim=True)], dim=-1)


@dataclass(frozen=True)
class DependencySpan(Metric):
    """Fraction of token pairs at each separation that are related, and the spans of those.

    A pair of tokens is counted once, whichever of the two is the query.
    """

    name: str = "dependency_span"
    measures: tuple[Measure, ...] = SPANS

    def zero(self) -> Sums:
        return {
            "pairs": group_zeros(LONGEST + 1),
            "related": group_zeros(LONGEST + 1),
            "arcs": group_zeros(),
            "span": group_zeros(),
        }

    def see_text(self, sums: Sums, batch: AnnotatedBatch) -> None:
        add_by_group(sums["pairs"], count_by_separation(batch, LONGEST), batch.groups)
        arcs = torch.cat(related_pairs(batch))
        arcs = each_once(arcs[arcs[:, 1] > arcs[:, 2]], batch.mask.shape[1])
        group, separation = batch.groups[arcs[:, 0]], arcs[:, 1] - arcs[:, 2]
        sums["arcs"] += torch.bincount(group, minlength=GROUPS)
        sums["span"] += torch.bincount(group, separation.double(), minlength=GROUPS)
        cells = (group * (LONGEST + 1) + separation)[separation <= LONGEST]
        related = torch.bincount(cells, minlength=sums["related"].numel())
        sums["related"] += related.view_as(sums["related"])

    def compute(self, sums: Sums) -> Variables:
        """P(dependency | separation), share of arcs within, mean span, with errors and sums."""
        axis = Axis("separation", range(1, LONGEST + 1))
        pairs = label(sums["pairs"][:, 1:], GROUP, axis)
        related = label(sums["related"][:, 1:], GROUP, axis)
        within = label(sums["related"][:, 1:].cumsum(1), GROUP, axis)
        arcs, span = label(sums["arcs"], GROUP), label(sums["span"], GROUP)
        return {
            **ratio_variables("dependency_probability", related, pairs),
            **ratio_variables("dependency_within", within, arcs),
            **ratio_variables("mean_dependency_span", span, arcs),
        }
