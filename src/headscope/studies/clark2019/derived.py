"""What follows from the variables of clark2019 alone: labels of heads, the sink rate, two lines."""

import json

import numpy as np
import xarray as xr

from headscope.metrics.behaviour import Thresholds, behaviour
from headscope.metrics.sinks import sink_rate
from headscope.results.measure import Measure
from headscope.studies.clark2019.left_out import drop_uncounted
from headscope.studies.clark2019.words.best import name_linguistic

LINES = ("uniform_entropy", "visible_uniform_entropy")

BEHAVIOUR = Measure(
    name="behaviour",
    title="Behaviour",
    meaning="What the head does most, in a word.",
    formula="next or previous > 0.5, broad: entropy > 3.8, [CLS], [SEP] or punctuation > 0.6, else "
    "other; later ones win, and a relation or coreference that the head finds wins over all",
    reference="Clark et al. 2019, Fig. 6",
    unit="",
    range="names",
    cost="from other variables alone",
    with_errors=False,
)
SINK_RATE = Measure(
    name="sink_rate",
    title="Sink rate",
    meaning="Share of heads that rest on the first token.",
    formula="heads with first_token_share > 0.3 / heads",
    reference="Gu et al. 2024",
    cost="from first_token_share alone",
    with_errors=False,
)
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
