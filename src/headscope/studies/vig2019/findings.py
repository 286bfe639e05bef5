"""What the paper found in GPT-2 small, and the rule by which a result is held against it.

Where a head is picked by the measure that it is judged by, it is picked on half of the documents
and judged on the other. Where it is picked by one measure and judged by another (the best aligned
head by its distance), the choice does not flatter it, and it is picked on everything.
"""

import math
from functools import partial

import numpy as np
import xarray as xr

from headscope.head import name_head
from headscope.results.findings import SHARE, Finding, Found, NotMeasured, hold_out, percent
from headscope.results.heads import (
    layers_between,
    lead,
    majority_gap,
    nth_largest,
    top_heads,
    whole,
)
from headscope.studies.vig2019.choices import TWICE, Factor, factor, label_factors

LITTLE = 0.05  # share of heads that counts as "the least variable"
NEAR_ONE = 0.5  # tokens: how far from 1 the mean distance of a head to the previous token may be
QUARTER = 1 / 4
FEWEST_HEADS = 3  # of which a correlation says anything
CORRELATION = (-1.0, 1.0)
ONE_LAYER = "the model has too few layers to compare"
ONE_HEAD = "the model has too few heads to compare"


def _mean_null(data: xr.Dataset) -> xr.DataArray:
    return data["null_share"].mean(("layer", "head"))


def _most_null(data: xr.Dataset) -> xr.DataArray:
    return hold_out(data, "null_share").replicates


def _name_most_null(data: xr.Dataset, found: Found) -> str:
    layer, head, share = top_heads(whole(data["null_share"]), 1)[0]
    return f"a head chosen on other documents; {share:.3f} in {name_head(layer, head)}"


def _noun(data: xr.Dataset) -> xr.DataArray:
    _check_tag(data, "pos_to", "NOUN")
    return factor(data, "pos_to", {"tag": "NOUN"}).replicates


def _name_noun(data: xr.Dataset, found: Found) -> str:
    shares = whole(data["pos_to"].sel(tag="NOUN"))
    layer, head, best = top_heads(shares, 1)[0]
    return (
        "a head chosen on other documents; "
        f"{best:.2f} in {name_head(layer, head)}, {float(shares.mean()):.2f} on average"
    )


def _specialised_to(data: xr.Dataset) -> xr.DataArray:
    return _median(label_factors(data, "pos_to", "tag"))


def _specialised_from(data: xr.Dataset) -> xr.DataArray:
    to = _median(label_factors(data, "pos_to", "tag"))
    return _median(label_factors(data, "pos_from", "tag")) - to


def _median(factors: dict[str, Factor]) -> xr.DataArray:
    if not factors:
        raise NotMeasured("no tag occurs in both halves of the documents")
    found = xr.concat([each.replicates for each in factors.values()], "tag", combine_attrs="drop")
    return found.median("tag")


def count_twice(factors: dict[str, Factor]) -> str:
    """How many labels have a head above twice the mean, and how many beyond doubt."""
    above = sum(each.found.value > TWICE for each in factors.values())
    surely = sum(each.found.low > TWICE for each in factors.values())
    maybe = sum(not each.found.high < TWICE for each in factors.values())
    return f"{above} of {len(factors)} ({surely} … {maybe})"


def _count_to(data: xr.Dataset, found: Found) -> str:
    return f"above 2 for {count_twice(label_factors(data, 'pos_to', 'tag'))} tags"


def _count_from(data: xr.Dataset, found: Found) -> str:
    counts = (count_twice(label_factors(data, name, "tag")) for name in ("pos_from", "pos_to"))
    return "above 2 for {} tags from, {} to".format(*counts)


def _top_heads_lie(
    data: xr.Dataset, variable: str, tag: str, count: int, first: float, last: float
) -> xr.DataArray:
    """Positive if most of the top heads for a tag lie between two depths (0 first layer, 1 end)."""
    _check_tag(data, variable, tag)
    wanted = layers_between(data, first, last)
    return _compared(majority_gap(data[variable].sel(tag=tag), count, wanted), ONE_LAYER)


def _count_inside(
    data: xr.Dataset, found: Found, variable: str, tag: str, count: int, first: float, last: float
) -> str:
    wanted = layers_between(data, first, last)
    layers = [layer for layer, _, _ in top_heads(whole(data[variable].sel(tag=tag)), count)]
    inside = sum(layer in wanted for layer in layers)
    return f"{inside} of the top {len(layers)} in layers {wanted[0]}–{wanted[-1]}"


def _aligned_lead(data: xr.Dataset) -> xr.DataArray:
    wanted = layers_between(data, 1 / 12, 2 / 3)
    return _compared(lead(_by_layer(data), wanted), ONE_LAYER)


def _name_aligned_layer(data: xr.Dataset, found: Found) -> str:
    return _name_layer(_by_layer(data), "{:.3f}")


def _distance_lead(data: xr.Dataset) -> xr.DataArray:
    wanted = layers_between(data, 3 / 4, 1)
    return _compared(lead(data["distance_by_layer"], wanted), ONE_LAYER)


def _name_distant_layer(data: xr.Dataset, found: Found) -> str:
    return _name_layer(data["distance_by_layer"], "{:.2f} tokens")


def _aligned_layer_is_short(data: xr.Dataset) -> xr.DataArray:
    best, distance = _best_layer(_by_layer(data)), data["distance_by_layer"]
    limit = math.ceil(QUARTER * distance.sizes["layer"])
    return _rank_gap(distance, {"layer": best}, limit, ONE_LAYER)


def _rank_aligned_layer(data: xr.Dataset, found: Found) -> str:
    best, distance = _best_layer(_by_layer(data)), whole(data["distance_by_layer"])
    rank = int((distance < distance.sel(layer=best)).sum()) + 1
    return f"best aligned layer {best}: rank {rank} of {distance.size}, shortest first"


def _aligned_is_near_one(data: xr.Dataset) -> xr.DataArray:
    return abs(data["distance"].sel(_best_aligned(data)) - 1)


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
    return _compared(-nth_largest(-others, limit) - here, few)


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


def _distance_with_entropy(data: xr.Dataset) -> xr.DataArray:
    return _correlation(data["distance"], data["entropy"])


def _distance_with_alignment(data: xr.Dataset) -> xr.DataArray:
    return _correlation(data["distance"], _either(data))


def _correlation(first: xr.DataArray, second: xr.DataArray) -> xr.DataArray:
    if whole(first).size < FEWEST_HEADS:
        raise NotMeasured(ONE_HEAD)
    return xr.corr(first, second, ("layer", "head"))


def _spread(data: xr.Dataset) -> xr.DataArray:
    return data["distance"].std(("layer", "head"))


def _rarer(data: xr.Dataset) -> xr.DataArray:
    near, middle, far = (data["dependency_probability"].sel(separation=d) for d in (1, 5, 10))
    return xr.where(near - middle < middle - far, near - middle, middle - far)


def _probabilities(data: xr.Dataset, found: Found) -> str:
    known = whole(data["dependency_probability"])
    shares = ", ".join(f"{float(known.sel(separation=d)):.2f}" for d in (1, 5, 10))
    return f"the smaller step; {shares}"


def _span(data: xr.Dataset) -> xr.DataArray:
    return data["mean_dependency_span"]


def _within(data: xr.Dataset, found: Found) -> str:
    return f"{percent(float(whole(data['dependency_within']).sel(separation=18)))} within 18"


def _length(data: xr.Dataset) -> xr.DataArray:
    return xr.DataArray(data.attrs["mean_tokens"])


def _compared(gap: xr.DataArray, few: str) -> xr.DataArray:
    if not np.isfinite(whole(gap)):
        raise NotMeasured(few)
    return gap


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


def _check_tag(data: xr.Dataset, variable: str, tag: str) -> None:
    if tag not in data[variable]["tag"]:
        raise NotMeasured(f"the tag set has no {tag}")


def _of_depth(
    claim: str,
    published: str,
    rule: str,
    variable: str,
    tag: str,
    count: int,
    depths: tuple[float, float],
) -> Finding:
    first, last = depths
    where = {"variable": variable, "tag": tag, "count": count, "first": first, "last": last}
    return Finding(
        claim,
        published,
        f"{rule}: the value of the head that makes a majority inside, less that of its rival "
        "outside, is above 0",
        (variable,),
        partial(_top_heads_lie, **where),
        is_signed=True,
        words=partial(_count_inside, **where),
    )


FINDINGS = (
    Finding(
        "More than half of the attention goes to the null token.",
        "0.57 on average",
        "mean null share of the heads above 0.5",
        ("null_share",),
        _mean_null,
        threshold=0.5,
        range=SHARE,
    ),
    Finding(
        "Some heads look at hardly anything else.",
        "> 0.97",
        "largest null share above 0.97, the head chosen on other documents",
        ("null_share",),
        _most_null,
        threshold=0.97,
        range=SHARE,
        words=_name_most_null,
    ),
    Finding(
        "Some head gives nouns twice the usual share.",
        "0.43 in L9H0, 0.21 on average",
        "best head, chosen on other documents, above 2 × the mean over heads",
        ("pos_to",),
        _noun,
        threshold=TWICE,
        unit="×",
        words=_name_noun,
    ),
    Finding(
        "For most tags some head pays them more than twice the mean.",
        "13 of 16",
        "median over tags of best head / mean over heads above 2, the head chosen on other "
        "documents",
        ("pos_to",),
        _specialised_to,
        threshold=TWICE,
        unit="×",
        words=_count_to,
    ),
    Finding(
        "Fewer tags have a head that attends from them in this way.",
        "7 of 16",
        "the same median for attention from tags is below that for attention to tags",
        ("pos_from", "pos_to"),
        _specialised_from,
        more="below",
        unit="×",
        is_signed=True,
        words=_count_from,
    ),
    _of_depth(
        "Heads that attend to proper nouns are deep.",
        "top five in the last three layers",
        "most of the top five in the last quarter of the layers",
        "pos_to",
        "PROPN",
        5,
        (3 / 4, 1),
    ),
    _of_depth(
        "Heads that attend to determiners are low.",
        "top five in the first four layers",
        "most of the top five in the first third of the layers",
        "pos_to",
        "DET",
        5,
        (0, 1 / 3),
    ),
    _of_depth(
        "Heads that attend from punctuation are deep.",
        "top ten in the last six layers",
        "most of the top ten in the last half of the layers",
        "pos_from",
        "PUNCT",
        10,
        (1 / 2, 1),
    ),
    Finding(
        "Middle layers follow dependency arcs best.",
        "layers 2–4 of 12",
        "largest pooled alignment between the first twelfth and the last third, less the largest "
        "elsewhere, is above 0",
        ("dependency_alignment_by_layer", "dependency_alignment"),
        _aligned_lead,
        is_signed=True,
        words=_name_aligned_layer,
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
        _distance_lead,
        unit="tokens",
        is_signed=True,
        words=_name_distant_layer,
    ),
    Finding(
        "The best aligned head looks at the previous token.",
        "L4H11",
        "its mean distance differs from 1 by less than 0.5",
        ("dependency_alignment", "distance"),
        _aligned_is_near_one,
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
        _distance_with_entropy,
        range=CORRELATION,
    ),
    Finding(
        "Heads that look further follow arcs less.",
        "r = −0.73",
        "r over heads below 0",
        ("distance", "dependency_alignment"),
        _distance_with_alignment,
        more="below",
        range=CORRELATION,
    ),
    Finding(
        "Heads differ widely in how far they look (standard deviation).",
        "3.6",
        "no rule",
        ("distance",),
        _spread,
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
        _span,
        threshold=None,
        words=_within,
    ),
    Finding(
        "Mean length of a sentence in tokens.",
        "27.7",
        "no rule",
        (),
        _length,
        threshold=None,
    ),
)
