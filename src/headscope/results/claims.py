"""Claims of a paper, each judged on a result.

A claim is a function that reads measures and returns a statistic with words about it. Its decorator
has the sentence, what the paper reports, and the threshold; its docstring is the rule.

```python
@claim("More than half of the attention goes to the null token.", "0.57", above=0.5, of=SHARE)
def null_token(data: Replicates) -> Evidence:
    \"\"\"Mean null share of the heads.\"\"\"
    return Evidence(data["null_share"].mean(("layer", "head")))
```

The statistic is computed with every group of documents left out in turn, which gives its interval;
yes, no and unclear follow from the interval and nothing else. What a model, a corpus or too short a
training cannot show is not measured.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np
import xarray as xr

from headscope.results.intervals import (
    ANY,
    ONE_GROUP,
    Interval,
    Quantity,
    find_interval,
    write_interval,
)
from headscope.results.ranks import layers_between
from headscope.results.replicates import groups_of, measure_behind, replicates_of, sums_of

Verdict = Literal["yes", "no", "unclear", "not measured", "for comparison"]
Values = TypeVar("Values", xr.DataArray, xr.Variable)


class NotMeasured(Exception):  # noqa: N818  no error: it is an answer
    """Raised by a claim that a result cannot judge; the text says why."""


class Replicates:
    """The measures of a result along `replicate`: 0 is everything, g + 1 all but group g.

    A claim that reads what the result lacks is not measured. What it reads is remembered: the
    groups of documents with data for it are those that the interval of the claim rests on.
    """

    def __init__(self, result: xr.Dataset) -> None:
        self.result = result
        self._with_sums = frozenset(sums_of(result))
        self._replicates: dict[str, xr.DataArray] = {}
        self._read: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return name in self.result or name in self._with_sums

    def __getitem__(self, name: str) -> xr.DataArray:
        """A variable; NAME and NAME_by_layer along `replicate` where the sums of NAME are known."""
        if name not in self:
            raise NotMeasured(f"the result has no {name}")
        self._read.add(measure_behind(name))
        if measure_behind(name) not in self._with_sums:
            return self.result[name]
        if name not in self._replicates:
            variable = replicates_of(self.result, name)
            coords = {dim: self.result[dim] for dim in variable.dims if dim in self.result.coords}
            self._replicates[name] = xr.DataArray(variable.values, coords, variable.dims)
        return self._replicates[name]

    def at(self, name: str, **labels: Any) -> xr.DataArray:
        """A variable at labels of some axes; a label that the result lacks is not measured."""
        values = self[name]
        for axis, label in labels.items():
            if label not in values[axis].values.tolist():
                raise NotMeasured(f"{name} has no {axis} {label}")
        return values.sel(labels)

    def with_sums(self, *names: str) -> xr.Dataset:
        """The result itself, which has the sums over groups of these measures."""
        for name in names:
            if name not in self:
                raise NotMeasured(f"the result has no {name}")
            if name not in self._with_sums:
                raise NotMeasured(f"the result has no sums of {name} by group of documents")
            self._read.add(name)
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
        """How many groups have data for what was read."""
        return groups_of(self.result, self._read)

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
    threshold: float | None  # None where nothing is judged
    side: Literal["above", "below"]


def claim(
    sentence: str,
    published: str,
    *,
    above: float | None = None,
    below: float | None = None,
    of: Quantity = ANY,
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
        return Claim(sentence, published, rule, measure, of, threshold, side)

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


def judge(claim: Claim, data: Replicates) -> JudgedClaim:
    """Judge a claim on a result; what the result lacks is stated, not guessed."""
    data.forget()
    try:
        evidence = claim.measure(data)
        estimate = find_interval(evidence.statistic, data.groups, claim.quantity)
        if not np.isfinite(estimate.value):
            raise NotMeasured("nothing to compute it from")
    except NotMeasured as reason:
        return _judged(claim, "not measured", str(reason), Interval(np.nan))
    verdict = _decide(estimate, claim.threshold, claim.side)
    parts = [write_interval(estimate, claim.quantity), evidence.words]
    if estimate.trouble and not np.isfinite(estimate.low) and verdict != "for comparison":
        parts.append(estimate.trouble)
    return _judged(claim, verdict, "; ".join(part for part in parts if part), estimate)


def _judged(claim: Claim, verdict: Verdict, words: str, estimate: Interval) -> JudgedClaim:
    ends = (estimate.value, estimate.low, estimate.high)
    value, low, high = (end if np.isfinite(end) else None for end in ends)
    return JudgedClaim(
        claim.sentence, claim.published, words, verdict, claim.rule, value, low, high,
        claim.threshold,
    )  # fmt: skip


def _decide(
    estimate: Interval, threshold: float | None, side: Literal["above", "below"]
) -> Verdict:
    if threshold is None:
        return "for comparison"
    if estimate.trouble == ONE_GROUP:
        return "not measured"
    if estimate.low > threshold:
        return "yes" if side == "above" else "no"
    if estimate.high < threshold:
        return "no" if side == "above" else "yes"
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
