"""The tables of luger2026: kinds of heads, layers, heads."""

from typing import Any

import xarray as xr

from headscope.head import name_head
from headscope.results.slices import Column, columns_of, head_cells, layer_cells
from headscope.results.statements import Tabulation
from headscope.studies.luger2026 import kinds

COLUMNS = tuple(
    Column(name)
    for name in (
        "first_share",
        "self_share",
        "previous_share",
        "next_share",
        "delimiter_share",
        "induction",
        "duplicate",
        "entropy",
        "distance",
        "distance_spread",
        "previous_token_score",
        "duplicate_token_score",
        "induction_score",
        "retrieval",
        "successor",
    )
)


def head_rows(result: xr.Dataset) -> list[dict[str, Any]]:
    """One row per head with every value and its standard error."""
    columns, labels = columns_of(result, COLUMNS), result["behaviour"]
    return [
        {
            "head": name_head(layer, head),
            "behaviour": str(labels.sel(layer=layer, head=head).item()),
            **head_cells(result, columns, layer, head),
        }
        for layer in result["layer"].values.tolist()
        for head in result["head"].values.tolist()
    ]


def layer_rows(result: xr.Dataset) -> list[dict[str, Any]]:
    """One row per layer: pooled values with standard errors."""
    columns = columns_of(result, COLUMNS)
    return [
        {"layer": layer} | layer_cells(result, columns, layer)
        for layer in result["layer"].values.tolist()
    ]


TABLES = (
    kinds.TABLE,
    Tabulation("layers", "Layers", "Values of all heads together, with errors.", (), layer_rows),
    Tabulation("heads", "Heads", "Every head, with standard errors over documents.", (), head_rows),
)
