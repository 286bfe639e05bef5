"""How far and how widely heads look, and how much goes to null tokens (Vig & Belinkov 2019).

Null is the first token of a causal model's input, the delimiters of a bidirectional one. Distance
and entropy go together in the paper's model, and distance goes against alignment: the correlations
over heads are here too.
"""

import numpy as np
import xarray as xr
from scipy import stats

from headscope.metrics.metric import (
    EVEN,
    Axis,
    Grid,
    Ratio,
    Terms,
    Variables,
    label,
    norm_of,
)
from headscope.observe.layer import Layer
from headscope.results.measure import Baseline, Measure

FEWEST = 3  # with two heads every r is ±1

DISTANCE = Measure(
    "distance",
    title="Distance",
    meaning="Mean distance of attention in tokens.",
    formula="Σ a[i, j]·|i − j| / Σ a[i, j]",
    reference="Vig & Belinkov 2019, Eq. 6, Fig. 11",
    unit="tokens",
    more="looks further",
)
# Another study has another measure of this name; see `headscope.metrics.surface`.
ENTROPY = Measure(
    "entropy",
    title="Entropy",
    meaning="How widely a token's attention is spread, null tokens left out.",
    formula="mean over rows of −Σ p ln p with p = a / Σ a; rows with more than 0.9 on null tokens "
    "do not count",
    reference="Vig & Belinkov 2019, Eq. 7, Fig. 12",
    unit="nats",
    more="spreads its attention more widely",
)
NULL_SHARE = Measure(
    "null_share",
    title="Null attention",
    meaning="Share of attention to the first token or the delimiters.",
    formula="Σ a[i, null] / Σ a[i, j] over the queries i that are not null",
    reference="Vig & Belinkov 2019, Fig. 5",
    more="puts more of its attention on null tokens",
    baselines=(Baseline("null_share_even", EVEN),),
)
NULL_SHARE_ALL_QUERIES = Measure(
    "null_share_all_queries",
    title="Null attention, all rows",
    meaning="Share of attention to the first token or the delimiters, over every query.",
    formula="Σ a[i, null] / Σ a[i, j] over all queries",
    reference="Vig & Belinkov 2019, Fig. 5, the other reading of it",
    more="puts more of its attention on null tokens",
)
NULL_SHARE_NORM = norm_of(NULL_SHARE)
CORRELATION = Measure(
    "correlation",
    title="Correlation over heads",
    meaning="Whether two measures of a head go together.",
    formula="Pearson's r over all heads",
    reference="Vig & Belinkov 2019, text on Figs. 11 and 12",
    unit="",
    axes={"pair": "Pair"},
    with_errors=False,
)
CORRELATION_P = Measure(
    "correlation_p",
    title="Chance of such a correlation",
    meaning="Probability of an r at least this large if the two measures were unrelated.",
    formula="p of Pearson's r over all heads",
    reference="Vig & Belinkov 2019, text on Figs. 11 and 12",
    unit="",
    axes={"pair": "Pair"},
    with_errors=False,
)


def distance_terms(layer: Layer) -> Terms:
    """Σ a[i,j]·|i − j| in tokens and Σ a[i,j]; for a causal head |i − j| = i − j."""
    return layer.distance[..., None], layer.total[..., None]


def distance(grid: Grid) -> Ratio:
    """Mean distance of attention in tokens."""
    return Ratio(DISTANCE, grid, distance_terms, has_even=False)


def entropy_terms(layer: Layer) -> Terms:
    """Entropies of the rows that count, summed, and their number."""
    return layer.entropy_sum[..., None], layer.counted.sum(-1, keepdim=True).float()


def entropy(grid: Grid) -> Ratio:
    """Mean entropy of the rows, null weight dropped and the rest renormalised."""
    return Ratio(ENTROPY, grid, entropy_terms, has_even=False)


def null_terms(layer: Layer) -> Terms:
    """Σ a[i, null] and Σ a[i, ·] over the queries that are not null themselves."""
    content = layer.batch.content[:, None]
    paid = layer.to_null.masked_fill(~content, 0.0).sum(-1)
    return paid[..., None], (paid + layer.total)[..., None]


def null_terms_of_all_queries(layer: Layer) -> Terms:
    """The same over every real query, the null tokens included."""
    return layer.to_null.sum(-1)[..., None], layer.row_total.sum(-1)[..., None]


def null_share(grid: Grid) -> Ratio:
    """Share of attention on null tokens, from the other tokens."""
    return Ratio(NULL_SHARE, grid, null_terms)


def null_share_of_all_queries(grid: Grid) -> Ratio:
    """Share of attention on null tokens, null queries included."""
    return Ratio(NULL_SHARE_ALL_QUERIES, grid, null_terms_of_all_queries, has_even=False)


def correlation(left: np.ndarray, right: np.ndarray) -> tuple[float, float]:
    """Pearson's r and its p over the heads that have both values; NaN where it is undefined."""
    left, right = np.ravel(left), np.ravel(right)
    finite = np.isfinite(left) & np.isfinite(right)
    left, right = left[finite], right[finite]
    if len(left) < FEWEST or np.ptp(left) == 0 or np.ptp(right) == 0:
        return np.nan, np.nan
    r, p = stats.pearsonr(left, right)
    return float(r), float(p)  # pyright: ignore[reportArgumentType]


def correlations(pairs: dict[str, tuple[xr.DataArray, xr.DataArray]]) -> Variables:
    """`correlation(pair)` and `correlation_p(pair)` of the named pairs of variables."""
    r, p = np.full(len(pairs), np.nan), np.full(len(pairs), np.nan)
    for index, (left, right) in enumerate(pairs.values()):
        r[index], p[index] = correlation(left.values, right.values)
    axis = Axis("pair", tuple(pairs))
    return {"correlation": label(r, axis), "correlation_p": label(p, axis)}
