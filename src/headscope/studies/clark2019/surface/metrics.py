"""The metrics of clark2019's first part (§3): what heads do on the surface."""

from functools import partial

from headscope.metrics import induction, norms, surface
from headscope.metrics.divergence.heads import HeadDivergence
from headscope.metrics.examples import ExampleMap
from headscope.metrics.gradient import HeadGradient
from headscope.metrics.metric import Metric
from headscope.model.inputs.tokens import display_text
from headscope.studies.clark2019.left_out import why_no_gradients
from headscope.studies.clark2019.surface.inputs import (
    find_delimiters,
    longest_period,
    repeated_inputs,
    segment_inputs,
    segment_reach,
)
from headscope.studies.importance import with_importance
from headscope.studies.study import Part, Setup

ALWAYS = (-1, 0, 1)  # offsets of the paper


def parts(setup: Setup) -> tuple[Part, ...]:
    """Segments for everything but the scores on repeated sequences."""
    metrics = (*_of_surface(setup), *_of_heads(setup))
    of_segments = with_importance(setup, Part(segment_inputs, metrics, reach=segment_reach))
    start = int(find_delimiters(setup.model).cls is not None)
    scores = induction.repetitions(setup.grid, longest_period(setup), start)
    return of_segments, Part(repeated_inputs, scores, of_corpus=False)


def offsets(setup: Setup) -> tuple[int, ...]:
    """The offsets asked for, with the paper's among them."""
    return tuple(sorted({*ALWAYS, *setup.options["offsets"]}))


def _of_surface(setup: Setup) -> list[Metric]:
    grid = setup.grid
    metrics: list[Metric] = [
        surface.offset_shares(grid, offsets(setup)),
        surface.even_offset_shares(offsets(setup)),
        surface.special_shares(grid, find_delimiters(setup.model).absent),
        surface.even_special_shares(),
        surface.sep_to_sep(grid),
        surface.other_to_sep(grid),
        surface.entropies(grid),
        surface.entropies_from_cls(grid),
        surface.confidences(grid),
        surface.first_token_shares(grid),
        surface.even_first_token_share(),
        surface.uniform_line(),
    ]
    if setup.reading == "both":
        metrics.append(norms.special_shares(grid, find_delimiters(setup.model).absent))
    return [*metrics, surface.visible_uniform_line()] if setup.model.is_causal else metrics


def _of_heads(setup: Setup) -> list[Metric]:
    tokens = partial(display_text, setup.model.tokenizer)
    metrics: list[Metric] = [
        HeadDivergence(setup.grid, setup.seed),
        ExampleMap(setup.grid, tokens, setup.options["example_tokens"]),
    ]
    if why_no_gradients(setup) is None:
        share = setup.options["masked_share"]
        metrics.append(HeadGradient(setup.grid, setup.seed, share))
    return metrics
