"""What is claimed of heads in raw text, and the rules that judge a result."""

from functools import partial

import xarray as xr

from headscope.head import name_head
from headscope.results.findings import (
    CORRELATION,
    PERCENT,
    SHARE,
    Finding,
    Found,
    NotMeasured,
    hold_out,
    known,
    nth_largest,
    top_heads,
    whole,
)
from headscope.studies.luger2026.kinds import CLEARLY, KINDS, Kind
from headscope.studies.reading import NO_NEXT
from headscope.wording import counted

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
