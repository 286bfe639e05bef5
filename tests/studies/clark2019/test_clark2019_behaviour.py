"""Labels of heads follow the thresholds; the later label wins."""

from itertools import pairwise

import numpy as np

from headscope.studies.clark2019 import THRESHOLDS, behaviour

NAMES = ("next", "previous", "broad", "cls", "sep", "punct")


def one_head(**values: float) -> str:
    measured = {name: np.array([[values.get(name, 0.0)]]) for name in NAMES}
    return str(behaviour(measured, THRESHOLDS)[0, 0])


def test_each_behaviour_is_named_above_its_threshold_only() -> None:
    at = THRESHOLDS
    for name in NAMES:
        assert one_head(**{name: at[name] + 0.01}) == name
        assert one_head(**{name: at[name]}) == "other"


def test_of_two_that_fit_the_later_one_wins() -> None:
    for earlier, later in pairwise(NAMES):
        assert one_head(**{earlier: 9.0, later: 9.0}) == later


def test_thresholds_are_options() -> None:
    measured = {"next": np.array([[0.2, 0.4]])}
    assert behaviour(measured, THRESHOLDS | {"next": 0.3}).tolist() == [["other", "next"]]


def test_what_a_model_does_not_have_names_no_head() -> None:
    measured = {"previous": np.array([[0.9, 0.1]]), "cls": np.full((1, 2), np.nan)}
    assert behaviour(measured, THRESHOLDS).tolist() == [["previous", "other"]]
