"""What follows from the variables of clark2019 alone: labels of heads, the sink rate, two lines."""

import json

import numpy as np
import xarray as xr

from headscope.metrics.behaviour import BEHAVIOUR, Thresholds, behaviour
from headscope.metrics.surface import SINK_RATE, sink_rate
from headscope.studies.clark2019.left_out import drop_uncounted
from headscope.studies.clark2019.words.choices import name_linguistic

LINES = ("uniform_entropy", "visible_uniform_entropy")

MEASURES = (BEHAVIOUR, SINK_RATE)


def derive(result: xr.Dataset) -> xr.Dataset:
    """Add the label of every head, the sink rate, and what could not be laid out."""
    result = drop_uncounted(result)
    options = json.loads(result.attrs["options"])
    labels = behaviour(_measured(result), Thresholds(**options["thresholds"]))
    missing = json.loads(result.attrs["left_out"])
    if "no_map" in result["head_divergence"].attrs:
        missing["head_position"] = result["head_divergence"].attrs["no_map"]
    attributes = {
        "left_out": json.dumps(missing),
        "sink_rate": sink_rate(result["first_token_share"].values, options["sink_threshold"]),
    }
    lines = {name: result.attrs[name] for name in LINES if name in result.attrs}
    labelled = result.assign(behaviour=(("layer", "head"), labels), **lines)
    return name_linguistic(labelled.assign_attrs(attributes), options["few"])


def _measured(result: xr.Dataset) -> dict[str, np.ndarray]:
    offset, special = result["offset_share"], result["special_share"]
    found = {"next": offset.sel(offset=1), "previous": offset.sel(offset=-1)}
    found |= {"broad": result["entropy"]}
    found |= {name: special.sel(special=name) for name in special["special"].values.tolist()}
    return {name: values.transpose("layer", "head").values for name, values in found.items()}
