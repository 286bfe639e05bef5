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
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Bool

from headscope.head import name_head
from headscope.metrics.where.surface import SINK_THRESHOLD
from headscope.results.findings import hold_out, names_where, sums_at, top_heads
from headscope.results.measure import Measure
from headscope.results.replicates import informed, share_interval
from headscope.results.statements import Tabulation

OTHER = "other"
MOSTLY = 0.5
CLEARLY = 0.3
MOST_NAMED = 12  # heads in a cell of the table


@dataclass(frozen=True)
class Kind:
    """A kind of head: the measure that tells it, and what its value must exceed."""

    name: str
    variable: str
    threshold: float

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
    Kind("first token", "first_share", SINK_THRESHOLD),
    Kind("delimiters", "delimiter_share", CLEARLY),
    Kind("itself", "self_share", MOSTLY),
    Kind("next token", "next_share", MOSTLY),
    Kind("previous token", "previous_share", MOSTLY),
    Kind("duplicate token", "duplicate_token_score", CLEARLY),
    Kind("successor", "successor", MOSTLY),
    Kind("retrieval", "retrieval", CLEARLY),
    Kind("induction", "induction_score", CLEARLY),
)
BEHAVIOUR = Measure(
    "behaviour",
    title="Behaviour",
    meaning="A name for what the head clearly does.",
    formula="; ".join(f"{kind.name}: {kind.variable} > {kind.threshold}" for kind in KINDS)
    + "; by the whole interval of 95 %; of several the last; else other",
    reference="the measures' own; thresholds of Clark et al. 2019 and Gu et al. 2024",
    unit="",
    range="names",
    cost="from the variables alone",
    with_errors=False,
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


def name_chosen(result: xr.Dataset, chosen: Bool[np.ndarray, "layer head"]) -> str:
    """Some heads by name."""
    names = names_where(result, chosen)
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


def kind_rows(result: xr.Dataset) -> list[dict[str, Any]]:
    """One row per kind: the rule, how many heads are of it, which, and the best one."""
    return [_row(result, kind) for kind in known_kinds(result)]


def _row(result: xr.Dataset, kind: Kind) -> dict[str, Any]:
    judged = kind.judge(result)
    layer, head, value = top_heads(result[kind.variable], 1)[0]
    return {
        "kind": kind.name,
        "rule": f"{kind.variable} > {kind.threshold}",
        "heads": int(judged.yes.sum()),
        "unclear": int(judged.unclear.sum()),
        "best": name_head(layer, head),
        "value": value,
        **hold_out(result, kind.variable).find().cells("held_out"),
        "which": name_chosen(result, judged.yes),
        "which_unclear": name_chosen(result, judged.unclear),
    }


TABLE = Tabulation(
    "kinds",
    "Kinds of heads",
    "A head is of a kind if the whole interval of the measure lies above the threshold, and "
    "unclear if the threshold is inside it. Held out: the best head, chosen on half of the "
    "documents and scored on the other, with its 95 % interval.",
    ("first_share",),
    kind_rows,
)
