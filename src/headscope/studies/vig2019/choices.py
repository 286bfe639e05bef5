"""The heads whose exemplars are shown: the most specialised for each tag, relation and distance.

How much more of its attention the best head pays to a label than heads do on average.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import xarray as xr

from headscope.metrics.kinds import (
    ANY,
    KIND_EXEMPLAR_WEIGHT,
    distance_kind,
    relation_kind,
    tag_kind,
)
from headscope.results.findings import Found, find_interval
from headscope.results.heads import top_heads
from headscope.results.replicates import replicated
from headscope.results.selection import HeldOut, hold_out
from headscope.results.slices import values_at
from headscope.results.statements import Choice

TWICE = 2.0
MOST_NULL = 0.9  # heads that pay more than this to null tokens leave little to describe
HALF_NULL = 0.5  # a content head that is drawn should have more than its sink to show
MOST = 8  # labels per table, the most specialised first
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
    named = xr.DataArray(shares, {"layer": data.variables["layer"]}, ("layer", "head"))
    layer, head, best = top_heads(named, 1)[0]
    return layer, head, best, float(named.mean())


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
