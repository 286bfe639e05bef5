"""The answer: what each head looks at, in a sentence, from everything that a run measured.

A measure declares the role of heads with large values in it. The strength of a slice is its value
over chance, (value − baseline) / (1 − baseline), so that 0 is the baseline and 1 all there is. A
head has a role where

- each half of the document groups, taken alone, shows a strength above CLEAR, so that what was
  chosen on one half stands on the other,
- the whole interval of the strength lies above CLEAR, and
- the value differs from the baseline after correction for all heads and slices (q < SMALL_Q).

A broad head is one whose entropy is, by the whole interval, more than BROAD of that of even
attention.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float

from headscope.head import Head
from headscope.results.measure import (
    GRID,
    MARK,
    Baseline,
    Measure,
    Role,
    RoleKind,
    measure_names,
    measure_of,
    plain_label,
    signed_label,
)
from headscope.results.replicates import (
    aligned,
    are_counts,
    interval,
    p_of_interval,
    q_together,
    ratio_replicates,
    share_interval,
    standard_error,
)

CLEAR = 0.1  # strength that a role must exceed
BROAD = 0.9  # of the entropy of even attention
SMALL_Q = 0.05
MOST_IN_SENTENCE = 3
NOTHING = "no clear role"
NULL = "null_share"

Array = np.ndarray


@dataclass(frozen=True)
class HeadRole:
    """One thing that a head does, with the numbers that say so."""

    kind: RoleKind
    words: str
    spec: str  # the slice, NAME~LABEL
    value: float
    low: float
    high: float
    baseline: float
    against: str  # the baseline in words
    strength: float
    q: float | None  # None for broad heads, which are held against a threshold

    @property
    def sentence(self) -> str:
        """The role in words, with the value, half the width of its interval, and the baseline."""
        if self.kind == "spread":
            return f"{self.words}, {_with_margin(self)} of the entropy of {self.against}"
        if not self.against:
            return f"{self.words}, {_with_margin(self)}"
        colon = ":" if self.against[-1:].isdigit() else ""  # "offset +1: 0.72"
        return f"{self.words}, {_with_margin(self)} ({self.against}{colon} {self.baseline:.2f})"


@dataclass(frozen=True)
class HeadRoles:
    """What one head looks at: its roles, strongest first."""

    name: str
    layer: int
    head: int
    roles: tuple[HeadRole, ...]
    share: float | None  # of its attention that the roles account for, at the least
    sentence: str


def describe_heads(result: xr.Dataset) -> tuple[HeadRoles, ...]:
    """A sentence for every head; nothing where no measure of the result tells a role."""
    scored = list(_scored(result))
    if not scored:
        return ()
    q = q_together([one.p for one in scored])  # all heads, measures and slices together
    scored = [replace(one, q=each) for one, each in zip(scored, q, strict=True)]
    return tuple(
        _describe(Head(int(layer), int(head)), i, j, scored, result)
        for i, layer in enumerate(result["layer"].values)
        for j, head in enumerate(result["head"].values)
    )


@dataclass(frozen=True)
class _Strength:
    """Values of slices at every head, and how far they are above their baselines."""

    value: Float[Array, "layer head item"]
    low: Float[Array, "layer head item"]
    high: Float[Array, "layer head item"]
    baseline: Float[Array, "layer head item"]
    strength: Float[Array, "layer head item"]
    least: Float[Array, "layer head item"]  # lower end of the strength's interval
    distance: tuple[Array, Array]  # interval of value − baseline


@dataclass(frozen=True)
class _Scored:
    """One measure's slices at every head: their strengths, and who passes."""

    measure: Measure
    role: Role
    labels: tuple[Mapping[str, str], ...]  # of each item, by dimension
    found: _Strength
    against: tuple[str, ...]  # the baseline of each item in words
    passes: Bool[Array, "layer head item"]  # all but the correction
    p: Float[Array, "layer head item"]
    q: Float[Array, "layer head item"]


def _scored(result: xr.Dataset) -> Iterator[_Scored]:
    for name in measure_names(result):
        measure = measure_of(result, name)
        if measure.role is not None and f"{name}_numerator" in result:
            against = _baseline(result, measure) or _no_baseline(result, measure)
            if against is not None:
                yield _score(result, measure, measure.role, against)


@dataclass(frozen=True)
class _Sums:
    """A measure or its baseline as sums over groups, in the order of the measure's items.

    Layer and head have length one where a baseline is the same for all heads.
    """

    numerator: Float[Array, "group layer head item"]
    denominator: Float[Array, "group layer head item"]
    means: tuple[str, ...] = ()  # a baseline in words

    def over(self, groups: slice) -> Float[Array, "replicate layer head item"]:
        """Over some groups, and again without each of them."""
        return ratio_replicates(self.numerator[groups], self.denominator[groups])


def _score(result: xr.Dataset, measure: Measure, role: Role, against: _Sums) -> _Scored:
    dims, labels = _items(result[measure.name])
    sums = _sums(result, measure.name, dims)
    strengths = _ratio_strengths if role.kind == "spread" else _share_strengths
    least = BROAD if role.kind == "spread" else CLEAR
    whole = strengths(sums, against, slice(None))
    halves = [strengths(sums, against, slice(half, None, 2)) for half in (0, 1)]
    own = np.array([not set(each.values()) & set(role.without) for each in labels])
    passes = own & (whole.least > least)
    for half in halves:
        passes &= half.strength > least
    groups = (sums.denominator > 0).sum(0)
    p = p_of_interval(whole.value - whole.baseline, *whole.distance, groups)
    p = np.where(own & (role.kind != "spread"), p, np.nan)
    return _Scored(
        measure, role, labels, whole, against.means, passes, p, np.full(p.shape, np.nan)
    )  # fmt: skip


def _share_strengths(own: _Sums, against: _Sums, groups: slice) -> _Strength:
    """Shares over chance, over some groups.

    The error of the strength is that of the distance to the baseline, which is measured on the same
    texts; the value has its own.
    """
    values, bases, y = own.over(groups), against.over(groups), own.denominator[groups]
    informed, weight = (y > 0).sum(0), y.sum(0)
    counted = are_counts(own.numerator, own.denominator)
    value, base = values[0], np.broadcast_to(bases[0], values[0].shape)
    error, apart = (standard_error(each, informed) for each in (values, values - bases))
    low, high = share_interval(value, error, informed, weight, counted=counted)
    ends = share_interval(value, apart, informed, weight, counted=counted)
    with np.errstate(all="ignore"):
        strength, least = ((each - base) / (1 - base) for each in (value, ends[0]))
    known = base < 1
    return _Strength(
        value, low, high, base, np.where(known, strength, np.nan),
        np.where(known, least, np.nan), (ends[0] - base, ends[1] - base),
    )  # fmt: skip


def _ratio_strengths(own: _Sums, against: _Sums, groups: slice) -> _Strength:
    """Values as parts of the baseline, over some groups."""
    informed = (own.denominator[groups] > 0).sum(0)
    with np.errstate(all="ignore"):
        parts = own.over(groups) / against.over(groups)
    low, high = interval(parts[0], standard_error(parts, informed), informed)
    return _Strength(parts[0], low, high, np.ones(parts[0].shape), parts[0], low, (low, high))


def _items(array: xr.DataArray) -> tuple[list[str], tuple[Mapping[str, str], ...]]:
    """The further dimensions, and the labels of every item."""
    dims = [str(dim) for dim in array.dims if dim not in GRID]
    labels = product(*([str(label) for label in array[dim].values] for dim in dims))
    return dims, tuple(dict(zip(dims, each, strict=True)) for each in labels)


def _sums(result: xr.Dataset, name: str, dims: Sequence[str]) -> _Sums:
    x, y = (result.variables[f"{name}_{part}"] for part in ("numerator", "denominator"))
    above, below = aligned(x.transpose("group", *GRID, *dims), y)
    below = np.broadcast_to(below, above.shape)
    return _Sums(above.reshape(*above.shape[:3], -1), below.reshape(*below.shape[:3], -1))


def _baseline(result: xr.Dataset, measure: Measure) -> _Sums | None:
    """What its role says, or the first of its baselines that the result has; None without any."""
    wanted = "" if measure.role is None else measure.role.beyond
    order = sorted(measure.baselines, key=lambda each: each.variable != wanted)
    found = (_against(result, measure, each) for each in order)
    return next((each for each in found if each is not None), None)


def _no_baseline(result: xr.Dataset, measure: Measure) -> _Sums | None:
    """Zero, where a role needs nothing to be held against."""
    if measure.role is None or measure.role.needs_baseline:
        return None
    items = len(_items(result[measure.name])[1])
    nothing = np.zeros((result.sizes["group"], 1, 1, items))
    return _Sums(nothing, nothing + 1, ("",) * items)


def _against(result: xr.Dataset, measure: Measure, baseline: Baseline) -> _Sums | None:
    name, groups = baseline.variable, result.sizes["group"]
    dims, labels = _items(result[measure.name])
    if name in result.attrs:
        value = xr.DataArray(float(result.attrs[name]))
    elif name in result:
        value = result[name]
    else:
        return None
    if f"{name}_numerator" in result:
        x, y = result[f"{name}_numerator"], result[f"{name}_denominator"]
    else:
        y = xr.DataArray(np.ones(groups), dims="group")
        x = value * y
    means = [baseline.means] * len(labels)
    if baseline.best_over is not None and baseline.best_over in value.dims:
        x, y, means = _best(value, x, y, baseline, labels)
    x, y = (_spread_out(each, result[measure.name], dims) for each in (x, y))
    return None if x is None or y is None else _Sums(x, y, tuple(means))


def _best(
    value: xr.DataArray,
    x: xr.DataArray,
    y: xr.DataArray,
    baseline: Baseline,
    labels: Sequence[Mapping[str, str]],
) -> tuple[xr.DataArray, xr.DataArray, list[str]]:
    """The sums of the best label of a dimension, such as the best offset, and its name."""
    over = baseline.best_over
    place: Any = value.fillna(-1).argmax(over)  # a dict only where several dimensions are given
    y = y.broadcast_like(x)
    names = value[over].values
    means = []
    for each in labels:
        at = {dim: _place(place[dim].values, label) for dim, label in each.items()
              if dim in place.dims}  # fmt: skip
        means.append(baseline.words(signed_label(names[int(place.isel(at))])))
    return x.isel({over: place}), y.isel({over: place}), means


def _place(values: Array, label: str) -> int:
    return [str(value) for value in values].index(label)


def _spread_out(
    sums: xr.DataArray, measure: xr.DataArray, dims: Sequence[str]
) -> Float[Array, "group layer head item"] | None:
    """The sums of a baseline for every item of the measure; None where they do not fit."""
    if set(map(str, sums.dims)) - {"group", *GRID, *dims}:
        return None
    sums = sums.reindex({dim: measure[dim] for dim in dims if dim in sums.dims})
    sizes = {dim: measure.sizes[dim] for dim in dims if dim not in sums.dims}
    sizes |= {dim: 1 for dim in GRID if dim not in sums.dims}
    whole = sums.expand_dims(sizes).transpose("group", *GRID, *dims)
    return np.nan_to_num(whole.values.reshape(*whole.shape[:3], -1))


def _describe(
    head: Head, i: int, j: int, scored: Sequence[_Scored], result: xr.Dataset
) -> HeadRoles:
    found = [
        (_role(one, i, j, item), one)
        for one in scored
        for item in np.flatnonzero(one.passes[i, j]).tolist()
        if one.role.kind == "spread" or (one.q[i, j, item] < SMALL_Q)
    ]
    found.sort(key=lambda each: (-each[0].strength, each[0].spec))
    found = list(_without_repeats(found))
    roles = tuple(role for role, _ in found)
    share, sentence = _share(found, i, j, result), _sentence(head, roles)
    return HeadRoles(str(head), *head, roles, share, sentence)


def _role(one: _Scored, i: int, j: int, item: int) -> HeadRole:
    q, names = float(one.q[i, j, item]), ("value", "low", "high", "baseline", "strength")
    return HeadRole(
        kind=one.role.kind,
        words=_words(one.role, one.labels[item]),
        spec=MARK.join((one.measure.name, *one.labels[item].values())),
        against=one.against[item],
        q=q if np.isfinite(q) else None,
        **{name: float(getattr(one.found, name)[i, j, item]) for name in names},
    )


def _words(role: Role, labels: Mapping[str, str]) -> str:
    whole = [role.names[label] for label in labels.values() if label in role.names]
    if len(whole) == 1 and len(labels) == 1:
        return whole[0]
    named = {dim: role.names.get(label, plain_label(label)) for dim, label in labels.items()}
    words = role.words
    for dim, name in named.items():
        words = words.replace(f"{{{dim}}}", name)
    return words


def _without_repeats(
    found: Sequence[tuple[HeadRole, _Scored]],
) -> Iterator[tuple[HeadRole, _Scored]]:
    """The same number under another name, such as [CLS] and the first token, is one role."""
    seen: set[tuple[str, float, float]] = set()
    for role, one in found:
        key = (role.kind, round(role.value, 6), round(role.low, 6))
        if key not in seen:
            seen.add(key)
            yield role, one


def _share(
    found: Sequence[tuple[HeadRole, _Scored]], i: int, j: int, result: xr.Dataset
) -> float | None:
    """How much of the head's attention the roles account for, at the least.

    The slices of one measure do not overlap, those of several may: the one with the most counts.
    Null tokens have no labels, so that null attention and that of the rest add up.
    """
    sums: dict[tuple[str, str], float] = {}
    for role, one in found:
        if one.role.of and role.kind != "spread":
            key = (one.role.of, one.measure.name)
            sums[key] = sums.get(key, 0.0) + role.value
    if not sums:
        return None
    null = float(result[NULL].values[i, j]) if NULL in result else 0.0
    whole = max((v for (of, name), v in sums.items() if of == "attention"), default=0.0)
    rest = max((v for (of, _), v in sums.items() if of == "rest"), default=0.0) * (1 - null)
    return min(1.0, max(whole, sums.get(("attention", NULL), 0.0) + rest))


def _sentence(head: Head, roles: Sequence[HeadRole]) -> str:
    if not roles:
        return f"{head}: {NOTHING}"
    shown = "; ".join(role.sentence for role in roles[:MOST_IN_SENTENCE])
    more = len(roles) - MOST_IN_SENTENCE
    return f"{head}: {shown}" + (f"; and {more} more" if more > 0 else "")


def _with_margin(role: HeadRole) -> str:
    """0.97 ± 0.01: half the width of the interval, never less than the last digit shown."""
    return f"{role.value:.2f} ± {max((role.high - role.low) / 2, 0.01):.2f}"
