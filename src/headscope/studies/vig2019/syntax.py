"""What a head knows of syntax beyond looking near: alignment less what its distances give."""

from typing import Any

import numpy as np
import xarray as xr

from headscope.head import name_head
from headscope.results.findings import (
    DIFFERENCE,
    Finding,
    Found,
    HeldOut,
    find_interval,
    hold_out,
    top_heads,
    whole,
)
from headscope.results.replicates import groups_of, replicated
from headscope.results.statements import Tabulation

NEEDS = ("dependency_alignment", "dependency_expected")
BEYOND = "dependency_beyond"  # alignment − expected, for the time of a statement
EITHER = {"form": "either"}
CLEAR = 0.1  # of a head's attention
LITTLE = 0.05
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


def _best(data: xr.Dataset) -> xr.DataArray:
    return best_beyond(data).replicates


def _name_best(data: xr.Dataset, found: Found) -> str:
    layer, head, _ = top_heads(whole(beyond(data)), 1)[0]
    return f"a head chosen on other documents; {_say_head(data, layer, head)}"


def _mean(data: xr.Dataset) -> xr.DataArray:
    return beyond(data).mean(("layer", "head"))


def _say_mean(data: xr.Dataset, found: Found) -> str:
    aligned, expected = (float(whole(data[name]).sel(EITHER).mean()) for name in NEEDS)
    return f"alignment {aligned:.3f}, expected {expected:.3f}"


def _of_best_aligned(data: xr.Dataset) -> xr.DataArray:
    layer, head = _best_aligned(data)
    return beyond(data).sel(layer=layer, head=head)


def _name_best_aligned(data: xr.Dataset, found: Found) -> str:
    return _say_head(data, *_best_aligned(data))


def _best_aligned(data: xr.Dataset) -> tuple[int, int]:
    layer, head, _ = top_heads(whole(data[NEEDS[0]].sel(EITHER)), 1)[0]
    return layer, head


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
    return [held_out | elsewhere.cells("beyond"), *rows] if rows else []


def _row(data: xr.Dataset, found: Found, layer: int, head: int) -> dict[str, Any]:
    place = {"layer": layer, "head": head, **EITHER}
    aligned, expected = (float(whole(data[name]).sel(place)) for name in NEEDS)
    named = {"head": name_head(layer, head), "alignment": aligned, "expected": expected}
    return named | found.cells("beyond")


TABLE = Tabulation(
    "syntax",
    "Syntax beyond proximity",
    "Alignment with dependency arcs (either form), what a head that looks equally far would have "
    "whatever the words are, and the difference with its 95 % interval: the heads with the largest "
    "one. Held out: chosen on half of the documents and scored on the other.",
    NEEDS,
    syntax_rows,
)
FINDINGS = (
    Finding(
        "The best aligned head owes its alignment to looking near.",
        "L4H11 looks at the previous token: 0.42, the chance of an arc between neighbours",
        "its alignment, less what its distances give, is below 0.05",
        NEEDS,
        _of_best_aligned,
        threshold=LITTLE,
        more="below",
        is_signed=True,
        range=DIFFERENCE,
        words=_name_best_aligned,
    ),
    Finding(
        "Some head follows arcs far beyond what its distances explain.",
        "not in the paper",
        "alignment less what its distances give is above 0.1, the head chosen on other documents",
        NEEDS,
        _best,
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
        _mean,
        is_signed=True,
        range=DIFFERENCE,
        words=_say_mean,
    ),
)
