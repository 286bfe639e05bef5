"""What the loss says without a head, in a sentence."""

import numpy as np
import pytest
import xarray as xr

from headscope.head import Head
from headscope.metrics.importance import MEAN_REPLACEMENT
from headscope.metrics.metric import GROUP, Axis, label, ratio_variables
from headscope.portrait.cost import MEASURES
from headscope.results.cost import PLACES, WHERE, cost_sentence
from headscope.results.measure import attach


def lost(losses: list[float], spread: float) -> xr.Dataset:
    """The losses of the heads of a layer in 32 documents of 10 tokens each."""
    random = np.random.default_rng(0).normal(size=(32, 1, len(losses)))
    random = spread * (random - random.mean(0))
    axes = (GROUP, Axis("layer", (0,)), Axis("head", range(len(losses))))
    rises = label(10 * (np.array(losses) + random), *axes)
    tokens = label(np.full(32, 10.0), GROUP)
    return attach(
        xr.Dataset(ratio_variables("mean_replacement", rises, tokens)), [MEAN_REPLACEMENT]
    )


@pytest.mark.parametrize(
    ("loss", "sentence"),
    [
        (
            0.2,
            "Replaced by its mean, the loss rises by 0.2 ± 0.003 nats per predicted token; the "
            "median head costs 0.01.",
        ),
        (
            -0.2,
            "Replaced by its mean, the loss falls by 0.2 ± 0.003 nats per predicted token; the "
            "median head costs 0.01.",
        ),
        (
            0.001,
            "Nothing is lost without it: replaced by its mean, the loss changes by 0.001 ± 0.003 "
            "nats per predicted token; the median head costs 0.01.",
        ),
    ],
)
def test_a_cost_is_beside_the_median_head_and_within_its_error_it_is_nothing(
    loss: float, sentence: str
) -> None:
    data = lost([loss, 0.01, 0.01, 0.01, 0.01], 0.01)
    assert cost_sentence(data, Head(0, 0)) == sentence


def test_the_cost_where_the_name_applies_stands_beside_that_elsewhere() -> None:
    data, random = lost([0.2, 0.01], 0.01), np.random.default_rng(1)
    axes = (GROUP, Axis("layer", (0,)), Axis("head", range(2)), Axis("where", PLACES))
    tokens = np.full((32, 1, 2, 2), 10.0)
    tokens[:, 0, 1, 0] = 0  # the name of the second head applies nowhere
    noise = random.normal(size=tokens.shape) * 0.01
    rises = (np.array([0.5, 0.01]) + noise - noise.mean(0)) * tokens
    both = data.assign(ratio_variables(WHERE, label(rises, *axes), label(tokens, *axes)))
    both = attach(both, [MEAN_REPLACEMENT, *MEASURES])
    assert str(cost_sentence(both, Head(0, 0))).endswith(
        " Where its name applies 0.5 ± 0.004, elsewhere 0.01 ± 0.003."
    )
    assert cost_sentence(both, Head(0, 1)) == cost_sentence(data, Head(0, 1))


def test_a_wide_interval_about_zero_is_unclear_and_not_nothing() -> None:
    data = lost([0.001, 0.01, 0.01], 0.1)
    assert str(cost_sentence(data, Head(0, 0))).startswith(
        "It is unclear what is lost without it: replaced by its mean, the loss changes by 0.001 ± "
    )


def test_something_is_lost_where_the_name_applies_though_it_is_little_overall() -> None:
    data, random = lost([0.001, 0.01], 0.01), np.random.default_rng(1)
    axes = (GROUP, Axis("layer", (0,)), Axis("head", range(2)), Axis("where", PLACES))
    tokens = np.full((32, 1, 2, 2), 10.0)
    noise = random.normal(size=tokens.shape) * 0.01
    rises = (np.array([0.5, 0.0]) + noise - noise.mean(0)) * tokens
    both = data.assign(ratio_variables(WHERE, label(rises, *axes), label(tokens, *axes)))
    both = attach(both, [MEAN_REPLACEMENT, *MEASURES])
    assert str(cost_sentence(both, Head(0, 0))).startswith("It is unclear what is lost without it")
    assert str(cost_sentence(data, Head(0, 0))).startswith("Nothing is lost without it")


def test_a_run_without_losses_says_nothing() -> None:
    assert cost_sentence(xr.Dataset(), Head(0, 0)) is None
