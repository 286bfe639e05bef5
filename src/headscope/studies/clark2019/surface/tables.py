"""The tables of clark2019's first part: behaviours, heads, layers, neighbours."""

from typing import Any

import numpy as np
import xarray as xr

from headscope.heads import name_head, name_in_paper
from headscope.metrics.behaviour import OTHER
from headscope.observe.batch import SPECIAL
from headscope.studies.clark2019.surface.figures import OFFSET_NAMES, measured_offsets
from headscope.studies.study import Table

_OF_HEADS = (
    "entropy",
    "entropy_from_cls",
    "sep_to_sep",
    "other_to_sep",
    "confidence",
    "first_token_share",
    "previous_token_score",
    "duplicate_token_score",
    "induction_score",
)
Row = dict[str, Any]


def behaviour_rows(result: xr.Dataset) -> list[Row]:
    """One row per behaviour: which heads have it, and how many; first those without any."""
    labels = result["behaviour"].transpose("layer", "head").values
    layers = result["layer"].values
    found = {label: labels == label for label in sorted(set(labels.ravel().tolist()))}
    plain = {"behaviour": OTHER, "heads": int((labels == OTHER).sum()), "which": "no clear pattern"}
    return [plain] + [
        {"behaviour": label, "heads": int(chosen.sum()), "which": _which(chosen, layers)}
        for label, chosen in found.items()
        if label != OTHER
    ]


def _which(chosen: np.ndarray, layers: np.ndarray) -> str:
    return ", ".join(
        name_head(int(layers[layer]), int(head)) for layer, head in np.argwhere(chosen)
    )


def head_rows(result: xr.Dataset) -> list[Row]:
    """One row per head with every value and its standard error."""
    places = [
        result.sel(layer=layer, head=head) for layer in result["layer"] for head in result["head"]
    ]
    return [
        {
            "head": name_in_paper(int(place["layer"]), int(place["head"])),
            "behaviour": str(place["behaviour"].item()),
            **_values(place, ""),
        }
        for place in places
    ]


def layer_rows(result: xr.Dataset) -> list[Row]:
    """One row per layer: means over its heads with standard errors."""
    return [
        {"layer": int(layer)} | _values(result.sel(layer=layer), "_by_layer")
        for layer in result["layer"].values
    ]


def _values(place: xr.Dataset, suffix: str) -> Row:
    row: Row = {}
    for offset in measured_offsets(place, suffix):
        name = OFFSET_NAMES.get(offset, f"offset {offset:+d}")
        row |= _pair(place, f"offset_share{suffix}", name, offset=offset)
    for special in SPECIAL:
        row |= _pair(place, f"special_share{suffix}", special, special=special)
    for name in _OF_HEADS:
        row |= _pair(place, f"{name}{suffix}", name)
    for target in place["target"].values.tolist() if "gradient" in place else ():
        row |= _pair(place, f"gradient{suffix}", f"gradient {target}", target=target)
    return row


def _pair(place: xr.Dataset, variable: str, name: str, **at: Any) -> Row:
    value, error = (float(place[key].sel(at)) for key in (variable, f"{variable}_se"))
    return {name: value, f"{name} se": error}


def neighbour_rows(result: xr.Dataset) -> list[Row]:
    """For every head the heads nearest to it, with their mean divergence per row."""
    matrix = result["head_divergence"] / result["head_divergence"].attrs["rows"]
    return [
        {"head": unit}
        | {
            f"{rank + 1}.": f"{other} ({float(matrix.sel(unit=unit, other=other)):.3f})"
            for rank, other in enumerate(result["nearest_head"].sel(unit=unit).values.tolist())
        }
        for unit in result["unit"].values[np.argsort(result["head_order"].values)].tolist()
    ]


TABLES = (
    Table(
        "behaviours",
        "Behaviours",
        "Heads whose values exceed the thresholds of the paper; of several that fit, the later in "
        "the order next, previous, broad, [CLS], [SEP], punctuation counts.",
        ("behaviour",),
        behaviour_rows,
    ),
    Table("layers", "Layers", "Means over the heads, with standard errors.", (), layer_rows),
    Table("heads", "Heads", "Every head, with standard errors over segments.", (), head_rows),
    Table(
        "neighbours",
        "Nearest heads",
        "For every head those that diverge least from it, in nats per row; heads in the order of "
        "the cluster tree.",
        ("nearest_head",),
        neighbour_rows,
    ),
)
