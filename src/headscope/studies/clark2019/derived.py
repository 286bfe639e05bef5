"""What follows from the variables of clark2019 alone: names of heads, the sink rate, two lines.

A head is named after what it does by its measured values (Clark et al. 2019, Fig. 6).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from headscope.metrics.where import surface
from headscope.results.findings import names_where
from headscope.results.measure import Measure
from headscope.results.statements import Tabulation
from headscope.studies.clark2019.left_out import drop_uncounted
from headscope.studies.clark2019.words.choices import name_linguistic

OTHER = "other"

BEHAVIOUR = Measure(
    "behaviour",
    title="Behaviour",
    meaning="A name for what the head mostly does.",
    formula="next or previous > 0.5, broad: entropy > 3.8, [CLS], [SEP] or punctuation > 0.6, else "
    "other; later ones win, and a relation or coreference that the head finds wins over all",
    reference="Clark et al. 2019, Fig. 6",
    unit="",
    range="names",
    cost="from the variables alone",
    with_errors=False,
)
LINES = ("uniform_entropy", "visible_uniform_entropy")

MEASURES = (BEHAVIOUR, surface.SINK_RATE)


@dataclass(frozen=True)
class Thresholds:
    """What a head must exceed to be named; the defaults are those of the released notebook."""

    next: float = 0.5
    previous: float = 0.5
    broad: float = 3.8  # nats
    cls: float = 0.6
    sep: float = 0.6
    punct: float = 0.6


def behaviour(
    measured: Mapping[str, Float[np.ndarray, "layer head"]], thresholds: Thresholds
) -> np.ndarray:
    """The label of every head; of several that fit the last one in `Thresholds` wins.

    `measured` maps a label to its values; a label without values, or with NaN, names no head.
    """
    shape = next(iter(measured.values())).shape
    labels = np.full(shape, OTHER, dtype="<U16")
    for name, threshold in vars(thresholds).items():
        if name in measured:
            labels[measured[name] > threshold] = name
    return labels


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
        "sink_rate": surface.sink_rate(
            result["first_token_share"].values, options["sink_threshold"]
        ),
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


def behaviour_rows(result: xr.Dataset) -> list[dict[str, Any]]:
    """One row per behaviour: which heads have it, and how many; first those without any."""
    labels = result["behaviour"].transpose("layer", "head").values
    plain = {"behaviour": OTHER, "heads": int((labels == OTHER).sum()), "which": "no clear pattern"}
    rows: list[dict[str, Any]] = [plain]
    for label in sorted({*labels.ravel().tolist()} - {OTHER}):
        names = names_where(result, labels == label)
        rows.append({"behaviour": label, "heads": len(names), "which": ", ".join(names)})
    return rows


TABLE = Tabulation(
    "behaviours",
    "Behaviours",
    "Heads whose values exceed the thresholds of the paper's released notebook; of several "
    "that fit, the later in the order next, previous, broad, [CLS], [SEP], punctuation counts.",
    ("behaviour",),
    behaviour_rows,
)
