"""One measure's slice in two runs, for the page that compares them."""

from typing import Any

import numpy as np
import xarray as xr

from headscope.compare import MeasureDifference, Row, compare_results
from headscope.server.jsonable import number, numbers
from headscope.server.measures import MARK, cut
from headscope.server.runs import Run

PARTS = ("first", "second", "difference", "low", "high", "effect")


def difference_picture(a: Run, b: Run, spec: str) -> dict[str, Any]:
    """Values, differences and intervals of every head."""
    chosen = cut(a.data, spec)
    cut(b.data, spec)
    keep = [
        name for name in (chosen.name, f"{chosen.name}_se") if name in a.data and name in b.data
    ]
    found = compare_results(a.data[keep], b.data[keep], names=(a.slug, b.slug))
    one = next(measure for measure in found.measures if measure.name == chosen.name)
    return {
        "spec": chosen.spec,
        "title": chosen.title,
        "confidence": found.confidence,
        "layers": [int(layer) for layer in a.data["layer"].values],
        "heads": [int(head) for head in a.data["head"].values],
        **{part: numbers(_at(one, part, chosen.at)) for part in PARTS},
    }


def row_json(row: Row) -> dict[str, Any]:
    """A row of the table, with the spec that opens its picture."""
    values = {part: number(getattr(row, part)) for part in PARTS}
    name = {"measure": row.measure, "at": list(row.at), "spec": MARK.join((row.measure, *row.at))}
    return {**name, "head": f"L{row.layer}H{row.head}", "clear": row.is_clear, **values}


def _at(one: MeasureDifference, part: str, at: dict[str, str]) -> np.ndarray:
    array: xr.DataArray = getattr(one, part)
    for axis, label in at.items():
        places = [str(known) for known in array[axis].values]
        array = array.isel({axis: places.index(label)})
    return array.transpose("layer", "head").values
