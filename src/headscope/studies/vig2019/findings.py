"""What the paper found in GPT-2 small, and the rule by which a result is held against it.

Where a head is picked by the measure that it is judged by, it is picked on half of the documents
and judged on the other. Where it is picked by one measure and judged by another (the best aligned
head by its distance), the choice does not flatter it, and it is picked on everything.

What a head knows of syntax beyond looking near: alignment less what its distances give.
"""

import math
from operator import itemgetter
from typing import Any

import numpy as np
import xarray as xr

from headscope.head import name_head
from headscope.results.findings import (
    CORRELATION,
    DIFFERENCE,
    Finding,
    Found,
    NotMeasured,
    find_interval,
    known,
    layers_between,
    lead,
    nth_largest,
    percent,
    top_heads,
    whole,
)
from headscope.results.held_out import HeldOut, hold_out
from headscope.results.replicates import groups_of, replicated
from headscope.results.statements import Tabulation
from headscope.results.tables import HeadName
from headscope.studies.vig2019 import specialised
from headscope.studies.vig2019.specialised import ONE_LAYER

LITTLE = 0.05  # share of heads that counts as "the least variable"
NEAR_ONE = 0.5  # tokens: how far from 1 the mean distance of a head to the previous token may be
QUARTER = 1 / 4
FEWEST_HEADS = 3  # of which a correlation says anything
ONE_HEAD = "the model has too few heads to compare"


def _lead(by_layer: xr.DataArray, first: float, last: float) -> xr.DataArray:
    return known(lead(by_layer, layers_between(by_layer, first, last)), ONE_LAYER)


def _aligned_layer_is_short(data: xr.Dataset) -> xr.DataArray:
    best, distance = _best_layer(_by_layer(data)), data["distance_by_layer"]
    limit = math.ceil(QUARTER * distance.sizes["layer"])
    return _rank_gap(distance, {"layer": best}, limit, ONE_LAYER)


def _rank_aligned_layer(data: xr.Dataset, found: Found) -> str:
    best, distance = _best_layer(_by_layer(data)), whole(data["distance_by_layer"])
    rank = int((distance < distance.sel(layer=best)).sum()) + 1
    return f"best aligned layer {best}: rank {rank} of {distance.size}, shortest first"


def _distance_of_aligned(data: xr.Dataset, found: Found) -> str:
    place = _best_aligned(data)
    return f"{name_head(**place)}: distance {float(whole(data['distance']).sel(place)):.2f}"


def _aligned_is_steady(data: xr.Dataset) -> xr.DataArray:
    limit = math.ceil(LITTLE * whole(data["variability"]).size)
    return _rank_gap(data["variability"], _best_aligned(data), limit, ONE_HEAD)


def _rank_aligned(data: xr.Dataset, found: Found) -> str:
    place, variability = _best_aligned(data), whole(data["variability"])
    own = float(variability.sel(place))
    rank = int((variability < own).sum()) + 1
    aligned = float(whole(_either(data)).sel(place))
    return (
        f"{name_head(**place)}: alignment {aligned:.2f}, variability {own:.3f} "
        f"(rank {rank} of {variability.size}, lowest first)"
    )


def _rank_gap(values: xr.DataArray, place: dict[str, int], limit: int, few: str) -> xr.DataArray:
    """Positive exactly if the value at a place is among the `limit` lowest.

    It is if fewer than `limit` others are lower: if the limit-th lowest of the others is higher.
    """
    here = values.sel(place)
    is_here = xr.zeros_like(whole(values), dtype=bool)
    is_here.loc[place] = True
    others = values.where(~is_here)
    return known(-nth_largest(-others, limit) - here, few)


def _longest_entropy(data: xr.Dataset) -> xr.DataArray:
    entropy = data["entropy"]
    if whole(entropy).size < 2:
        raise NotMeasured(ONE_HEAD)
    layer, head, _ = top_heads(whole(data["distance"]), 1)[0]
    return entropy.sel(layer=layer, head=head) - entropy.mean(("layer", "head"))


def _name_longest(data: xr.Dataset, found: Found) -> str:
    layer, head, far = top_heads(whole(data["distance"]), 1)[0]
    own = float(whole(data["entropy"]).sel(layer=layer, head=head))
    mean = float(whole(data["entropy"]).mean())
    return f"{name_head(layer, head)}: distance {far:.1f}, entropy {own:.2f} (mean {mean:.2f})"


def _correlation(first: xr.DataArray, second: xr.DataArray) -> xr.DataArray:
    if whole(first).size < FEWEST_HEADS:
        raise NotMeasured(ONE_HEAD)
    return xr.corr(first, second, ("layer", "head"))


def _rarer(data: xr.Dataset) -> xr.DataArray:
    near, middle, far = (data["dependency_probability"].sel(separation=d) for d in (1, 5, 10))
    return xr.where(near - middle < middle - far, near - middle, middle - far)


def _probabilities(data: xr.Dataset, found: Found) -> str:
    probability = whole(data["dependency_probability"])
    shares = ", ".join(f"{float(probability.sel(separation=d)):.2f}" for d in (1, 5, 10))
    return f"the smaller step; {shares}"


def _either(data: xr.Dataset) -> xr.DataArray:
    return data["dependency_alignment"].sel(form="either")


def _by_layer(data: xr.Dataset) -> xr.DataArray:
    return data["dependency_alignment_by_layer"].sel(form="either")


def _best_aligned(data: xr.Dataset) -> dict[str, int]:
    layer, head, _ = top_heads(whole(_either(data)), 1)[0]
    return {"layer": layer, "head": head}


def _best_layer(by_layer: xr.DataArray) -> int:
    return int(by_layer["layer"][int(np.argmax(whole(by_layer).values))])


def _name_layer(by_layer: xr.DataArray, form: str) -> str:
    return f"largest in layer {_best_layer(by_layer)}: {form.format(float(whole(by_layer).max()))}"


FINDINGS = (
    *specialised.FINDINGS,
    Finding(
        "Middle layers follow dependency arcs best.",
        "layers 2–4 of 12",
        "largest pooled alignment between the first twelfth and the last third, less the largest "
        "elsewhere, is above 0",
        ("dependency_alignment_by_layer", "dependency_alignment"),
        lambda data: _lead(_by_layer(data), 1 / 12, 2 / 3),
        is_signed=True,
        words=lambda data, found: _name_layer(_by_layer(data), "{:.3f}"),
    ),
    Finding(
        "The best aligned layers look the least far.",
        "layers 2–4 for both",
        "the best aligned layer is in the quarter with the shortest distance: the first layer "
        "beyond that quarter looks further by more than 0",
        ("dependency_alignment_by_layer", "distance_by_layer", "distance"),
        _aligned_layer_is_short,
        unit="tokens",
        is_signed=True,
        words=_rank_aligned_layer,
    ),
    Finding(
        "The deepest layers look the furthest.",
        "longest distance in the deepest layers",
        "largest pooled distance in the last quarter, less the largest elsewhere, is above 0",
        ("distance_by_layer", "distance"),
        lambda data: _lead(data["distance_by_layer"], 3 / 4, 1),
        unit="tokens",
        is_signed=True,
        words=lambda data, found: _name_layer(data["distance_by_layer"], "{:.2f} tokens"),
    ),
    Finding(
        "The best aligned head looks at the previous token.",
        "L4H11",
        "its mean distance differs from 1 by less than 0.5",
        ("dependency_alignment", "distance"),
        lambda data: abs(data["distance"].sel(_best_aligned(data)) - 1),
        threshold=NEAR_ONE,
        more="below",
        range=(0.0, np.inf),
        words=_distance_of_aligned,
    ),
    Finding(
        "The best aligned head is the least variable one.",
        "L4H11: alignment 0.42, variability 0.004",
        "its variability is among the lowest 5 % of heads: that of the first head beyond them is "
        "larger by more than 0",
        ("dependency_alignment", "variability"),
        _aligned_is_steady,
        is_signed=True,
        words=_rank_aligned,
    ),
    Finding(
        "The head that looks furthest is a focused one.",
        "L5H1: distance 14.2, entropy 0.41",
        "its entropy is below the mean",
        ("distance", "entropy"),
        _longest_entropy,
        more="below",
        unit="nats",
        is_signed=True,
        words=_name_longest,
    ),
    Finding(
        "Heads that look further spread their attention more.",
        "r = 0.61",
        "r over heads above 0",
        ("distance", "entropy"),
        lambda data: _correlation(data["distance"], data["entropy"]),
        range=CORRELATION,
    ),
    Finding(
        "Heads that look further follow arcs less.",
        "r = −0.73",
        "r over heads below 0",
        ("distance", "dependency_alignment"),
        lambda data: _correlation(data["distance"], _either(data)),
        more="below",
        range=CORRELATION,
    ),
    Finding(
        "Heads differ widely in how far they look (standard deviation).",
        "3.6",
        "no rule",
        ("distance",),
        lambda data: data["distance"].std(("layer", "head")),
        threshold=None,
        range=(0.0, np.inf),
    ),
    Finding(
        "Relations become rare with distance (at 1, 5, 10 tokens).",
        "0.42, 0.07, 0.02",
        "each smaller than the one before; a fact about the corpus",
        ("dependency_probability",),
        _rarer,
        is_signed=True,
        words=_probabilities,
    ),
    Finding(
        "Mean span of a relation in tokens.",
        "3.89; 99.8 % within 18",
        "no rule; a fact about the corpus",
        ("mean_dependency_span", "dependency_within"),
        itemgetter("mean_dependency_span"),
        threshold=None,
        words=lambda data, found: (
            f"{percent(float(whole(data['dependency_within']).sel(separation=18)))} within 18"
        ),
    ),
    Finding(
        "Mean length of a sentence in tokens.",
        "27.7",
        "no rule",
        (),
        lambda data: xr.DataArray(data.attrs["mean_tokens"]),
        threshold=None,
    ),
)


NEEDS = ("dependency_alignment", "dependency_expected")
BEYOND = "dependency_beyond"  # alignment − expected, for the time of a statement
EITHER = {"form": "either"}
CLEAR = 0.1  # of a head's attention
LITTLE_BEYOND = 0.05
SHOWN = 12


def beyond(data: xr.Dataset) -> xr.DataArray:
    """Alignment of every head, either form, less what its distances give."""
    return (data[NEEDS[0]] - data[NEEDS[1]]).sel(EITHER)


def best_beyond(data: xr.Dataset) -> HeldOut:
    """The head that is furthest beyond its distances, chosen on other documents."""
    aligned, expected = (data[f"{name}_numerator"] for name in NEEDS)
    sums = {
        f"{BEYOND}_numerator": aligned - expected,
        f"{BEYOND}_denominator": data[f"{NEEDS[0]}_denominator"],
    }
    return hold_out(data.assign(sums), BEYOND, EITHER)


def _name_best(data: xr.Dataset, found: Found) -> str:
    layer, head, _ = top_heads(whole(beyond(data)), 1)[0]
    return f"a head chosen on other documents; {_say_head(data, layer, head)}"


def _say_mean(data: xr.Dataset, found: Found) -> str:
    aligned, expected = (float(whole(data[name]).sel(EITHER).mean()) for name in NEEDS)
    return f"alignment {aligned:.3f}, expected {expected:.3f}"


def _say_head(data: xr.Dataset, layer: int, head: int) -> str:
    place = {"layer": layer, "head": head, **EITHER}
    aligned, expected = (float(whole(data[name]).sel(place)) for name in NEEDS)
    return f"{name_head(layer, head)}: alignment {aligned:.2f}, expected {expected:.2f}"


def syntax_rows(result: xr.Dataset) -> list[dict[str, Any]]:
    """The heads furthest beyond their distances, after the one that other documents choose."""
    sums = [f"{name}_{end}" for name in NEEDS for end in ("numerator", "denominator")]
    data, groups = replicated(result, NEEDS), groups_of(result[sums])
    elsewhere = best_beyond(data).find(is_share=False)
    margins = beyond(data)
    rows = [
        _row(data, find_interval(margins.sel(layer=layer, head=head), groups, DIFFERENCE),
             layer, head)
        for layer, head, value in top_heads(whole(margins), SHOWN)
        if np.isfinite(value)
    ]  # fmt: skip
    nan = float("nan")
    held_out = {"head": "best head, held out", "alignment": nan, "expected": nan}
    return [{**held_out, "beyond": elsewhere.cell}, *rows] if rows else []


def _row(data: xr.Dataset, found: Found, layer: int, head: int) -> dict[str, Any]:
    place = {"layer": layer, "head": head, **EITHER}
    aligned, expected = (float(whole(data[name]).sel(place)) for name in NEEDS)
    return {
        "head": HeadName(name_head(layer, head)),
        "alignment": aligned,
        "expected": expected,
        "beyond": found.cell,
    }


SYNTAX_TABLE = Tabulation(
    "syntax",
    "Syntax beyond proximity",
    "Alignment with dependency arcs (either form), what a head that looks equally far would have "
    "whatever the words are, and the difference with its 95 % interval: the heads with the largest "
    "one. Held out: chosen on half of the documents and scored on the other.",
    NEEDS,
    syntax_rows,
)
SYNTAX_FINDINGS = (
    Finding(
        "The best aligned head owes its alignment to looking near.",
        "L4H11 looks at the previous token: 0.42, the chance of an arc between neighbours",
        "its alignment, less what its distances give, is below 0.05",
        NEEDS,
        lambda data: beyond(data).sel(_best_aligned(data)),
        threshold=LITTLE_BEYOND,
        more="below",
        is_signed=True,
        range=DIFFERENCE,
        words=lambda data, found: _say_head(data, **_best_aligned(data)),
    ),
    Finding(
        "Some head follows arcs far beyond what its distances explain.",
        "not in the paper",
        "alignment less what its distances give is above 0.1, the head chosen on other documents",
        NEEDS,
        lambda data: best_beyond(data).replicates,
        threshold=CLEAR,
        is_signed=True,
        range=DIFFERENCE,
        words=_name_best,
    ),
    Finding(
        "On average heads follow arcs more than their distances explain.",
        "not in the paper",
        "mean over heads of alignment less what their distances give is above 0",
        NEEDS,
        lambda data: beyond(data).mean(("layer", "head")),
        is_signed=True,
        range=DIFFERENCE,
        words=_say_mean,
    ),
)
