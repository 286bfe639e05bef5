"""The tables of clark2019's first part: behaviours, heads, layers, neighbours."""

from typing import Any

import numpy as np
import xarray as xr

from headscope.head import name_head, name_in_paper
from headscope.metrics.behaviour import OTHER
from headscope.observe.batch import SPECIAL
from headscope.results.slices import Column, columns_of, head_cells, layer_cells
from headscope.results.statements import Tabulation
from headscope.studies.clark2019.surface.figures import OFFSET_NAMES, measured_offsets

WHOLE = (
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
ERROR = " se"
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
    columns, labels = _columns(result), result["behaviour"]
    return [
        {
            "head": name_in_paper(layer, head),
            "behaviour": str(labels.sel(layer=layer, head=head).item()),
            **head_cells(result, columns, layer, head, ERROR),
        }
        for layer in result["layer"].values.tolist()
        for head in result["head"].values.tolist()
    ]


def layer_rows(result: xr.Dataset) -> list[Row]:
    """One row per layer: means over its heads with standard errors."""
    columns = _columns(result)
    return [
        {"layer": layer} | layer_cells(result, columns, layer, ERROR)
        for layer in result["layer"].values.tolist()
    ]


def _columns(result: xr.Dataset) -> list[Column]:
    offsets = {
        OFFSET_NAMES.get(offset, f"offset {offset:+d}"): {"offset": str(offset)}
        for offset in measured_offsets(result)
    }
    targets = result["target"].values.tolist() if "gradient" in result else ()
    return columns_of(
        result,
        [
            *(Column("offset_share", name, at) for name, at in offsets.items()),
            *(Column("special_share", name, {"special": name}) for name in SPECIAL),
            *map(Column, WHOLE),
            *(Column("gradient", f"gradient {name}", {"target": name}) for name in targets),
        ],
    )


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
    Tabulation(
        "behaviours",
        "Behaviours",
        "Heads whose values exceed the thresholds of the paper's released notebook; of several "
        "that fit, the later in the order next, previous, broad, [CLS], [SEP], punctuation counts.",
        ("behaviour",),
        behaviour_rows,
    ),
    Tabulation("layers", "Layers", "Means over the heads, with standard errors.", (), layer_rows),
    Tabulation("heads", "Heads", "Every head, with standard errors over segments.", (), head_rows),
    Tabulation(
        "neighbours",
        "Nearest heads",
        "For every head those that diverge least from it, in nats per row; heads in the order of "
        "the cluster tree.",
        ("nearest_head",),
        neighbour_rows,
    ),
)
