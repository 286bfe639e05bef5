"""The sink rate counts heads above the threshold."""

import math

import numpy as np

from headscope.metrics.where.surface import sink_rate


def test_the_rate_is_the_share_of_heads_strictly_above_the_threshold() -> None:
    assert sink_rate(np.array([[0.1, 0.3], [0.31, 0.9]])) == 0.5
    assert sink_rate(np.array([[0.1, 0.3], [0.31, 0.9]]), threshold=0.05) == 1.0


def test_heads_without_a_value_are_not_counted() -> None:
    assert sink_rate(np.array([[0.9, np.nan]])) == 1.0
    assert math.isnan(sink_rate(np.array([[np.nan]])))
