"""Specialised heads: what the paper says of them, and those whose exemplars are shown.

How much more of its attention the best head pays to a tag or relation than heads do on average.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import xarray as xr

from headscope.head import name_head
from headscope.metrics.records.kinds import (
    ANY,
    KIND_EXEMPLAR_WEIGHT,
    distance_kind,
    relation_kind,
    tag_kind,
)
from headscope.results.findings import (
    SHARE,
    Finding,
    Found,
    HeldOut,
    NotMeasured,
    find_interval,
    hold_out,
    known,
    layers_between,
    majority_gap,
    top_heads,
    whole,
)
from headscope.results.measure import values_at
from headscope.results.replicates import replicated
from headscope.results.statements import Choice

TWICE = 2.0
MOST_NULL = 0.9  # heads that pay more than this to null tokens leave little to describe
HALF_NULL = 0.5  # a content head that is drawn should have more than its sink to show
MOST = 8  # labels per table, the most specialised first
ONE_LAYER = "the model has too few layers to compare"
RARE = 0.005  # labels on fewer tokens than this say more about the sample than about the head


@dataclass(frozen=True)
class Factor:
    """Share of a head that was chosen on other documents, and what it is of the mean share."""

    held_out: HeldOut
    replicates: xr.DataArray

    @cached_property
    def found(self) -> Found:
        """The factor with its interval."""
        return find_interval(self.replicates, 0, (0.0, np.inf))


def factor(data: xr.Dataset, name: str, at: Mapping[str, Any]) -> Factor:
    """Best share of a label / mean share over heads; `data` has replicates."""
    best = hold_out(data, name, at)
    shares = values_at(data, name, at).transpose("replicate", "layer", "head").values
    share = best.replicates
    with np.errstate(all="ignore"):
        mean = np.nansum(shares, (1, 2)) / np.isfinite(shares).sum((1, 2))
        ratio = np.where(mean > 0, share.values / mean, np.nan)
    return Factor(best, share.copy(data=ratio))


def best_and_mean(
    data: xr.Dataset, name: str, at: Mapping[str, Any]
) -> tuple[int, int, float, float]:
    """Layer, head and share of the head that pays most to a label, and the mean over heads."""
    shares = values_at(data, name, at).transpose("replicate", "layer", "head").values[0]
    known = np.where(np.isfinite(shares), shares, -np.inf)
    layer, head = np.unravel_index(int(known.argmax()), shares.shape)
    with np.errstate(all="ignore"):
        mean = np.nansum(shares) / np.isfinite(shares).sum()
    best = float(shares[layer, head])
    return int(data.variables["layer"].values[layer]), int(head), best, float(mean)


def label_factors(data: xr.Dataset, name: str, axis: str) -> dict[str, Factor]:
    """The factor of every label that is found in both halves, whichever group is left out."""
    found = {str(label): factor(data, name, {axis: label}) for label in data[axis].values.tolist()}
    return {
        label: each for label, each in found.items() if np.isfinite(each.replicates.values).all()
    }


def choose_heads(result: xr.Dataset) -> list[Choice]:
    """Heads for tables 1 (tags), 2 (relations) and 3 (distance and form)."""
    data = replicated(busy_heads(result), ("pos_to", "deprel_to"))
    choices: list[Choice] = []
    if "pos_to" in data:
        choices += _by_label(data, "table1", "pos_to", "tag")
    if "deprel_to" in data:
        choices += _by_label(data, "table2", "deprel_to", "deprel")
    choices += _by_shape(data)
    if KIND_EXEMPLAR_WEIGHT.name in result:
        return choices
    return [replace(choice, kind="") for choice in choices]  # long inputs keep no pairs by kind


def busy_heads(result: xr.Dataset) -> xr.Dataset:
    """The result without the values of heads that pay nearly everything to null tokens."""
    if "null_share" not in result:
        return result
    variables = result.variables  # all have the coordinates of the result, so none is aligned
    busy = variables["null_share"] <= MOST_NULL
    of_heads = [name for name in result.data_vars if {"layer", "head"} <= set(variables[name].dims)]
    return result.assign({name: variables[name].where(busy) for name in of_heads})


def telling_heads(result: xr.Dataset) -> list[tuple[str, int, int]]:
    """Kind, layer and head of a positional, a dispersed and a content head (Fig. 4)."""
    busy = busy_heads(result)
    focused = busy["entropy"] <= float(busy["entropy"].median())
    if "null_share" in busy:
        focused &= busy["null_share"] <= HALF_NULL
    kinds = {
        "positional": -busy["variability"],
        "dispersed": busy["entropy"],
        "content": busy["variability"].where(focused),
    }
    return [(kind, *top_heads(values, 1)[0][:2]) for kind, values in kinds.items()]


def _by_label(data: xr.Dataset, table: str, variable: str, axis: str) -> list[Choice]:
    """For each label the head that exceeds the mean over heads by the largest factor.

    Labels are ordered by the factor of a head that was chosen on other documents.
    """
    common = data[axis][(data[f"{axis}_frequency"] >= RARE).values].values.tolist()
    found = [_of_label(data, table, variable, {axis: label}) for label in common]
    found.sort(key=lambda item: -np.nan_to_num(item[0], nan=-np.inf))
    return [choice for _, choice in found[:MOST]]


def _of_label(
    data: xr.Dataset, table: str, variable: str, at: dict[str, str]
) -> tuple[float, Choice]:
    layer, head, share, mean = best_and_mean(data, variable, at)
    times = factor(data, variable, at).found
    (label,) = at.values()
    why = (
        f"{label} receives {share:.2f} ({share / mean:.1f} × the mean {mean:.2f}; "
        f"held out {times.value:.1f} ×{_ends(times, '{:.1f}')})"
    )
    name_kind = tag_kind if table == "table1" else relation_kind
    return times.value, Choice(table, layer, head, why, name_kind(label))


def _by_shape(data: xr.Dataset) -> list[Choice]:
    """The furthest, the nearest, the most and least dispersed, the least variable head."""
    wanted = [
        ("distance", 1, "looks furthest: {} tokens", "{:.1f}"),
        ("distance", -1, "looks least far: {} tokens", "{:.2f}"),
        ("entropy", 1, "most dispersed: {} nats", "{:.2f}"),
        ("entropy", -1, "most focused: {} nats", "{:.2f}"),
        ("variability", 1, "depends most on content: variability {}", "{:.2f}"),
        ("variability", -1, "depends least on content: variability {}", "{:.3f}"),
    ]
    found = []
    for variable, sign, why, form in wanted:
        layer, head, value = top_heads(sign * data[variable], 1)[0]
        elsewhere = hold_out(data, variable, sign=sign).find(is_share=False)
        said = f"{why.format(form.format(sign * value))}; held out {form.format(elsewhere.value)}"
        is_far = variable == "distance" and np.isfinite(value)
        kind = distance_kind(sign * value) if is_far else ANY
        found.append(Choice("table3", layer, head, said + _ends(elsewhere, form), kind))
    return found


def _ends(found: Found, form: str) -> str:
    if not np.isfinite(found.low):
        return ""
    return f", {form.format(found.low)} … {form.format(found.high)}"


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


def _count_twice(data: xr.Dataset, found: Found, form: str, names: tuple[str, ...]) -> str:
    return form.format(*(count_twice(label_factors(data, name, "tag")) for name in names))


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
    """Whether most of the top heads for a tag lie between two depths (0 first layer, 1 end)."""

    def find(data: xr.Dataset) -> xr.DataArray:
        _check_tag(data, variable, tag)
        wanted = layers_between(data, *depths)
        return known(majority_gap(data[variable].sel(tag=tag), count, wanted), ONE_LAYER)

    def say(data: xr.Dataset, found: Found) -> str:
        wanted = layers_between(data, *depths)
        layers = [layer for layer, _, _ in top_heads(whole(data[variable].sel(tag=tag)), count)]
        inside = sum(layer in wanted for layer in layers)
        return f"{inside} of the top {len(layers)} in layers {wanted[0]}–{wanted[-1]}"

    return Finding(
        claim,
        published,
        f"{rule}: the value of the head that makes a majority inside, less that of its rival "
        "outside, is above 0",
        (variable,),
        find,
        is_signed=True,
        words=say,
    )


FINDINGS = (
    Finding(
        "More than half of the attention goes to the null token.",
        "0.57 on average",
        "mean null share of the heads above 0.5",
        ("null_share",),
        lambda data: data["null_share"].mean(("layer", "head")),
        threshold=0.5,
        range=SHARE,
    ),
    Finding(
        "Some heads look at hardly anything else.",
        "> 0.97",
        "largest null share above 0.97, the head chosen on other documents",
        ("null_share",),
        lambda data: hold_out(data, "null_share").replicates,
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
        lambda data: _median(label_factors(data, "pos_to", "tag")),
        threshold=TWICE,
        unit="×",
        words=partial(_count_twice, form="above 2 for {} tags", names=("pos_to",)),
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
        words=partial(
            _count_twice, form="above 2 for {} tags from, {} to", names=("pos_from", "pos_to")
        ),
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
)
