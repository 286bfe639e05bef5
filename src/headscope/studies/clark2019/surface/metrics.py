"""The metrics of clark2019's first part (§3): what heads do on the surface."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from headscope.errors import RunError
from headscope.metrics import surface
from headscope.metrics.behaviour import Thresholds
from headscope.metrics.example_map import ExampleMap
from headscope.metrics.head_divergence import HeadDivergence
from headscope.metrics.head_gradient import HeadGradient
from headscope.metrics.metric import Metric
from headscope.model.display import display
from headscope.studies.clark2019.left_out import why_no_gradients
from headscope.studies.clark2019.surface.delimiters import find_delimiters
from headscope.studies.clark2019.surface.inputs import (
    longest_period,
    repeated_inputs,
    segment_inputs,
)
from headscope.studies.study import Part, Setup

ALWAYS = (-1, 0, 1)  # offsets of the paper


def parts(setup: Setup) -> tuple[Part, ...]:
    """Segments for everything but the scores on repeated sequences."""
    read_thresholds(setup.options)  # a mistake is said before anything is computed
    of_segments = Part(segment_inputs, (*_of_surface(setup), *_of_heads(setup)))
    start = int(find_delimiters(setup.model).cls is not None)
    scores = surface.repetitions(setup.grid, longest_period(setup), start)
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
    if why_no_gradients(setup) is None:
        share = setup.options["masked_share"]
        metrics.append(HeadGradient(setup.grid, setup.seed, share))
    return metrics
