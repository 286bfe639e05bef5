"""Specialised heads, and those whose exemplars are shown.

How much more of its attention the best head pays to a tag or relation than heads do on average.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import xarray as xr
from jaxtyping import Float

from headscope.results.examples import ANY, distance_kind, relation_kind, tag_kind
from headscope.results.held_out import hold_out, hold_out_each
from headscope.results.intervals import SHARE, SIZE, Interval, find_intervals
from headscope.results.ranks import top_heads
from headscope.results.replicates import informed, ratio_replicates, replicates_of
from headscope.results.statements import Choice

TWICE = 2.0
MOST_NULL = 0.9  # heads that pay more than this to null tokens leave little to describe
HALF_NULL = 0.5  # a content head that is drawn should have more than its sink to show
MOST = 8  # labels per table, the most specialised first
RARE = 0.005  # labels on fewer tokens than this say more about the sample than about the head

CHOICE_TITLES = {
    "table1": "Table 1: heads that specialise in a part of speech",
    "table2": "Table 2: heads that specialise in a relation",
    "table3": "Table 3: heads by distance, entropy and variability",
}


@dataclass(frozen=True)
class Specialist:
    """The head that pays most to a label, here and on documents that did not choose it."""

    label: str
    layer: int
    head: int
    share: float
    mean: float  # over heads
    held_out: Interval  # the share of a head that was chosen on other documents
    factor: Interval  # that share / the mean share
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
    # A label that a group lacks has no share there, whatever the group pays to others.
    groups, weight = informed(sums.numerator), sums.denominator.sum(0)
    shares = replicates_of(result, name).transpose(axis, "replicate", "layer", "head").values
    means = _mean_over_heads(np.ascontiguousarray(shares)).T
    with np.errstate(all="ignore"):
        times = np.where(means > 0, held_out / means, np.nan)
    found = zip(
        result.variables[axis].values.tolist(),
        _best_heads(result, shares[:, 0]),
        means[0].tolist(),
        find_intervals(held_out, groups, SHARE, weight),
        find_intervals(times, groups, SIZE),
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


def _ends(found: Interval, form: str) -> str:
    if not np.isfinite(found.low):
        return ""
    return f", {form.format(found.low)} … {form.format(found.high)}"


def count_twice(found: list[Specialist]) -> str:
    """How many labels have a head above twice the mean, and how many beyond doubt."""
    factors = [each.factor for each in found]
    above = sum(each.value > TWICE for each in factors)
    surely = sum(each.low > TWICE for each in factors)
    maybe = sum(not each.high < TWICE for each in factors)
    return f"{above} of {len(factors)} ({surely} … {maybe})"
