"""Layers, heads, behaviours and neighbours in numbers, from a result."""

from typing import Any

import numpy as np
import xarray as xr

from headscope.head import name_in_paper
from headscope.observe.batch import SPECIAL
from headscope.results.statements import Tabulation
from headscope.results.tables import HeadName, MeasureColumn, head_rows, layer_rows, measure_columns
from headscope.studies.clark2019.figures import measured_offsets, name_offset

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
Row = dict[str, Any]


def _columns(result: xr.Dataset) -> list[MeasureColumn]:
    offsets = {name_offset(each): {"offset": str(each)} for each in measured_offsets(result)}
    targets = result["target"].values.tolist() if "gradient" in result else ()
    return measure_columns(
        result,
        [
            *(MeasureColumn("offset_share", name, at) for name, at in offsets.items()),
            *(MeasureColumn("special_share", name, {"special": name}) for name in SPECIAL),
            *map(MeasureColumn, WHOLE),
            *(MeasureColumn("gradient", f"gradient {name}", {"target": name}) for name in targets),
        ],
    )


def neighbour_rows(result: xr.Dataset) -> list[Row]:
    """For every head the heads nearest to it, with their mean divergence per row."""
    matrix = result["head_divergence"] / result["head_divergence"].attrs["rows"]
    return [
        {"head": HeadName(unit)}
        | {
            f"{rank + 1}.": HeadName(f"{other} ({float(matrix.sel(unit=unit, other=other)):.3f})")
            for rank, other in enumerate(result["nearest_head"].sel(unit=unit).values.tolist())
        }
        for unit in result["unit"].values[np.argsort(result["head_order"].values)].tolist()
    ]


TABLES = (
    Tabulation(
        "layers",
        "Layers",
        "Means over the heads.",
        (),
        lambda result: layer_rows(result, _columns(result)),
    ),
    Tabulation(
        "heads",
        "Heads",
        "Every head.",
        (),
        lambda result: head_rows(result, _columns(result), name_in_paper),
    ),
    Tabulation(
        "neighbours",
        "Nearest heads",
        "For every head those that diverge least from it, in nats per row; heads in the order of "
        "the cluster tree.",
        ("nearest_head",),
        neighbour_rows,
    ),
)
