"""Claims of a paper, each judged on a result.

A claim is a function that reads measures and returns a statistic with words about it. Its decorator
has the sentence, what the paper reports, and the threshold; its docstring is the rule.

```python
@claim("Half of the attention goes to full stops.", "0.57", above=0.5, of=SHARE)
def full_stops(data: Replicates) -> Evidence:
    \"\"\"Mean over heads of the share of full stops.\"\"\"
    return Evidence(data["full_stop_share"].mean(("layer", "head")))
```

The statistic is computed with every group of documents left out in turn, which gives its interval;
of ranks and counts, on draws of groups with replacement. Yes, no and unclear follow from the
interval, from the threshold, which is the least effect that matters, and from what networks of
random weights show of the same: what these show too was not learned. What a model, a corpus or too
short a training cannot show is not measured.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeVar

import numpy as np
import xarray as xr

from headscope.results.intervals import (
    ANY,
    Interval,
    Quantity,
    find_interval,
    resampled_interval,
    write_interval,
)
from headscope.results.ranks import layers_between
from headscope.results.replicates import (
    draw_groups,
    groups_of,
    measure_behind,
    replicates_of,
    sums_of,
)

Verdict = Literal["yes", "no", "unclear", "untrained too", "not measured", "for comparison"]
Values = TypeVar("Values", xr.DataArray, xr.Variable)


class NotMeasured(Exception):  # noqa: N818  no error: it is an answer
    """Raised by a claim that a result cannot judge; the text says why."""


class Replicates:
    """The measures of a result along `replicate`: 0 is everything, g + 1 all but group g.

    A claim that reads what the result lacks is not measured. What it reads is remembered: the
    groups of documents with data for it are those that the interval of the claim rests on.
    """

    def __init__(self, result: xr.Dataset, *, draws: bool = False) -> None:
        self.result = result
        self._counts = draw_groups(result) if draws else None
        self._with_sums = frozenset(sums_of(result))
        self._replicates: dict[str, xr.DataArray] = {}
        self._read: list[tuple[str, Mapping[str, Any]]] = []  # measures, and at which labels

    @cached_property
    def drawn(self) -> "Replicates":
        """The same measures, along draws of groups with replacement: for ranks and counts."""
        return Replicates(self.result, draws=True)

    def __contains__(self, name: str) -> bool:
        return name in self.result or name in self._with_sums

    def __getitem__(self, name: str) -> xr.DataArray:
        """A variable; NAME and NAME_by_layer along `replicate` where the sums of NAME are known."""
        return self.at(name)

    def _values(self, name: str) -> xr.DataArray:
        if name not in self:
            raise NotMeasured(f"the result has no {name}")
        if measure_behind(name) not in self._with_sums:
            return self.result[name]
        if name not in self._replicates:
            variable = replicates_of(self.result, name, self._counts)
            coords = {dim: self.result[dim] for dim in variable.dims if dim in self.result.coords}
            self._replicates[name] = xr.DataArray(variable.values, coords, variable.dims)
        return self._replicates[name]

    def at(self, name: str, **labels: Any) -> xr.DataArray:
        """A variable at labels of some axes; a label that the result lacks is not measured."""
        values = self._values(name)
        for axis, label in labels.items():
            if not np.isin(label, values[axis].values).all():
                raise NotMeasured(f"{name} has no {axis} {label}")
        self._read.append((measure_behind(name), labels))
        return values.sel(labels)

    def with_sums(self, *names: str) -> xr.Dataset:
        """The result itself, which has the sums over groups of these measures."""
        for name in names:
            if name not in self:
                raise NotMeasured(f"the result has no {name}")
            if name not in self._with_sums:
                raise NotMeasured(f"the result has no sums of {name} by group of documents")
            self._read.append((name, {}))
        return self.result

    @property
    def attrs(self) -> Mapping[str, Any]:
        """The attributes of the result."""
        return self.result.attrs

    @property
    def layers(self) -> list[int]:
        """The numbers of all layers."""
        return self.result["layer"].values.tolist()

    @property
    def groups(self) -> int:
        """How many groups have data for what was read, at its labels: the fewest of any measure."""
        counts = [
            groups_of(self.result, [name], labels)
            for name, labels in self._read
            if name in self._with_sums
        ]
        return min(counts, default=0)

    @property
    def names_read(self) -> set[str]:
        """The measures that were read."""
        return {name for name, _ in self._read}

    def forget(self) -> None:
        """Forget what was read, before another claim is judged."""
        self._read.clear()


@dataclass(frozen=True)
class Evidence:
    """A statistic, with and without each group of documents, and words about it."""

    statistic: xr.DataArray | xr.Variable
    words: str = ""


@dataclass(frozen=True)
class Claim:
    """A sentence of a paper and how it is judged; `side` is where of the threshold it holds."""

    sentence: str
    published: str  # what the paper reports
    rule: str
    measure: Callable[[Replicates], Evidence]
    quantity: Quantity
    threshold: float | None  # the least effect that matters; None where nothing is judged
    side: Literal["above", "below"]
    is_counted: bool = False  # a rank or a count, whose interval comes from draws of groups


def claim(
    sentence: str,
    published: str,
    *,
    above: float | None = None,
    below: float | None = None,
    of: Quantity = ANY,
    is_counted: bool = False,
) -> Callable[[Callable[[Replicates], Evidence]], Claim]:
    """Make a claim of a function that measures it; without a threshold nothing is judged."""

    def decorate(measure: Callable[[Replicates], Evidence]) -> Claim:
        threshold, side = (below, "below") if above is None else (above, "above")
        statistic = (measure.__doc__ or "").partition("\n\n")[0].strip().rstrip(".")
        statistic = " ".join(statistic.split())
        rule = f"{statistic}; no rule"
        if threshold is not None:
            limit = f"{100 * threshold:g} %" if of.in_percent else f"{threshold:g} {of.unit}"
            rule = f"{statistic}: {side} {limit.strip()}".replace("-", "−")
        return Claim(sentence, published, rule, measure, of, threshold, side, is_counted)

    return decorate


def claims_in(module: Mapping[str, object]) -> tuple[Claim, ...]:
    """All claims among the names of a module, `globals()`, in the order in which they stand."""
    claims: list[Claim] = []
    for value in module.values():
        for item in value if isinstance(value, tuple) else (value,):
            if isinstance(item, Claim):
                claims.append(item)
    return tuple(claims)


@dataclass(frozen=True)
class JudgedClaim:
    """A claim of the paper compared with the result by a stated rule.

    The verdict follows from the threshold and the 95 % interval, `low` to `high`; None where there
    is no such number.
    """

    claim: str
    published: str
    measured: str  # in words, with value and interval
    holds: Verdict
    rule: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    threshold: float | None = None
    untrained: float | None = None  # of networks of random weights, the one nearest to the claim


def judge(claim: Claim, data: Replicates, untrained: float | None = None) -> JudgedClaim:
    """Judge a claim on a result; what the result lacks is stated, not guessed.

    `untrained` is the statistic of the network of random weights that is nearest to the claim.
    """
    try:
        evidence, estimate = _measure(claim, data)
        if not np.isfinite(estimate.value):
            raise NotMeasured("these texts are too few, or lack what it takes")
    except NotMeasured as reason:
        return _judged(claim, "not measured", str(reason), Interval(np.nan))
    verdict = _decide(estimate, claim)
    parts = [write_interval(estimate, claim.quantity), evidence.words]
    if estimate.trouble and verdict != "for comparison":
        parts.append(estimate.trouble)
    if untrained is not None and verdict != "for comparison":
        parts.append(f"untrained {claim.quantity.write(untrained)} {claim.quantity.unit}".rstrip())
        is_beyond = estimate.low > untrained if claim.side == "above" else estimate.high < untrained
        if verdict == "yes" and not is_beyond:
            verdict = "untrained too"
    words = "; ".join(part for part in parts if part)
    return _judged(claim, verdict, words, estimate, untrained)


def measure_untrained(claim: Claim, networks: Sequence[Replicates]) -> float | None:
    """The statistic of the network of random weights that is nearest to what is claimed."""
    values: list[float] = []
    for data in networks:
        try:
            statistic = claim.measure(data).statistic
        except NotMeasured:
            continue
        value = float(np.atleast_1d(statistic.values)[0])
        if np.isfinite(value):
            values.append(value)
    if claim.threshold is None or not values:
        return None
    return max(values) if claim.side == "above" else min(values)


def _measure(claim: Claim, data: Replicates) -> tuple[Evidence, Interval]:
    read = data.drawn if claim.is_counted else data
    read.forget()
    evidence = claim.measure(read)
    if claim.is_counted and "replicate" in evidence.statistic.dims:
        return evidence, resampled_interval(evidence.statistic, read.groups)
    return evidence, find_interval(evidence.statistic, read.groups, claim.quantity)


def _judged(
    claim: Claim,
    verdict: Verdict,
    words: str,
    estimate: Interval,
    untrained: float | None = None,
) -> JudgedClaim:
    ends = (estimate.value, estimate.low, estimate.high)
    value, low, high = (end if np.isfinite(end) else None for end in ends)
    return JudgedClaim(
        claim.sentence, claim.published, words, verdict, claim.rule, value, low, high,
        claim.threshold, untrained,
    )  # fmt: skip


def _decide(estimate: Interval, claim: Claim) -> Verdict:
    if claim.threshold is None:
        return "for comparison"
    if not np.isfinite(estimate.low):
        return "not measured" if estimate.trouble else "unclear"
    if estimate.low > claim.threshold:
        return "yes" if claim.side == "above" else "no"
    if estimate.high < claim.threshold:
        return "no" if claim.side == "above" else "yes"
    return "unclear"


def on_all(values: Values) -> Values:
    """A measure on everything, of one that may also be known without each group."""
    return values.isel(replicate=0) if "replicate" in values.dims else values


def or_not_measured(values: xr.DataArray, reason: str) -> xr.DataArray:
    """The values; where they are not known on everything it is not measured, for that reason."""
    if not np.isfinite(on_all(values)):
        raise NotMeasured(reason)
    return values


def split_layers(
    layers: Sequence[int], first: float, last: float, few: str
) -> tuple[list[int], list[int]]:
    """Layers between two fractions of the depth, and all others, of which there must be some."""
    inside = layers_between(layers, first, last)
    rest = [layer for layer in layers if layer not in inside]
    if not rest:
        raise NotMeasured(few)
    return inside, rest
