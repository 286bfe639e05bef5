"""What the paper found in GPT-2 small, and the rule by which a result is held against it."""

import math
from functools import partial

import numpy as np
import xarray as xr

from headscope.heads import name_head
from headscope.results.findings import Finding, Measured, decide, decide_difference
from headscope.results.heads import layers_between, top_heads

TWICE = 2.0
LITTLE = 0.05  # share of heads that counts as "the least variable"
SIGNIFICANT = 0.05


def _mean_null(result: xr.Dataset) -> Measured:
    mean = float(result["null_share"].mean())
    return Measured(f"{mean:.2f}", decide(mean > 0.5))


def _extreme_null(result: xr.Dataset) -> Measured:
    layer, head, share = top_heads(result["null_share"], 1)[0]
    return Measured(f"{share:.3f} in {name_head(layer, head)}", decide(share > 0.97))


def _noun(result: xr.Dataset) -> Measured:
    shares = _tag(result["pos_to"], "NOUN")
    if shares is None:
        return Measured("the tag set has no NOUN", "not measured")
    layer, head, best = top_heads(shares, 1)[0]
    mean = float(shares.mean())
    value = f"{best:.2f} in {name_head(layer, head)}, {mean:.2f} on average"
    return Measured(value, decide(best >= TWICE * mean))


def specialised(shares: xr.DataArray) -> tuple[int, int]:
    """For how many tags some head has more than twice the mean over heads; and of how many."""
    mean = shares.mean(("layer", "head"))
    known = mean > 0
    return int((shares.max(("layer", "head")) > TWICE * mean)[known].sum()), int(known.sum())


def _specialised_to(result: xr.Dataset) -> Measured:
    some, all_tags = specialised(result["pos_to"])
    return Measured(f"{some} of {all_tags}", decide(some >= all_tags / 2))


def _specialised_from(result: xr.Dataset) -> Measured:
    some, all_tags = specialised(result["pos_from"])
    to, _ = specialised(result["pos_to"])
    return Measured(f"{some} of {all_tags}", decide(some < to))


def _top_heads_lie(
    result: xr.Dataset, variable: str, tag: str, count: int, first: float, last: float
) -> Measured:
    """Whether most of the top heads for a tag lie between two depths (0 first layer, 1 end)."""
    shares = _tag(result[variable], tag)
    if shares is None:
        return Measured(f"the tag set has no {tag}", "not measured")
    layers = [layer for layer, _, _ in top_heads(shares, count)]
    wanted = layers_between(result, first, last)
    inside = sum(layer in wanted for layer in layers)
    value = f"{inside} of {len(layers)} in layers {wanted[0]}–{wanted[-1]}"
    return Measured(value, decide(inside > len(layers) / 2))


def _aligned_is_steady(result: xr.Dataset) -> Measured:
    layer, head, aligned = top_heads(_either(result), 1)[0]
    variability = result["variability"]
    own = float(variability.sel(layer=layer, head=head))
    rank = int((variability < own).sum()) + 1
    limit = max(1, math.ceil(LITTLE * variability.size))
    value = (
        f"{name_head(layer, head)}: alignment {aligned:.2f}, variability {own:.3f} "
        f"(rank {rank} of {variability.size}, lowest first)"
    )
    return Measured(value, decide(rank <= limit))


def _aligned_looks_back_one(result: xr.Dataset) -> Measured:
    layer, head, _ = top_heads(_either(result), 1)[0]
    far = float(result["distance"].sel(layer=layer, head=head))
    return Measured(f"{name_head(layer, head)}: distance {far:.2f}", decide(0.5 < far < 1.5))


def _best_aligned_layer(result: xr.Dataset) -> Measured:
    by_layer = result["dependency_alignment_by_layer"].sel(form="either")
    errors = result["dependency_alignment_by_layer_se"].sel(form="either")
    return _extreme_layer(by_layer, errors, layers_between(result, 1 / 12, 2 / 3))


def _deepest_is_longest(result: xr.Dataset) -> Measured:
    wanted = layers_between(result, 3 / 4, 1)
    return _extreme_layer(result["distance_by_layer"], result["distance_by_layer_se"], wanted)


def _aligned_layers_are_short(result: xr.Dataset) -> Measured:
    by_layer = result["dependency_alignment_by_layer"].sel(form="either")
    best = int(by_layer["layer"][int(np.argmax(by_layer.values))])
    distance = result["distance_by_layer"]
    rank = int((distance < distance.sel(layer=best)).sum()) + 1
    value = f"best aligned layer {best}: rank {rank} of {distance.size}, shortest first"
    return Measured(value, decide(rank <= max(1, math.ceil(distance.size / 4))))


def _correlation(result: xr.Dataset, pair: str, sign: int) -> Measured:
    if pair not in result["pair"]:
        return Measured("the corpus has no relations", "not measured")
    r, p = (float(result[name].sel(pair=pair)) for name in ("correlation", "correlation_p"))
    if not np.isfinite(r):
        return Measured("too few heads", "unclear")
    holds = decide(r * sign > 0) if p < SIGNIFICANT else "unclear"
    return Measured(f"r = {r:.2f} (p = {p:.1g})".replace("-", "−"), holds)


def _spread(result: xr.Dataset) -> Measured:
    return Measured(f"{float(result['distance'].std()):.1f}", "for comparison")


def _longest_is_sharp(result: xr.Dataset) -> Measured:
    layer, head, far = top_heads(result["distance"], 1)[0]
    own = float(result["entropy"].sel(layer=layer, head=head))
    mean = float(result["entropy"].mean())
    value = f"{name_head(layer, head)}: distance {far:.1f}, entropy {own:.2f} (mean {mean:.2f})"
    return Measured(value, decide(own < mean))


def _probability(result: xr.Dataset) -> Measured:
    values = [float(result["dependency_probability"].sel(separation=d)) for d in (1, 5, 10)]
    text = ", ".join(f"{value:.2f}" for value in values)
    return Measured(text, decide(values[0] > values[1] > values[2]))


def _span(result: xr.Dataset) -> Measured:
    within = float(result["dependency_within"].sel(separation=18))
    span = result.attrs["mean_dependency_span"]
    return Measured(f"{span:.2f}; {100 * within:.1f} % within 18", "for comparison")


def _length(result: xr.Dataset) -> Measured:
    return Measured(f"{result.attrs['mean_tokens']:.1f}", "for comparison")


def _extreme_layer(values: xr.DataArray, errors: xr.DataArray, wanted: list[int]) -> Measured:
    """Whether the largest layer value lies in the wanted layers, and whether that is noise."""
    inside = values.sel(layer=wanted)
    outside = values.drop_sel(layer=wanted)
    best = int(values["layer"][int(np.argmax(values.values))])
    value = f"layer {best}: {float(values.max()):.3g}"
    if outside.size == 0:
        return Measured(value, "unclear")
    places = [part["layer"][int(np.argmax(part.values))] for part in (inside, outside)]
    first, second = (float(errors.sel(layer=place)) for place in places)
    return Measured(value, decide_difference(float(inside.max() - outside.max()), (first, second)))


def _either(result: xr.Dataset) -> xr.DataArray:
    return result["dependency_alignment"].sel(form="either")


def _tag(shares: xr.DataArray, tag: str) -> xr.DataArray | None:
    return shares.sel(tag=tag) if tag in shares["tag"] else None


FINDINGS = (
    Finding(
        "More than half of the attention goes to the null token.",
        "0.57 on average",
        "mean null share of the heads > 0.5",
        ("null_share",),
        _mean_null,
    ),
    Finding(
        "Some heads look at hardly anything else.",
        "> 0.97",
        "largest null share > 0.97",
        ("null_share",),
        _extreme_null,
    ),
    Finding(
        "Some head gives nouns twice the usual share.",
        "0.43 in L9H0, 0.21 on average",
        "best head ≥ 2 × mean over heads",
        ("pos_to",),
        _noun,
    ),
    Finding(
        "For most tags some head pays them more than twice the mean.",
        "13 of 16",
        "for at least half of the tags",
        ("pos_to",),
        _specialised_to,
    ),
    Finding(
        "Fewer tags have a head that attends from them in this way.",
        "7 of 16",
        "fewer tags than “to”",
        ("pos_from", "pos_to"),
        _specialised_from,
    ),
    Finding(
        "Heads that attend to proper nouns are deep.",
        "top five in the last three layers",
        "most of the top five in the last quarter of the layers",
        ("pos_to",),
        partial(_top_heads_lie, variable="pos_to", tag="PROPN", count=5, first=3 / 4, last=1),
    ),
    Finding(
        "Heads that attend to determiners are low.",
        "top five in the first four layers",
        "most of the top five in the first third of the layers",
        ("pos_to",),
        partial(_top_heads_lie, variable="pos_to", tag="DET", count=5, first=0, last=1 / 3),
    ),
    Finding(
        "Heads that attend from punctuation are deep.",
        "top ten in the last six layers",
        "most of the top ten in the last half of the layers",
        ("pos_from",),
        partial(_top_heads_lie, variable="pos_from", tag="PUNCT", count=10, first=1 / 2, last=1),
    ),
    Finding(
        "Middle layers follow dependency arcs best.",
        "layers 2–4 of 12",
        "best pooled layer neither the first twelfth nor the last third; clear by 2 s.e.",
        ("dependency_alignment_by_layer",),
        _best_aligned_layer,
    ),
    Finding(
        "The best aligned layers look the least far.",
        "layers 2–4 for both",
        "the best aligned layer is in the quarter with the shortest distance",
        ("dependency_alignment_by_layer", "distance_by_layer"),
        _aligned_layers_are_short,
    ),
    Finding(
        "The deepest layers look the furthest.",
        "longest distance in the deepest layers",
        "largest pooled distance in the last quarter; clear of the rest by 2 s.e.",
        ("distance_by_layer",),
        _deepest_is_longest,
    ),
    Finding(
        "The best aligned head looks at the previous token.",
        "L4H11",
        "its mean distance is between 0.5 and 1.5",
        ("dependency_alignment", "distance"),
        _aligned_looks_back_one,
    ),
    Finding(
        "The best aligned head is the least variable one.",
        "L4H11: alignment 0.42, variability 0.004",
        "its variability is among the lowest 5 % of heads",
        ("dependency_alignment", "variability"),
        _aligned_is_steady,
    ),
    Finding(
        "The head that looks furthest is a focused one.",
        "L5H1: distance 14.2, entropy 0.41",
        "its entropy is below the mean",
        ("distance", "entropy"),
        _longest_is_sharp,
    ),
    Finding(
        "Heads that look further spread their attention more.",
        "r = 0.61",
        "r > 0 with p < 0.05",
        ("correlation",),
        partial(_correlation, pair="distance~entropy", sign=1),
    ),
    Finding(
        "Heads that look further follow arcs less.",
        "r = −0.73",
        "r < 0 with p < 0.05",
        ("correlation",),
        partial(_correlation, pair="distance~alignment", sign=-1),
    ),
    Finding(
        "Heads differ widely in how far they look (standard deviation).",
        "3.6",
        "no rule",
        ("distance",),
        _spread,
    ),
    Finding(
        "Relations become rare with distance (at 1, 5, 10 tokens).",
        "0.42, 0.07, 0.02",
        "each smaller than the one before; a fact about the corpus",
        ("dependency_probability",),
        _probability,
    ),
    Finding(
        "Mean span of a relation in tokens.",
        "3.89; 99.8 % within 18",
        "no rule; a fact about the corpus",
        ("dependency_within",),
        _span,
    ),
    Finding("Mean length of a sentence in tokens.", "27.7", "no rule", (), _length),
)
