"""Two runs for the page that compares them: the largest differences, and one measure in both."""

from functools import lru_cache
from typing import Any

import numpy as np
import xarray as xr

from headscope.explorer.jsonable import number, numbers
from headscope.explorer.measures import MARK, cut
from headscope.explorer.runs import Run
from headscope.results.compare import (
    MeasureDifference,
    Row,
    clear_and_all,
    compare_results,
    largest,
)

MOST_ROWS = 100
PARTS = ("first", "second", "difference", "low", "high", "effect")


@lru_cache(maxsize=16)
def differences(a: Run, b: Run) -> dict[str, Any]:
    """The largest differences over all shared measures, and how many are clear of zero."""
    found = compare_results(a.data, b.data, names=(a.slug, b.slug))
    clear, count = clear_and_all(found)
    return {
        "confidence": found.confidence,
        "notes": list(found.notes),
        "measures": [one.name for one in found.measures],
        "clear": clear,
        "intervals": count,
        "rows": [row_json(row) for row in largest(found, MOST_ROWS)],
    }


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
