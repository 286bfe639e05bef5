"""Heads, layers, tags and relations in numbers, from a result."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from headscope.head import Head, name_head
from headscope.results.claims import Replicates, on_all
from headscope.results.intervals import DIFFERENCE, Interval, find_interval
from headscope.results.measure import BY_LAYER
from headscope.results.ranks import top_heads
from headscope.results.statements import Tabulation, heads_table
from headscope.results.tables import (
    HEAD_MEAN,
    HeadName,
    MeasureColumn,
    column_at,
    measure_columns,
    measured_cells,
    rows_of,
)
from headscope.studies.vig2019.claims import EITHER, SYNTAX, best_beyond, beyond
from headscope.studies.vig2019.specialists import Specialist, find_specialists

COLUMNS = (
    MeasureColumn("null_share"),
    MeasureColumn("dependency_alignment", at={"form": "either"}),
    MeasureColumn("dependency_expected", at={"form": "either"}),
    MeasureColumn("variability"),
    MeasureColumn("distance"),
    MeasureColumn("entropy"),
)
HELD_OUT = (
    "Held out: chosen on half of the documents and scored on the other, with 95 % intervals; "
    "factor: best share / mean share."
)


def layer_rows(result: xr.Dataset) -> list[dict[str, Any]]:
    """One row per layer: pooled values and means of head values."""
    columns = [
        each for each in measure_columns(result, COLUMNS) if each.variable + BY_LAYER in result
    ]
    cells: dict[str, list[Any]] = {"layer": result.variables["layer"].values.tolist()}
    for column in columns:
        for suffix in (BY_LAYER, HEAD_MEAN):
            name = f"{column.variable}{suffix}"
            if name in result:
                cells[name] = measured_cells(result, column, suffix, ("layer",))
    return rows_of(cells)


def label_rows(
    result: xr.Dataset, axis: str, title: str, sides: Mapping[str, str]
) -> list[dict[str, Any]]:
    """One row per tag or relation: frequency, mean shares, and the most specialised heads.

    `sides` has the shares and what the names of their cells begin with.
    """
    labels = result.variables[axis].values.tolist()
    frequency = column_at(result, f"{axis}_frequency", (axis,))
    rows = [
        {title: label, "frequency": often} for label, often in zip(labels, frequency, strict=True)
    ]
    for variable, begin in sides.items():
        even = column_at(result, f"{variable}_even", (axis,))
        found = map(_best_cells, find_specialists(result, variable, axis), even)
        for row, cells in zip(rows, found, strict=True):
            row |= {f"{begin}{key}": value for key, value in cells.items()}
    order = np.argsort(-np.array(frequency), kind="stable").tolist()
    return [rows[place] for place in order]


def _best_cells(found: Specialist, even: float) -> dict[str, Any]:
    """The head that pays most to a label: here, and of the documents that did not choose it."""
    return {
        "mean": found.mean,
        "even": even,
        "best": found.share,
        "head": HeadName(name_head(found.layer, found.head)),
        "factor": found.times,
        "held_out": found.held_out,
        "held_out_factor": found.factor,
    }


TABLES = (
    Tabulation(
        "tags",
        "Parts of speech",
        "How often each tag occurs, what heads pay to and from it on average, what even attention "
        "would pay, and the head that pays most. " + HELD_OUT,
        ("pos_to", "pos_from"),
        partial(label_rows, axis="tag", title="tag", sides={"pos_to": "to_", "pos_from": "from_"}),
    ),
    Tabulation(
        "relations",
        "Relations",
        "How often each relation occurs, what its tokens receive on average and from even "
        "attention, and the head that pays most. " + HELD_OUT,
        ("deprel_to",),
        partial(label_rows, axis="deprel", title="relation", sides={"deprel_to": ""}),
    ),
    Tabulation(
        "layers",
        "Layers",
        "Values pooled over the heads of each layer, and plain means of the head values.",
        (),
        layer_rows,
    ),
    heads_table(partial(measure_columns, chosen=COLUMNS)),
)

SHOWN = 12  # heads in the table of syntax


def syntax_rows(result: xr.Dataset) -> list[dict[str, Any]]:
    """The heads furthest beyond their distances, after the one that other documents choose."""
    data = Replicates(result)
    margins, elsewhere = beyond(data), best_beyond(data).find(is_share=False)
    rows: list[dict[str, Any]] = []
    for layer, head, value in top_heads(on_all(margins), SHOWN):
        if np.isfinite(value):
            of_head = margins.sel(layer=layer, head=head)
            estimate = find_interval(of_head, data.groups, DIFFERENCE)
            rows.append(_row(data, Head(layer, head), estimate))
    nan = float("nan")
    held_out = {"head": "best head, held out", "alignment": nan, "expected": nan}
    return [{**held_out, "beyond": elsewhere}, *rows] if rows else []


def _row(data: Replicates, head: Head, estimate: Interval) -> dict[str, Any]:
    place = head._asdict()
    aligned, expected = (float(on_all(data.at(name, **EITHER)).sel(place)) for name in SYNTAX)
    return {
        "head": HeadName(f"{head}"),
        "alignment": aligned,
        "expected": expected,
        "beyond": estimate,
    }


SYNTAX_TABLE = Tabulation(
    "syntax",
    "Syntax beyond proximity",
    "Alignment with dependency arcs (either form), what a head that looks equally far would have "
    "whatever the words are, and the difference with its 95 % interval: the heads with the largest "
    "one. Held out: chosen on half of the documents and scored on the other.",
    SYNTAX,
    syntax_rows,
)
