"""How far and how widely each head looks (Vig & Belinkov 2019, Figs. 11 and 12).

Distance and entropy go together in the paper's model, and distance goes against alignment: the
correlations over heads are here too.
"""

import numpy as np
import xarray as xr
from scipy import stats

from headscope.metrics.metric import Axis, Grid, Variables, label
from headscope.metrics.ratio import HeadRatio, Terms
from headscope.observe.layer import Layer
from headscope.results.measure import Measure, Published

VIG = "GPT-2 small, Vig & Belinkov 2019"
FEWEST = 3  # with two heads every r is ±1

DISTANCE = Measure(
    "distance",
    title="Distance",
    meaning="Mean distance of attention in tokens.",
    formula="Σ a[i, j]·|i − j| / Σ a[i, j]",
    reference="Vig & Belinkov 2019, Eq. 6, Fig. 11",
    unit="tokens",
    range="0 to the longest input, in tokens",
    cost="n², one product with the pair features that alignment shares",
    more="looks further",
    published=(Published("highest, in L5H1", VIG, 14.2),),
)
# clark2019 has another measure of this name; see `headscope.metrics.surface`.
ENTROPY = Measure(
    "entropy",
    title="Entropy",
    meaning="How widely a token's attention is spread, null tokens left out.",
    formula="mean over rows of −Σ p ln p with p = a / Σ a; rows with more than 0.9 on null tokens "
    "do not count",
    reference="Vig & Belinkov 2019, Eq. 7, Fig. 12",
    unit="nats",
    range="0 to ln n, in nats",
    cost="n² with a logarithm for every weight",
    more="spreads its attention more widely",
    published=(Published("of L5H1, the head with the longest distance", VIG, 0.41),),
)
CORRELATION = Measure(
    "correlation",
    title="Correlation over heads",
    meaning="Whether two measures of a head go together.",
    formula="Pearson's r over all heads",
    reference="Vig & Belinkov 2019, text on Figs. 11 and 12",
    unit="",
    range="−1 to 1",
    cost="from the variables alone",
    axes={"pair": "Pair"},
    published=(
        Published("distance and entropy", VIG, 0.61, {"pair": "distance~entropy"}),
        Published("distance and alignment", VIG, -0.73, {"pair": "distance~alignment"}),
    ),
    with_errors=False,
)
CORRELATION_P = Measure(
    "correlation_p",
    title="Chance of such a correlation",
    meaning="Probability of an r at least this large if the two measures were unrelated.",
    formula="p of Pearson's r over all heads",
    reference="Vig & Belinkov 2019, text on Figs. 11 and 12",
    unit="",
    cost="from the variables alone",
    axes={"pair": "Pair"},
    with_errors=False,
)


def distance_terms(layer: Layer) -> Terms:
    """Σ a[i,j]·|i − j| in tokens and Σ a[i,j]; for a causal head |i − j| = i − j."""
    return layer.distance[..., None], layer.total[..., None]


def distance(grid: Grid) -> HeadRatio:
    """Mean distance of attention in tokens."""
    return HeadRatio(DISTANCE, grid, distance_terms)


def entropy_terms(layer: Layer) -> Terms:
    """Entropies of the rows that count, summed, and their number."""
    return layer.nats[..., None], layer.counted.sum(-1, keepdim=True).float()


def entropy(grid: Grid) -> HeadRatio:
    """Mean entropy of the rows, null weight dropped and the rest renormalised."""
    return HeadRatio(ENTROPY, grid, entropy_terms)


def correlation(left: np.ndarray, right: np.ndarray) -> tuple[float, float]:
    """Pearson's r and its p over the heads that have both values; NaN where it is undefined."""
    left, right = np.ravel(left), np.ravel(right)
    known = np.isfinite(left) & np.isfinite(right)
    left, right = left[known], right[known]
    if len(left) < FEWEST or np.ptp(left) == 0 or np.ptp(right) == 0:
        return np.nan, np.nan
    r, p = stats.pearsonr(left, right)
    return float(r), float(p)  # pyright: ignore[reportArgumentType]


def correlations(pairs: dict[str, tuple[xr.DataArray, xr.DataArray]]) -> Variables:
    """`correlation(pair)` and `correlation_p(pair)` of the named pairs of variables."""
    found = np.array([correlation(a.values, b.values) for a, b in pairs.values()]).reshape(-1, 2)
    axis = Axis("pair", tuple(pairs))
    return {"correlation": label(found[:, 0], axis), "correlation_p": label(found[:, 1], axis)}
