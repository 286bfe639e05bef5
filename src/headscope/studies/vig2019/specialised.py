"""Specialised heads: what the paper says of them, and those whose exemplars are shown.

How much more of its attention the best head pays to a tag or relation than heads do on average.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import xarray as xr
from jaxtyping import Float

from headscope.head import name_head
from headscope.results.examples import ANY, distance_kind, relation_kind, tag_kind
from headscope.results.findings import (
    SHARE,
    Finding,
    Found,
    NotMeasured,
    find_intervals,
    known,
    layers_between,
    majority_gap,
    top_heads,
    whole,
)
from headscope.results.held_out import hold_out, hold_out_each
from headscope.results.replicates import informed, ratio_replicates, replicates_of
from headscope.results.statements import Choice

TWICE = 2.0
MOST_NULL = 0.9  # heads that pay more than this to null tokens leave little to describe
HALF_NULL = 0.5  # a content head that is drawn should have more than its sink to show
MOST = 8  # labels per table, the most specialised first
ONE_LAYER = "the model has too few layers to compare"
RARE = 0.005  # labels on fewer tokens than this say more about the sample than about the head


@dataclass(frozen=True)
class Specialist:
    """The head that pays most to a label, here and on documents that did not choose it."""

    label: str
    layer: int
    head: int
    share: float
    mean: float  # over heads
    held_out: Found  # the share of a head that was chosen on other documents
    factor: Found  # that share / the mean share
    replicates: Float[np.ndarray, "replicate"]  # of the factor
    groups: int  # that have the label

    @property
    def times(self) -> float:
        """Best share / mean share, without holding anything out."""
        return self.share / self.mean if self.mean > 0 else np.nan


def find_specialists(result: xr.Dataset, name: str, axis: str) -> list[Specialist]:
    """The specialist of every label of a share of attention."""
    sums = hold_out_each(result, name, axis)
    held_out = ratio_replicates(sums.numerator, sums.denominator)
    groups, weight = informed(sums.denominator), sums.denominator.sum(0)
    shares = replicates_of(result, name).transpose(axis, "replicate", "layer", "head").values
    means = _mean_over_heads(np.ascontiguousarray(shares)).T
    with np.errstate(all="ignore"):
        times = np.where(means > 0, held_out / means, np.nan)
    found = zip(
        result.variables[axis].values.tolist(),
        _best_heads(result, shares[:, 0]),
        means[0].tolist(),
        find_intervals(held_out, groups, SHARE, weight),
        find_intervals(times, groups, (0.0, np.inf)),
        times.T,
        groups.tolist(),
        strict=True,
    )
    return [Specialist(str(label), *best, *rest) for label, best, *rest in found]


def _mean_over_heads(
    shares: Float[np.ndarray, "label replicate layer head"],
) -> Float[np.ndarray, "label replicate"]:
    with np.errstate(all="ignore"):
        return np.nansum(shares, (2, 3)) / np.isfinite(shares).sum((2, 3))


def _best_heads(
    result: xr.Dataset, shares: Float[np.ndarray, "label layer head"]
) -> Iterator[tuple[int, int, float]]:
    """Layer, head and share of the head that pays most to each label."""
    layers = result.variables["layer"].values.tolist()
    for own in shares:
        known = np.where(np.isfinite(own), own, -np.inf)
        layer, head = np.unravel_index(int(known.argmax()), own.shape)
        yield layers[layer], int(head), float(own[layer, head])


def label_factors(result: xr.Dataset, name: str, axis: str) -> list[Specialist]:
    """The labels that are found in both halves, whichever group is left out."""
    every = find_specialists(result, name, axis)
    return [each for each in every if np.isfinite(each.replicates).all()]


def choose_heads(result: xr.Dataset) -> list[Choice]:
    """Heads for tables 1 (tags), 2 (relations) and 3 (distance and form)."""
    data = busy_heads(result)
    choices: list[Choice] = []
    if "pos_to" in data:
        choices += _by_label(data, "table1", "pos_to", "tag")
    if "deprel_to" in data:
        choices += _by_label(data, "table2", "deprel_to", "deprel")
    return [*choices, *_by_shape(data)]


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
    is_common = data.variables[f"{axis}_frequency"].values >= RARE
    every = zip(find_specialists(data, variable, axis), is_common, strict=True)
    common = [each for each, is_usual in every if is_usual]
    common.sort(key=lambda each: -np.nan_to_num(each.factor.value, nan=-np.inf))
    return [_choose(table, each) for each in common[:MOST]]


def _choose(table: str, found: Specialist) -> Choice:
    times, share, mean = found.factor, found.share, found.mean
    why = (
        f"{found.label} receives {share:.2f} ({share / mean:.1f} × the mean {mean:.2f}; "
        f"held out {times.value:.1f} ×{_ends(times, '{:.1f}')})"
    )
    name_kind = tag_kind if table == "table1" else relation_kind
    return Choice(table, found.layer, found.head, why, name_kind(found.label))


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
    (noun,) = [each for each in find_specialists(data, "pos_to", "tag") if each.label == "NOUN"]
    return xr.DataArray(noun.replicates, dims="replicate", attrs={"groups": noun.groups})


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


def _median(found: list[Specialist]) -> xr.DataArray:
    if not found:
        raise NotMeasured("no tag occurs in both halves of the documents")
    return xr.DataArray(np.median([each.replicates for each in found], 0), dims="replicate")


def count_twice(found: list[Specialist]) -> str:
    """How many labels have a head above twice the mean, and how many beyond doubt."""
    factors = [each.factor for each in found]
    above = sum(each.value > TWICE for each in factors)
    surely = sum(each.low > TWICE for each in factors)
    maybe = sum(not each.high < TWICE for each in factors)
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
