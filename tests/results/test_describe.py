"""What a head is called: by a fact that explains enough, or by the sink that it rests on."""

from dataclasses import replace

import numpy as np
import pytest

from headscope.results.describe import Description, Gains, HeadMeasures, Sink, describe
from headscope.results.fact_words import FactName


def measures(gain: float, error: float) -> HeadMeasures:
    """A head that gives half of its weight to nouns, where even attention gives a fifth."""
    values = {"weight": 1.5, "gain": gain, "gain_error": error, "share": 0.5, "even": 0.2,
              "when": 0.5, "when_error": 0.01, "position": 0.2, "cases": 1000.0}  # fmt: skip
    gains = Gains(**{name: np.array([value]) for name, value in values.items()})
    names = [FactName("word_class", "to NOUN")]
    head = HeadMeasures.of_facts(names, gains, gains, gains)
    return replace(head, width=0.5, width_rest=0.5, column=0.1, column_error=0.01)


def spread(sink_share: float) -> Description:
    """The description of a head that leaves so much on [CLS] and spreads the rest evenly."""
    sink = Sink("[CLS]", "[CLS]", sink_share, 0.05)
    return describe(replace(measures(0.0, 0.01), sink=sink, width_rest=0.95))


@pytest.mark.parametrize(
    ("gain", "error", "name"),
    [
        (0.16, 0.02, "nouns"),  # 0.12 at the low end
        (0.16, 0.04, "unnamed"),  # 0.08
        (0.14, 0.001, "unnamed"),
    ],
)
def test_a_name_takes_fifteen_per_cent_and_surely_ten(gain: float, error: float, name: str) -> None:
    assert describe(measures(gain, error)).name == name


@pytest.mark.parametrize(
    ("gain", "width", "column", "name"),
    [
        (0.29, 0.75, 0.1, "widely"),
        (0.31, 0.75, 0.1, "nouns"),
        (0.39, 0.50, 0.8, "anchor words"),
        (0.41, 0.50, 0.8, "nouns"),
    ],
)
def test_a_weak_fact_is_a_lean_of_a_head_that_spreads_or_looks_at_anchor_words(
    gain: float, width: float, column: float, name: str
) -> None:
    head = replace(measures(gain, 0.01), width=width, column=column)
    assert describe(head).name == name
    assert ("with a slight lean to nouns" in describe(head).sentence) == (name != "nouns")


@pytest.mark.parametrize(("share", "name"), [(0.3, "evenly"), (0.6, "[CLS]")])
def test_a_sink_gives_the_name_to_a_head_that_rests_there(share: float, name: str) -> None:
    assert spread(share).name == name


def test_a_sink_that_gives_no_name_is_still_said_first() -> None:
    assert spread(0.3).sentence.startswith("L0H0 leaves 30 % of its weight on [CLS]. ")
