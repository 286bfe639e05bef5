"""What papers say of heads in raw text, and how a result is judged by it."""

import xarray as xr

from headscope.head import name_head
from headscope.results.claims import (
    Evidence,
    NotMeasured,
    Replicates,
    claim,
    claims_in,
    on_all,
    or_not_measured,
)
from headscope.results.held_out import hold_out
from headscope.results.intervals import (
    CORRELATION,
    PERCENT,
    SHARE,
    SIGNED,
)
from headscope.results.ranks import nth_largest, top_heads
from headscope.studies.luger2026 import published
from headscope.studies.luger2026.kinds import CLEARLY, THRESHOLDS
from headscope.studies.option import NO_NEXT
from headscope.wording import counted

NO_VALUE = "none that we know of for such inputs"
TOGETHER = 0.5
CLEAR_SHARE = 0.02  # of attention
CLEAR_CORRELATION = 0.3  # of 64 heads with nothing in common 2 in 100 exceed it
NAMED = 4  # best heads in the words of a claim
SINK_SHARE = THRESHOLDS["first_share"]


@claim(
    "Some heads look mostly at the previous token.",
    "one of the two parts of induction (Elhage et al. 2021)",
    above=THRESHOLDS["previous_share"],
    of=SHARE,
)
def some_look_at_previous(data: Replicates) -> Evidence:
    """previous_share of the best head, chosen on other documents."""
    return _best_of_kind(data, "previous_share")


@claim(
    "Some heads look mostly at the next token.",
    f"{published.NEXT_HEADS} heads of BERT-base on other inputs (Clark et al. 2019)",
    above=THRESHOLDS["next_share"],
    of=SHARE,
)
def some_look_at_next(data: Replicates) -> Evidence:
    """next_share of the best head, chosen on other documents."""
    if "next_share" not in data:
        raise NotMeasured(NO_NEXT)
    return _best_of_kind(data, "next_share")


@claim(
    "Some heads continue what was said before: induction.",
    "in every model looked at of more than one layer (Olsson et al. 2022)",
    above=THRESHOLDS["induction_score"],
    of=SHARE,
)
def some_do_induction(data: Replicates) -> Evidence:
    """induction_score of the best head, chosen on other documents."""
    return _best_of_kind(data, "induction_score")


@claim("The best induction head does so in text, too.", NO_VALUE, above=CLEAR_SHARE, of=SIGNED)
def induction_in_text(data: Replicates) -> Evidence:
    """The induction in text of the head with the largest induction_score, less that of even
    attention."""
    layer, head, _ = top_heads(on_all(data["induction_score"]), 1)[0]
    in_text, even = data["induction"].sel(layer=layer, head=head), data["induction_even"]
    words = f"{float(on_all(in_text)):.3f}, even attention {float(on_all(even)):.3f}"
    return Evidence(in_text - even, f"{name_head(layer, head)}: {words}")


@claim(
    "Some heads copy from far: retrieval.",
    f"fewer than {100 * published.RETRIEVAL_SHARE:g} % of the heads, in four families of models "
    "(Wu et al. 2024)",
    above=THRESHOLDS["retrieval"],
    of=SHARE,
)
def some_retrieve(data: Replicates) -> Evidence:
    """retrieval of the best head, chosen on other documents."""
    return _best_of_kind(data, "retrieval")


@claim("Heads that copy from far are induction heads.", NO_VALUE, above=TOGETHER, of=CORRELATION)
def retrieval_is_induction(data: Replicates) -> Evidence:
    """Correlation of retrieval and induction_score over heads."""
    return Evidence(_correlation(data, "retrieval", "induction_score"))


@claim(
    "Some heads write the next number, weekday, month or letter.",
    "in models of 31 million to 12 billion parameters and more (Gould et al. 2023)",
    above=THRESHOLDS["successor"],
    of=SHARE,
)
def some_write_successors(data: Replicates) -> Evidence:
    """successor of the best head, chosen on other documents."""
    return _best_of_kind(data, "successor")


@claim(
    "Some heads look at line breaks and punctuation.",
    "BERT-base, full stops and commas in deep layers (Clark et al. 2019)",
    above=THRESHOLDS["delimiter_share"],
    of=SHARE,
)
def some_look_at_delimiters(data: Replicates) -> Evidence:
    """delimiter_share of the best head, chosen on other documents."""
    return _best_of_kind(data, "delimiter_share")


@claim(
    "Half of the heads rest on the first token.",
    "sinks in every trained language model looked at (Gu et al. 2024)",
    above=CLEARLY,
    of=SHARE,
)
def half_rest_on_first(data: Replicates) -> Evidence:
    """The median over heads of first_share, for a sink rate above one half."""
    values = data["first_share"]
    count = on_all(values).size
    sinks = int((on_all(values) > SINK_SHARE).sum())
    words = f"the median; {sinks} of {count} heads above {SINK_SHARE}"
    return Evidence(nth_largest(values, (count + 1) // 2), words)


@claim(
    f"Heads with more than {SINK_SHARE} of their attention on the first token (sink rate).",
    "defined by Gu et al. 2024",
    of=PERCENT,
)
def sink_rate(data: Replicates) -> Evidence:
    """Heads above it / all heads."""
    values = data["first_share"]
    rate = (values > SINK_SHARE).mean(("layer", "head"))
    return Evidence(rate.assign_attrs(weight=on_all(values).size, is_counted=True))


@claim(
    "Heads that look far look widely.",
    f"r = {published.DISTANCE_ENTROPY} for GPT-2 small, null tokens left out (Vig & Belinkov 2019)",
    above=CLEAR_CORRELATION,
    of=CORRELATION,
)
def far_is_wide(data: Replicates) -> Evidence:
    """Correlation of distance and entropy over heads."""
    return Evidence(_correlation(data, "distance", "entropy"))


def _best_of_kind(data: Replicates, name: str) -> Evidence:
    """The value of the head that is best on other documents, and which heads exceed it here."""
    values, threshold = on_all(data[name]), THRESHOLDS[name]
    count = int((values > threshold).sum())
    best = top_heads(values, min(max(count, 1), NAMED))
    listed = ", ".join(f"{name_head(layer, head)} {value:.2f}" for layer, head, value in best)
    more = f" and {count - len(best)} more" if count > len(best) else ""
    words = f"{counted(count, 'heads')} above {threshold}: {listed}{more}"
    replicates = hold_out(data.with_sums(name), name).replicates
    return Evidence(replicates, words if count else f"most in {listed}")


def _correlation(data: Replicates, left: str, right: str) -> xr.DataArray:
    r = xr.corr(data[left], data[right], ("layer", "head"))
    return or_not_measured(r, "there are too few heads, or all have one value")


CLAIMS = claims_in(globals())
