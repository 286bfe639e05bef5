"""The metrics of clark2019, what has to be left out, and what follows from the values."""

import json
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from headscope.errors import RunError
from headscope.metrics import induction, surface
from headscope.metrics.behaviour import Thresholds, behaviour
from headscope.metrics.divergence.heads import HeadDivergence
from headscope.metrics.examples import ExampleMap
from headscope.metrics.gradient import HeadGradient, why_no_gradient
from headscope.metrics.metric import Metric
from headscope.model.display import display
from headscope.studies.clark2019.surface.delimiters import find_delimiters
from headscope.studies.clark2019.surface.inputs import (
    longest_period,
    repeated_inputs,
    segment_inputs,
    segments_of,
)
from headscope.studies.study import Part, Setup

ALWAYS = (-1, 0, 1)  # offsets of the paper

NO_PARAGRAPHS = (
    "the corpus marks no paragraphs, so a segment is two consecutive sentences of a document"
)
NOT_ASKED = "left out as asked (gradients=False)"
NO_TARGET = "the study reads segments, so only the encoder has input"


def left_out(setup: Setup) -> dict[str, str]:
    """Variables that this model or corpus cannot support, with the reason."""
    missing: dict[str, str] = {}
    if segments_of(setup.corpus).unit == "sentences":
        missing["paragraphs"] = NO_PARAGRAPHS
    missing |= _without_delimiters(setup)
    reason = why_no_gradient(setup.model) if setup.options["gradients"] else NOT_ASKED
    if reason is not None:
        missing["gradient"] = reason
    if setup.model.is_encoder_decoder:
        missing |= dict.fromkeys(("stack decoder", "stack cross"), NO_TARGET)
    return missing


def parts(setup: Setup) -> tuple[Part, ...]:
    """Segments for everything but the scores on repeated sequences."""
    read_thresholds(setup.options)  # a mistake is said before anything is computed
    of_segments = Part(segment_inputs, (*_of_surface(setup), *_of_heads(setup)))
    start = int(find_delimiters(setup.model).cls is not None)
    scores = induction.repetitions(setup.grid, longest_period(setup), start)
    return of_segments, Part(repeated_inputs, scores, of_corpus=False)


def offsets(setup: Setup) -> tuple[int, ...]:
    """The offsets asked for, with the paper's among them."""
    asked = setup.options["offsets"]
    if not isinstance(asked, list) or not all(isinstance(offset, int) for offset in asked):
        raise RunError(f"offsets must be a list of whole numbers such as [-2, 2], not {asked!r}.")
    return tuple(sorted({*ALWAYS, *asked}))


def read_thresholds(options: Mapping[str, Any]) -> Thresholds:
    """The paper's thresholds, those given in the options changed."""
    given, known = options["thresholds"], vars(Thresholds())
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise RunError(f"There is no threshold {unknown[0]!r}; there are {', '.join(known)}.")
    return Thresholds(**given)


def derive(result: xr.Dataset) -> xr.Dataset:
    """Add the label of every head, the sink rate, and what could not be laid out."""
    options = json.loads(result.attrs["options"])
    labels = behaviour(_measured(result), read_thresholds(options))
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
    return result.assign(behaviour=(("layer", "head"), labels), **lines).assign_attrs(attributes)


LINES = ("uniform_entropy", "visible_uniform_entropy")


def _measured(result: xr.Dataset) -> dict[str, np.ndarray]:
    offset, special = result["offset_share"], result["special_share"]
    found = {"next": offset.sel(offset=1), "previous": offset.sel(offset=-1)}
    found |= {"broad": result["entropy"]}
    found |= {name: special.sel(special=name) for name in special["special"].values.tolist()}
    return {name: values.transpose("layer", "head").values for name, values in found.items()}


def _of_surface(setup: Setup) -> list[Metric]:
    grid = setup.grid
    metrics: list[Metric] = [
        surface.offset_shares(grid, offsets(setup)),
        surface.special_shares(grid, find_delimiters(setup.model).absent),
        surface.sep_to_sep(grid),
        surface.other_to_sep(grid),
        surface.entropies(grid),
        surface.entropies_from_cls(grid),
        surface.confidences(grid),
        surface.first_token_shares(grid),
        surface.uniform_line(),
    ]
    return [*metrics, surface.visible_uniform_line()] if setup.model.is_causal else metrics


def _of_heads(setup: Setup) -> list[Metric]:
    tokens = partial(display, setup.model.tokenizer)
    metrics: list[Metric] = [
        HeadDivergence(setup.grid, setup.seed),
        ExampleMap(setup.grid, tokens, setup.options["example_tokens"]),
    ]
    if "gradient" not in left_out(setup):
        share = setup.options["masked_share"]
        metrics.append(HeadGradient(setup.grid, setup.seed, share))
    return metrics


def _without_delimiters(setup: Setup) -> dict[str, str]:
    needs = {"cls": ("special_share cls", "entropy_from_cls"),
             "sep": ("special_share sep", "sep_to_sep", "other_to_sep")}  # fmt: skip
    names = {"cls": "neither [CLS] nor a token that begins a text",
             "sep": "neither [SEP] nor a token that ends a text"}  # fmt: skip
    return {
        variable: f"the tokenizer of {setup.model.name} has {names[absent]}"
        for absent in find_delimiters(setup.model).absent
        for variable in needs[absent]
    }
