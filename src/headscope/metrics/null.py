"""How much attention goes to null tokens (Vig & Belinkov 2019, Fig. 5).

Null is the first token of a causal model's input, the delimiters of a bidirectional one.
"""

from headscope.metrics.head_ratio import HeadRatio, Terms
from headscope.metrics.metric import Grid
from headscope.observe.layer import ObservedLayer


def null_terms(layer: ObservedLayer) -> Terms:
    """Σ a[i, null] and Σ a[i, ·] over the queries that are not null themselves."""
    content = layer.batch.content[:, None]
    paid = layer.to_null.masked_fill(~content, 0.0).sum(-1)
    return paid[..., None], (paid + layer.total)[..., None]


def null_terms_of_all_queries(layer: ObservedLayer) -> Terms:
    """The same over every real query, the null tokens included."""
    return layer.to_null.sum(-1)[..., None], layer.everything.sum(-1)[..., None]


def null_share(grid: Grid) -> HeadRatio:
    """Share of attention on null tokens, from the other tokens.

    Variables: null_share, null_share_*
    Formula: Σ a[i, null] / Σ a[i, j] over the queries i that are not null
    Reference: Vig & Belinkov 2019, Fig. 5
    Range: 0 to 1
    Cost: n², one product with the null mask that other metrics share
    """
    return HeadRatio("null_share", grid, null_terms, description="attention to null tokens")


def null_share_of_all_queries(grid: Grid) -> HeadRatio:
    """Share of attention on null tokens, null queries included.

    Variables: null_share_all_queries, null_share_all_queries_*
    Formula: Σ a[i, null] / Σ a[i, j] over all queries
    Reference: Vig & Belinkov 2019, Fig. 5, the other reading of it
    Range: 0 to 1
    Cost: n², one sum of the weights
    """
    return HeadRatio("null_share_all_queries", grid, null_terms_of_all_queries)
