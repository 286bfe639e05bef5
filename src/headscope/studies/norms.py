"""Raw attention and attention weighted by what it gives, side by side: does the sink survive?"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import xarray as xr

from headscope.results.findings import Finding, Found, whole
from headscope.results.measure import select
from headscope.results.statements import Tabulation
from headscope.studies.option import Option

OPTION = Option(
    "weights",
    str,
    "raw",
    "attention as it is, times the norm of what each token gives, or the main measures of both",
    choices=("raw", "norm", "both"),
)
HALF = 0.5
NOTES = {
    "norm": "Every weight a[i, j] is here a[i, j]·‖v_j W_O‖, each row divided by its sum "
    "(Kobayashi et al. 2020); gradients are those of the weights as they are. ",
    "both": "Measures whose name ends in norm are of a[i, j]·‖v_j W_O‖, each row divided by its "
    "sum (Kobayashi et al. 2020). ",
}
Sliced = tuple[str, Mapping[str, str]]  # a measure, and where


def note(result: xr.Dataset) -> str:
    """How the weights of a result are read, where it is not as they are."""
    return NOTES.get(result.attrs.get("weights", "raw"), "")


def layer_table(columns: Mapping[str, Sliced]) -> Tabulation:
    """Both readings of some measures, the first of them always, by layer, heads pooled."""
    first, _ = next(iter(columns.values()))
    return Tabulation(
        "readings",
        "Attention and what it gives",
        "Pooled over the heads of each layer, with standard errors: shares of attention, and of "
        "attention times the norm of what each token gives (‖a·v W_O‖).",
        (f"{first}_norm",),
        partial(_rows, columns=columns),
    )


def _rows(result: xr.Dataset, columns: Mapping[str, Sliced]) -> list[dict[str, Any]]:
    return [
        {"layer": layer} | _cells(result.sel(layer=layer), columns)
        for layer in result["layer"].values.tolist()
    ]


def _cells(place: xr.Dataset, columns: Mapping[str, Sliced]) -> dict[str, float]:
    row: dict[str, float] = {}
    known = {t: (name, at) for t, (name, at) in columns.items() if f"{name}_norm" in place}
    for title, (name, at) in known.items():
        for end, variable in (("", name), (" norm", f"{name}_norm")):
            row[f"{title}{end}"] = float(select(place[f"{variable}_by_layer"], at))
            row[f"{title}{end} se"] = float(select(place[f"{variable}_by_layer_se"], at))
    return row


def sink_finding(what: str, name: str, at: Mapping[str, str]) -> Finding:
    """Whether less than half is left of what raw attention pays."""
    return Finding(
        f"Weighted by what it gives, {what} gets less than half of what it gets in attention.",
        "Kobayashi et al. 2020: values of special tokens are small",
        "mean over heads with norms / mean over heads without, below 0.5; needs weights=both",
        (name, f"{name}_norm"),
        partial(_left, name=name, at=at),
        threshold=HALF,
        more="below",
        unit="×",
        range=(0.0, float("inf")),
        words=partial(_say, name=name, at=at),
    )


def _left(data: xr.Dataset, name: str, at: Mapping[str, str]) -> xr.DataArray:
    raw, norm = _means(data, name, at)
    return norm / raw


def _say(data: xr.Dataset, found: Found, name: str, at: Mapping[str, str]) -> str:
    raw, norm = (float(whole(each)) for each in _means(data, name, at))
    return f"{norm:.3f} of what is given, {raw:.3f} of attention"


def _means(data: xr.Dataset, name: str, at: Mapping[str, str]) -> tuple[xr.DataArray, xr.DataArray]:
    raw, norm = (select(data[each], at).mean(("layer", "head")) for each in (name, f"{name}_norm"))
    return raw, norm
