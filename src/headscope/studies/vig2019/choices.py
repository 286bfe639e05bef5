"""The heads whose exemplars are shown: the most specialised for each tag, relation and distance."""

import numpy as np
import xarray as xr

from headscope.results.heads import top_heads
from headscope.results.statements import Choice

MOST_NULL = 0.9  # heads that pay more than this to null tokens leave little to describe
HALF_NULL = 0.5  # a content head that is drawn should have more than its sink to show
MOST = 8  # labels per table, the most specialised first
RARE = 0.005  # labels on fewer tokens than this say more about the sample than about the head


def choose_heads(result: xr.Dataset) -> list[Choice]:
    """Heads for tables 1 (tags), 2 (relations) and 3 (distance and form)."""
    result = busy_heads(result)
    choices: list[Choice] = []
    if "pos_to" in result:
        choices += _by_label(result, "table1", "pos_to", "tag")
    if "deprel_to" in result:
        choices += _by_label(result, "table2", "deprel_to", "deprel")
    return choices + _by_shape(result)


def busy_heads(result: xr.Dataset) -> xr.Dataset:
    """The result without the values of heads that pay nearly everything to null tokens."""
    if "null_share" not in result:
        return result
    busy = result["null_share"] <= MOST_NULL
    of_heads = [
        name for name, array in result.data_vars.items() if {"layer", "head"} <= set(array.dims)
    ]
    return result.assign({name: result[name].where(busy) for name in of_heads})


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


def _by_label(result: xr.Dataset, table: str, variable: str, axis: str) -> list[Choice]:
    """For each label the head that exceeds the mean over heads by the largest factor."""
    shares = result[variable]
    common = shares[axis][(result[f"{axis}_frequency"] >= RARE).values]
    found = []
    for label in common.values:
        of_label = shares.sel({axis: label})
        layer, head, share = top_heads(of_label, 1)[0]
        mean = float(of_label.mean())
        found.append((share / mean, Choice(table, layer, head, _why(label, share, mean))))
    found.sort(key=lambda item: -np.nan_to_num(item[0]))
    return [choice for _, choice in found[:MOST]]


def _why(label: str, share: float, mean: float) -> str:
    return f"{label} receives {share:.2f} ({share / mean:.1f} × the mean {mean:.2f})"


def _by_shape(result: xr.Dataset) -> list[Choice]:
    """The furthest, the nearest, the most and least dispersed, the least variable head."""
    wanted = [
        ("distance", 1, "looks furthest: {:.1f} tokens"),
        ("distance", -1, "looks least far: {:.2f} tokens"),
        ("entropy", 1, "most dispersed: {:.2f} nats"),
        ("entropy", -1, "most focused: {:.2f} nats"),
        ("variability", 1, "depends most on content: variability {:.2f}"),
        ("variability", -1, "depends least on content: variability {:.3f}"),
    ]
    found = []
    for variable, sign, why in wanted:
        layer, head, value = top_heads(sign * result[variable], 1)[0]
        found.append(Choice("table3", layer, head, why.format(sign * value)))
    return found
