"""Kinds of heads: what a head does if the whole interval of a measure lies above a threshold.

```
threshold             |
L4H2              |---+---|    unclear
L5H5              |       |--|     yes
L3H1    |--|      |                no
```

What is claimed of heads in raw text, and the rules that judge a result.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Bool

from headscope.head import name_head
from headscope.metrics.surface import SINK_THRESHOLD
from headscope.results.findings import (
    CORRELATION,
    PERCENT,
    SHARE,
    Finding,
    Found,
    NotMeasured,
    known,
    names_where,
    nth_largest,
    top_heads,
    whole,
)
from headscope.results.held_out import hold_out, sums_at
from headscope.results.measure import Measure
from headscope.results.replicates import informed, share_interval
from headscope.results.statements import Tabulation
from headscope.results.tables import HeadName
from headscope.studies.option import NO_NEXT
from headscope.wording import counted

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
    groups={
        "previous token": "position",
        "next token": "position",
        "itself": "position",
        "first token": "sink",
        "delimiters": "marks",
        "duplicate token": "repetition",
        "induction": "repetition",
        "retrieval": "repetition",
        "successor": "token",
        OTHER: "unnamed",
    },
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


def _row(result: xr.Dataset, kind: Kind) -> dict[str, Any]:
    """The rule of a kind, how many heads are of it, which, and the best one."""
    judged = kind.judge(result)
    layer, head, value = top_heads(result[kind.variable], 1)[0]
    return {
        "kind": kind.name,
        "rule": f"{kind.variable} > {kind.threshold}",
        "heads": int(judged.yes.sum()),
        "unclear": int(judged.unclear.sum()),
        "best": HeadName(name_head(layer, head)),
        "value": value,
        "held_out": hold_out(result, kind.variable).find().cell,
        "which": name_chosen(result, judged.yes),
        "which_unclear": name_chosen(result, judged.unclear),
    }


KINDS_TABLE = Tabulation(
    "kinds",
    "Kinds of heads",
    "A head is of a kind if the whole interval of the measure lies above the threshold, and "
    "unclear if the threshold is inside it. Held out: the best head, chosen on half of the "
    "documents and scored on the other, with its 95 % interval.",
    ("first_share",),
    lambda result: [_row(result, kind) for kind in known_kinds(result)],
)


NO_VALUE = "none that we know of for such inputs"
TOGETHER = 0.5
KIND = {kind.variable: kind for kind in KINDS}


def _best(data: xr.Dataset, variable: str) -> xr.DataArray:
    """The value of the head that is best on other documents."""
    if variable not in data:
        raise NotMeasured(NO_NEXT if variable == "next_share" else f"the result has no {variable}")
    return hold_out(data, variable).replicates


def _heads_above(data: xr.Dataset, found: Found, kind: Kind) -> str:
    values = whole(data[kind.variable])
    count = int((values > kind.threshold).sum())
    best = top_heads(values, min(max(count, 1), 4))
    named = ", ".join(f"{name_head(layer, head)} {value:.2f}" for layer, head, value in best)
    more = f" and {count - len(best)} more" if count > len(best) else ""
    if not count:
        return f"most in {named}"
    return f"{counted(count, 'heads')} above {kind.threshold}: {named}{more}"


def _of_kind(claim: str, published: str, variable: str) -> Finding:
    kind = KIND[variable]
    return Finding(
        claim,
        published,
        f"the {variable} of the best head, chosen on other documents, is above {kind.threshold}",
        () if variable == "next_share" else (variable,),
        partial(_best, variable=variable),
        threshold=kind.threshold,
        range=SHARE,
        words=partial(_heads_above, kind=kind),
    )


def _middle_head(data: xr.Dataset) -> xr.DataArray:
    """The first_share that half of the heads exceed."""
    values = data["first_share"]
    count = values.sizes["layer"] * values.sizes["head"]
    return nth_largest(values, (count + 1) // 2)


def _say_sinks(data: xr.Dataset, found: Found) -> str:
    values = whole(data["first_share"])
    above = int((values > KIND["first_share"].threshold).sum())
    return f"the median; {above} of {values.size} heads above {KIND['first_share'].threshold}"


def _sink_rate(data: xr.Dataset) -> xr.DataArray:
    """The share of heads above the threshold; each group of documents left out may move it."""
    values = data["first_share"]
    heads = values.sizes["layer"] * values.sizes["head"]
    rate = (values > KIND["first_share"].threshold).mean(("layer", "head"))
    return rate.assign_attrs(weight=heads, is_counted=True)


def _best_made(data: xr.Dataset) -> tuple[int, int]:
    layer, head, _ = top_heads(whole(data["induction_score"]), 1)[0]
    return layer, head


def _in_text(data: xr.Dataset) -> xr.DataArray:
    """Induction on text of the head that is best on made inputs − that of even attention."""
    layer, head = _best_made(data)
    return data["induction"].sel(layer=layer, head=head) - data["induction_even"]


def _say_in_text(data: xr.Dataset, found: Found) -> str:
    layer, head = _best_made(data)
    value = float(whole(data["induction"]).sel(layer=layer, head=head))
    even = float(whole(data["induction_even"]))
    return f"{name_head(layer, head)}: {value:.3f}, even attention {even:.3f}"


def _together(data: xr.Dataset, left: str, right: str) -> xr.DataArray:
    r = xr.corr(data[left], data[right], ("layer", "head"))
    return known(r, "there are too few heads, or all have one value")


FINDINGS = (
    _of_kind(
        "Some heads look mostly at the previous token.",
        "one of the two parts of induction (Elhage et al. 2021)",
        "previous_share",
    ),
    _of_kind(
        "Some heads look mostly at the next token.",
        "5 heads of BERT-base on other inputs (Clark et al. 2019)",
        "next_share",
    ),
    _of_kind(
        "Some heads continue what was said before: induction.",
        "in every model looked at of more than one layer (Olsson et al. 2022)",
        "induction_score",
    ),
    Finding(
        "The best of them does so in text, too.",
        NO_VALUE,
        "the induction in text of the head with the largest induction_score, less that of even "
        "attention, is above 0",
        ("induction", "induction_score", "induction_even"),
        _in_text,
        is_signed=True,
        words=_say_in_text,
    ),
    _of_kind(
        "Some heads copy from far: retrieval.",
        "fewer than 5 % of the heads, in four families of models (Wu et al. 2024)",
        "retrieval",
    ),
    Finding(
        "Heads that copy from far are induction heads.",
        NO_VALUE,
        "correlation over heads of retrieval and induction_score above 0.5",
        ("retrieval", "induction_score"),
        partial(_together, left="retrieval", right="induction_score"),
        threshold=TOGETHER,
        range=CORRELATION,
    ),
    _of_kind(
        "Some heads write the next number, weekday, month or letter.",
        "in models of 31 million to 12 billion parameters and more (Gould et al. 2023)",
        "successor",
    ),
    _of_kind(
        "Some heads look at line breaks and punctuation.",
        "BERT-base, full stops and commas in deep layers (Clark et al. 2019)",
        "delimiter_share",
    ),
    Finding(
        "Half of the heads rest on the first token.",
        "sinks in every trained language model looked at (Gu et al. 2024)",
        "the median over heads of first_share is above 0.3: a sink rate above one half",
        ("first_share",),
        _middle_head,
        threshold=CLEARLY,
        range=SHARE,
        words=_say_sinks,
    ),
    Finding(
        "Heads with more than 0.3 of their attention on the first token (sink rate).",
        "defined by Gu et al. 2024",
        "no rule",
        ("first_share",),
        _sink_rate,
        threshold=None,
        unit=PERCENT,
        range=SHARE,
    ),
    Finding(
        "Heads that look far look widely.",
        "r = 0.61 for GPT-2 small, null tokens left out (Vig & Belinkov 2019)",
        "correlation over heads of distance and entropy above 0",
        ("distance", "entropy"),
        partial(_together, left="distance", right="entropy"),
        range=CORRELATION,
        is_signed=True,
    ),
)
