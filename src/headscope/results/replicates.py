"""Standard errors and intervals of any statistic, by leaving out one group of documents at a time.

Every numerator and denominator is kept for GROUPS groups of documents. A statistic is computed on
all of them, and again without each group in turn: these are its *replicates*, whose spread gives
the standard error (grouped jackknife). Whatever is correlated within documents, between layers or
between two runs over the same texts is correlated in the replicates too, so that nothing has to be
assumed of it.

Replicates lie along a first axis: place 0 is the statistic on everything, place g + 1 without
group g.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float, Int
from scipy import special

from headscope.results.measure import Baseline, measure_names, measure_of

GROUPS = 32  # fewer widen the intervals, more take memory
CONFIDENCE = 0.95
ROUNDING = 1e-12  # an error no larger than this is none
LEAST_EFFECT = 0.01  # in the measure's own unit: a smaller advance on a baseline is no find
FEWEST_GROUPS = 8  # with data for a statistic, below which nothing is said of its error
DRAWS = 400  # of groups with replacement, for ranks and counts

Array = np.ndarray


@dataclass(frozen=True)
class Estimate:
    """Values with their standard errors and intervals; NaN where nothing can be said."""

    value: Array
    error: Array
    low: Array
    high: Array


def group_of(document: str) -> int:
    """The group of a document; the same on every machine and in every run."""
    digest = blake2b(document.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") % GROUPS


def ratio_replicates(
    numerator: Float[Array, "group *item"],
    denominator: Float[Array, "group *part"],
    counts: Int[Array, "draw group"] | None = None,
) -> Float[Array, "replicate *item"]:
    """Σx / Σy over all groups, and over all but each one; NaN where nothing is left.

    With `counts` the further replicates are draws, in which every group counts that often.
    """
    if counts is None:
        x, y = _leave_out(numerator), _leave_out(denominator)
    else:
        times = np.concatenate([np.ones_like(counts[:1]), counts])
        x, y = (np.tensordot(times, sums, 1) for sums in (numerator, denominator))
    with np.errstate(all="ignore"):
        return np.where(y > 0, x / y, np.nan)


def draw_groups(result: xr.Dataset) -> Int[Array, "draw group"]:
    """How often every group that has data is drawn, in DRAWS draws with replacement."""
    has_data = _has_data(result, sums_of(result))
    share = has_data / max(has_data.sum(), 1)
    return np.random.default_rng(0).multinomial(int(has_data.sum()), share, DRAWS)


def _leave_out(sums: Float[Array, "group *item"]) -> Float[Array, "replicate *item"]:
    total = sums.sum(0, keepdims=True)
    rest = total - sums
    # What is left of a sum whose whole weight lies in one group is rounding, not weight.
    rest = np.where(np.abs(rest) <= ROUNDING * np.abs(total), 0.0, rest)
    return np.concatenate([total, rest])


def ratio_of(
    numerator: xr.DataArray, denominator: xr.DataArray
) -> tuple[xr.DataArray, xr.DataArray]:
    """Σx / Σy over the dimension `group`, and its standard error."""
    x, y = aligned(numerator, denominator)
    values = ratio_replicates(x, y)
    error = standard_error(values, informed(y))
    like = numerator.transpose("group", ...).isel(group=0, drop=True)
    return like.copy(deep=False, data=values[0]), like.copy(deep=False, data=error)


def aligned(
    numerator: xr.DataArray | xr.Variable, denominator: xr.DataArray | xr.Variable
) -> tuple[Float[Array, "group *item"], Float[Array, "group *part"]]:
    """The sums with the groups first; a dimension that the denominator lacks has length one."""
    x = numerator.transpose("group", ...)
    y = denominator.transpose(*(dim for dim in x.dims if dim in denominator.dims))
    return x.values, y.values.reshape([denominator.sizes.get(dim, 1) for dim in x.dims])


def informed(denominator: Float[Array, "group *part"]) -> Int[Array, "*part"]:
    """How many groups have anything to say."""
    return (denominator > 0).sum(0)


def are_counts(x: Array, y: Array) -> bool:
    """Whether numerators and denominators are all whole numbers."""
    return bool((x == np.round(x)).all() and (y == np.round(y)).all())


def standard_error(
    replicates: Float[Array, "replicate *item"], groups: Int[Array, "*item"] | int
) -> Float[Array, "*item"]:
    """√((k − 1)/k · Σ (R₋g − R̄)²) over the k groups that have data; NaN for fewer than two.

    A group without data leaves the statistic as it is and adds nothing but its place in the mean.
    Replicates that are not defined (a label found in one group only) make the error unknown.
    """
    k = np.asarray(groups, dtype=float)
    # Σ (d − d̄)² over the k informed groups: the others have d = 0.
    with np.errstate(all="ignore"):
        spread = replicates[1:] - replicates[:1]
        squares = (spread**2).sum(0) - spread.sum(0) ** 2 / k
        error = np.sqrt(np.maximum(squares, 0) * (k - 1) / k)
    return np.where(k >= 2, error, np.nan)


def quantile(groups: Int[Array, "*item"] | int, confidence: float = CONFIDENCE) -> Array:
    """How many standard errors an interval reaches to each side: Student's t with k − 1 degrees."""
    # Of very many heads and labels only a few numbers of groups differ.
    degrees, place = np.unique(
        np.maximum(np.asarray(groups, dtype=float) - 1, 1), return_inverse=True
    )
    # What stats.t.ppf calls, without its checks, which take longer than the work.
    return special.stdtrit(degrees, 0.5 + confidence / 2)[place].reshape(np.shape(groups))


def interval(
    value: Array,
    error: Array,
    groups: Int[Array, "*item"] | int,
    *,
    confidence: float = CONFIDENCE,
    least: float = -np.inf,
    most: float = np.inf,
) -> tuple[Array, Array]:
    """value ± t·error within the range of the statistic; NaN where the error says nothing."""
    reach = quantile(groups, confidence) * np.where(error > ROUNDING, error, np.nan)
    return np.maximum(value - reach, least), np.minimum(value + reach, most)


def share_interval(
    share: Array,
    error: Array,
    groups: Int[Array, "*item"] | int,
    weight: Array,
    *,
    counted: bool = False,
    confidence: float = CONFIDENCE,
) -> tuple[Array, Array]:
    """Wilson's score interval of a share of something, with as much weight as the error leaves.

    (p + q²/2n ± q √(p(1 − p)/n + q²/4n²)) / (1 + q²/n) with n = p(1 − p)/error², the count at which
    independent draws would have this error, and q the quantile. It never leaves 0 … 1 and never has
    width zero: without a usable error n is the `weight` itself, the denominator of the share. Of
    `counted` words n is never more than their number.
    """
    share, weight = np.asarray(share, dtype=float), np.asarray(weight, dtype=float)
    with np.errstate(all="ignore"):
        n = np.where(error > ROUNDING, share * (1 - share) / np.asarray(error) ** 2, weight)
    n = np.where(n > 0, n, weight)
    n = (np.minimum(n, weight) if counted else n).clip(1e-6, 1e12)  # else squares overflow
    q = np.where(np.isnan(error), quantile(10**6, confidence), quantile(groups, confidence))
    with np.errstate(all="ignore"):
        middle = share + q**2 / (2 * n)
        reach = q * np.sqrt(np.maximum(share * (1 - share), 0) / n + q**2 / (4 * n**2))
        low, high = (middle - reach) / (1 + q**2 / n), (middle + reach) / (1 + q**2 / n)
    known = np.isfinite(share) & (weight > 0)
    low, high = np.minimum(low, share), np.maximum(high, share)  # rounding alone crosses the value
    return np.where(known, low.clip(0, 1), np.nan), np.where(known, high.clip(0, 1), np.nan)


def difference_interval(
    first: Estimate, second: Estimate, correlation: Array | float = 0.0
) -> tuple[Array, Array]:
    """Interval of second − first from the intervals of both (Newcombe 1998; Zou & Donner 2008).

    The distances from each value to the ends of its own interval take the place of q·error, so that
    the difference of two shares keeps within −1 … 1 and has no width zero. `correlation` is that of
    the two statistics over the same groups, 0 for runs over different texts.
    """
    d = second.value - first.value
    down = _combine(second.value - second.low, first.high - first.value, correlation)
    up = _combine(second.high - second.value, first.value - first.low, correlation)
    return d - down, d + up


def _combine(left: Array, right: Array, correlation: Array | float) -> Array:
    squares = left**2 + right**2 - 2 * correlation * left * right
    # Wholly correlated statistics would leave no width; what the two ends differ by remains.
    return np.sqrt(np.maximum(squares, (left - right) ** 2))


def correlation(
    first: Float[Array, "replicate *item"], second: Float[Array, "replicate *item"]
) -> Float[Array, "*item"]:
    """Correlation of two statistics over the same groups; 0 where one of them does not vary."""
    a, b = first[1:] - first[1:].mean(0), second[1:] - second[1:].mean(0)
    with np.errstate(all="ignore"):
        r = (a * b).sum(0) / np.sqrt((a**2).sum(0) * (b**2).sum(0))
    return np.nan_to_num(np.clip(r, -1, 1))


def p_above(
    difference: Array, least: float, error: Array, groups: Int[Array, "*item"] | int
) -> Array:
    """One-sided p of differences that are to be larger than `least`, by Student's t."""
    degrees = np.maximum(np.asarray(groups, dtype=float) - 1, 1)
    with np.errstate(all="ignore"):
        t = (difference - least) / np.where(error > ROUNDING, error, np.nan)
    return _survival(t, degrees)


def p_of_interval(
    difference: Array,
    low: Array,
    high: Array,
    groups: Int[Array, "*item"] | Float[Array, "*item"] | int,
    confidence: float = CONFIDENCE,
) -> Array:
    """Two-sided p of differences from zero that agrees with their interval: it is smaller than
    1 − confidence where the interval leaves out zero. NaN where there is no interval.
    """
    degrees = np.maximum(np.asarray(groups, dtype=float) - 1, 1)
    with np.errstate(all="ignore"):
        reach = np.where(difference > 0, difference - low, high - difference)
        t = np.abs(difference) / reach * quantile(groups, confidence)
    return np.where(reach > 0, 2 * _survival(t, degrees), np.nan)


def _survival(t: Array, degrees: Array) -> Array:
    """How likely a larger t is; what stats.t.sf calls, without its checks."""
    return special.stdtr(degrees, -t)


def q_values(p: Array) -> Array:
    """Benjamini & Hochberg's adjusted p over everything that has one (1995)."""
    flat = p.ravel()
    known = np.flatnonzero(np.isfinite(flat))
    adjusted = np.full(flat.shape, np.nan)
    if known.size:
        adjusted[known] = _step_up(flat[known])
    return adjusted.reshape(p.shape)


def _step_up(p: Array) -> Array:
    """min over k ≥ rank of n p(k) / k, as scipy.stats has it, which takes half a second to import.

    Every p is at most 1, so is the last term, and so is every minimum.
    """
    order = np.argsort(p)
    steps = p[order] * (p.size / np.arange(1, p.size + 1))
    adjusted = np.empty(p.size)
    adjusted[order] = np.minimum.accumulate(steps[::-1])[::-1]
    return adjusted


def replicates_of(
    result: xr.Dataset, name: str, counts: Int[Array, "draw group"] | None = None
) -> xr.Variable:
    """One measure of a result along a new first dimension `replicate`, or NAME_by_layer.

    With `counts` (see `draw_groups`) the replicates are draws of groups.
    """
    measure = measure_behind(name)
    x, y = _sums(result, measure)
    if name != measure:
        y = y if "head" in y.dims else y.set_dims({"head": x.sizes["head"], **y.sizes})
        x, y = x.sum("head"), y.sum("head")
    return _replicate(x, y, counts)


def measure_behind(name: str) -> str:
    """The measure that a variable is, or is the pooled value of by layer."""
    return name.removesuffix("_by_layer")


def margin_of(result: xr.Dataset, name: str, suffix: str = "") -> xr.DataArray | None:
    """Half of the 95 % interval of a measure, of every head and label: what ± means everywhere.

    With `suffix` "_by_layer" of the values pooled over the heads of each layer. None for a measure
    without errors; NaN where an error is unknown or nothing: then no group changes the value.
    """
    if f"{name}{suffix}_se" not in result or f"{name}_denominator" not in result:
        return None
    value = result[name + suffix]
    dims = value.dims
    error = result.variables[f"{name}{suffix}_se"].transpose(*dims).values
    x, y = _sums(result, name)
    sizes = {dim: size for dim, size in x.sizes.items() if dim not in y.dims}
    y = y.set_dims({**sizes, **y.sizes})
    if "head" not in dims:
        y = y.sum("head")
    y = y.transpose("group", *dims)
    groups, weight = informed(y.values), y.values.sum(0)
    if measure_of(result, name).unit == "share":
        is_counted = are_counts(x.values, y.values)
        low, high = share_interval(value.values, error, groups, weight, counted=is_counted)
        is_known = np.isfinite(error) if is_counted else error > ROUNDING
    else:
        low, high = interval(value.values, error, groups)
        is_known = error > ROUNDING
    return value.copy(data=np.where(is_known, (high - low) / 2, np.nan))


def add_q_values(result: xr.Dataset) -> xr.Dataset:
    """NAME_q for every measure that has a baseline, where the result holds the sums of both.

    It is small where the value lies above its baseline by more than LEAST_EFFECT, by replicates of
    the difference for every head and label; p is adjusted over all heads and labels of the measure.
    NaN where nothing can be tested.
    """
    known = set(sums_of(result))
    found: dict[str, xr.Variable] = {}  # all have the coordinates of the result
    for name in known.intersection(measure_names(result)):
        usable = [each for each in measure_of(result, name).baselines if each.variable in known]
        if usable:
            found[f"{name}_q"] = _q_against(result, name, usable[0])
    return result.assign(dict(sorted(found.items())))


def _q_against(result: xr.Dataset, name: str, baseline: Baseline) -> xr.Variable:
    value, against = replicates_of(result, name), replicates_of(result, baseline.variable)
    if baseline.best_over is not None and baseline.best_over in against.dims:
        best: Any = against.isel(replicate=0).fillna(-np.inf).argmax(baseline.best_over)
        against = against.isel({baseline.best_over: best})  # a dict only for several dimensions
    difference = (value - against).transpose(*value.dims).values
    _, y = aligned(*_sums(result, name))
    groups = informed(y)
    p = p_above(difference[0], LEAST_EFFECT, standard_error(difference, groups), groups)
    return xr.Variable(value.dims[1:], q_values(p))


def sums_of(result: xr.Dataset) -> list[str]:
    """The measures whose sums over groups the result holds."""
    ends = "_numerator"
    return [str(name).removesuffix(ends) for name in result.data_vars if str(name).endswith(ends)]


def groups_of(
    result: xr.Dataset,
    names: Iterable[str] | None = None,
    labels: Mapping[str, Any] | None = None,
) -> int:
    """How many groups have any data of some measures, or of all: the degrees of freedom plus one.

    With `labels` of some axes only groups in which they occur count. Names without sums over groups
    are passed over.
    """
    measures = sums_of(result)
    chosen = measures if names is None else [name for name in measures if name in set(names)]
    return int(_has_data(result, chosen, labels or {}).sum()) if chosen else 0


def _has_data(
    result: xr.Dataset, names: Iterable[str], labels: Mapping[str, Any] | None = None
) -> Bool[Array, "group"]:
    has_data = np.zeros(result.sizes.get("group", 0), dtype=bool)
    for name in names:
        x, y = (result[f"{name}_{part}"] for part in ("numerator", "denominator"))
        at = {axis: label for axis, label in (labels or {}).items() if axis in x.dims}
        # The shares of all labels have one denominator: there a label occurs where it has a share.
        weight = x.sel(at) if set(at) - set(y.dims) else y.sel(at)
        values = weight.transpose("group", ...).values
        has_data |= (values > 0).reshape(len(values), -1).any(1)
    return has_data


def _sums(result: xr.Dataset, name: str) -> tuple[xr.Variable, xr.Variable]:
    return result.variables[f"{name}_numerator"], result.variables[f"{name}_denominator"]


def _replicate(
    numerator: xr.Variable, denominator: xr.Variable, counts: Int[Array, "draw group"] | None
) -> xr.Variable:
    dims = [dim for dim in numerator.dims if dim != "group"]
    replicates = ratio_replicates(*aligned(numerator, denominator), counts)
    return xr.Variable(("replicate", *dims), replicates)
