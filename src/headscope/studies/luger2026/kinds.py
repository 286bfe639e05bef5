"""Kinds of heads: what a head does if the whole interval of a measure lies above a threshold.

```
threshold             |
L4H2              |---+---|    unclear
L5H5              |       |--|     yes
L3H1    |--|      |                no
```
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import xarray as xr
from jaxtyping import Bool

from headscope.metrics.surface import SINK_THRESHOLD
from headscope.results.held_out import sums_at
from headscope.results.measure import Measure, RoleGroup
from headscope.results.replicates import informed, share_interval

OTHER = "other"
MOSTLY = 0.5
CLEARLY = 0.3


@dataclass(frozen=True)
class Kind:
    """A kind of head: the measure that tells it, what its value must exceed, and its group."""

    name: str
    variable: str
    threshold: float
    group: RoleGroup

    def judge(self, result: xr.Dataset) -> "Judged":
        """Which heads are of the kind, and of which it is unclear."""
        sums = sums_at(result, self.variable)
        groups, weight = informed(sums.denominator), sums.denominator.sum(0)
        value, error = (result[f"{self.variable}{end}"].values for end in ("", "_se"))
        low, high = share_interval(value, error, groups, weight)
        is_above = low > self.threshold
        return Judged(is_above, (high >= self.threshold) & ~is_above)


@dataclass(frozen=True)
class Judged:
    """The answer for every head; neither: it is not of the kind."""

    yes: Bool[np.ndarray, "layer head"]
    unclear: Bool[np.ndarray, "layer head"]


# Of several kinds the last is the head's behaviour: what tells more about it comes later.
KINDS = (
    Kind("first token", "first_share", SINK_THRESHOLD, "sink"),
    Kind("delimiters", "delimiter_share", CLEARLY, "marks"),
    Kind("itself", "self_share", MOSTLY, "position"),
    Kind("next token", "next_share", MOSTLY, "position"),
    Kind("previous token", "previous_share", MOSTLY, "position"),
    Kind("duplicate token", "duplicate_token_score", CLEARLY, "repetition"),
    Kind("successor", "successor", MOSTLY, "token"),
    Kind("retrieval", "retrieval", CLEARLY, "repetition"),
    Kind("induction", "induction_score", CLEARLY, "repetition"),
)
THRESHOLDS = {kind.variable: kind.threshold for kind in KINDS}
BEHAVIOUR = Measure(
    "behaviour",
    title="Behaviour",
    meaning="A name for what the head clearly does.",
    formula="; ".join(f"{kind.name}: {kind.variable} > {kind.threshold}" for kind in KINDS)
    + "; by the whole interval of 95 %; of several the last; else other",
    reference="the measures' own; thresholds of Clark et al. 2019 and Gu et al. 2024",
    unit="",
    with_errors=False,
    groups={**{kind.name: kind.group for kind in KINDS}, OTHER: "unnamed"},
)


def known_kinds(result: xr.Dataset) -> Iterator[Kind]:
    """The kinds that the result can tell."""
    return (kind for kind in KINDS if kind.variable in result)


def behaviour(result: xr.Dataset) -> xr.DataArray:
    """The last kind of every head."""
    like = result["first_share"].transpose("layer", "head")
    labels = np.full(like.shape, OTHER, dtype="<U16")
    for kind in known_kinds(result):
        labels[kind.judge(result).yes] = kind.name
    return like.copy(data=labels)
