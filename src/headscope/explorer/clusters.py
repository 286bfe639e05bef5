"""The map of heads: where each lies, and how it behaves."""

from typing import Any

import xarray as xr

from headscope.explorer.jsonable import number
from headscope.explorer.refusal import RefusedError
from headscope.results.dataset import left_out


def clusters(data: xr.Dataset) -> dict[str, Any]:
    """Position and behaviour of every head, or a RefusedError that says why there is no map."""
    if "head_position" not in data:
        raise RefusedError(409, _why_no_map(data))
    positions = data["head_position"].transpose("unit", "axis")
    labels = _behaviours(data)
    return {
        "heads": [
            {
                "name": str(name),
                "x": number(place[0]),
                "y": number(place[1]),
                "behaviour": labels.get(str(name)),
            }
            for name, place in zip(positions["unit"].values, positions.values, strict=True)
        ],
        "behaviours": sorted(set(labels.values())),
        "stress": number(data["head_position"].attrs.get("stress", float("nan"))),
    }


def _why_no_map(data: xr.Dataset) -> str:
    if "head_divergence" not in data:
        known = left_out(data).get("head_divergence")
        return known or "This study has no map of heads; `headscope study clark2019` makes one."
    return f"There is no map of these heads: {data['head_divergence'].attrs.get('no_map')}."


def _behaviours(data: xr.Dataset) -> dict[str, str]:
    if "behaviour" not in data:
        return {}
    array = data["behaviour"].transpose("layer", "head")
    return {
        f"L{int(layer)}H{int(head)}": str(array.values[i, j])
        for i, layer in enumerate(array["layer"].values)
        for j, head in enumerate(array["head"].values)
    }
