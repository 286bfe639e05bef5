"""How much attention goes to null tokens (Vig & Belinkov 2019, Fig. 5).

Null is the first token of a causal model's input, the delimiters of a bidirectional one.
"""

from headscope.metrics.metric import Grid
from headscope.metrics.ratio import HeadRatio, Terms, TextRatio, TextTerms
from headscope.observe.batch import AnnotatedBatch, pairs_of_queries
from headscope.observe.layer import Layer
from headscope.results.measure import Baseline, Measure, Published, Role

NULL_SHARE = Measure(
    "null_share",
    title="Null attention",
    meaning="Share of attention to the first token or the delimiters.",
    formula="Σ a[i, null] / Σ a[i, j] over the queries i that are not null",
    reference="Vig & Belinkov 2019, Fig. 5",
    cost="n², one product with the null mask that other metrics share",
    more="puts more of its attention on null tokens",
    baselines=(Baseline("null_share_even", "even attention"),),
    role=Role("null", "the first token or the delimiters", of="attention"),
    published=(
        Published("mean over heads; some exceed 0.97", "GPT-2 small, Vig & Belinkov 2019", 0.57),
    ),
)
NULL_SHARE_ALL_QUERIES = Measure(
    "null_share_all_queries",
    title="Null attention, all rows",
    meaning="Share of attention to the first token or the delimiters, over every query.",
    formula="Σ a[i, null] / Σ a[i, j] over all queries",
    reference="Vig & Belinkov 2019, Fig. 5, the other reading of it",
    cost="n², one sum of the weights",
    more="puts more of its attention on null tokens",
)

NULL_SHARE_EVEN = Measure(
    "null_share_even",
    title="Null attention of even attention",
    meaning="What null tokens receive from a head that spreads its attention evenly.",
    formula="the one of null_share with a := 1 over the same pairs",
    reference="Vig & Belinkov 2019, Fig. 8, its baseline applied to Fig. 5",
    cost="n, once for all heads",
)


def null_terms(layer: Layer) -> Terms:
    """Σ a[i, null] and Σ a[i, ·] over the queries that are not null themselves."""
    content = layer.batch.content[:, None]
    paid = layer.to_null.masked_fill(~content, 0.0).sum(-1)
    return paid[..., None], (paid + layer.total)[..., None]


def null_terms_of_all_queries(layer: Layer) -> Terms:
    """The same over every real query, the null tokens included."""
    return layer.to_null.sum(-1)[..., None], layer.everything.sum(-1)[..., None]


def even_terms(batch: AnnotatedBatch) -> TextTerms:
    """The terms of `null_terms` with every weight 1 over the same pairs."""
    null = (batch.null & batch.mask).double()
    seen = null.cumsum(1) if batch.is_causal else null.sum(1, keepdim=True)
    paid = (batch.content.double() * seen).sum(1, keepdim=True)
    return paid, paid + pairs_of_queries(batch).sum(1, keepdim=True)


def null_share(grid: Grid) -> HeadRatio:
    """Share of attention on null tokens, from the other tokens."""
    return HeadRatio(NULL_SHARE, grid, null_terms)


def null_share_of_all_queries(grid: Grid) -> HeadRatio:
    """Share of attention on null tokens, null queries included."""
    return HeadRatio(NULL_SHARE_ALL_QUERIES, grid, null_terms_of_all_queries)


def null_share_even() -> TextRatio:
    """Share of null tokens in attention that is the same everywhere."""
    return TextRatio(NULL_SHARE_EVEN, even_terms)
