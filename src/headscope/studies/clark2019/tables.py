"""Layers, heads, behaviours and neighbours in numbers, from a result."""

from typing import Any

import numpy as np
import xarray as xr

from headscope.head import name_in_paper
from headscope.observe.batch import SPECIAL
from headscope.results.statements import Tabulation, heads_table, layers_table
from headscope.results.tables import HeadName, MeasureColumn, measure_columns

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
OFFSET_NAMES = {-1: "previous token", 0: "same token", 1: "next token"}
Row = dict[str, Any]


def _columns(result: xr.Dataset) -> list[MeasureColumn]:
    # Those of the surface part; the baselines of the relations have further ones.
    measured = result["offset_share"].dropna("offset", how="all")["offset"].values.tolist()
    offsets = {OFFSET_NAMES.get(at, f"offset {at:+d}"): {"offset": str(at)} for at in measured}
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
    layers_table("Means over the heads.", _columns),
    heads_table(_columns, name_in_paper),
    Tabulation(
        "neighbours",
        "Nearest heads",
        "For every head those that diverge least from it, in nats per row; heads in the order of "
        "the cluster tree.",
        ("nearest_head",),
        neighbour_rows,
    ),
)
