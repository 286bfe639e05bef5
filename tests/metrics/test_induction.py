"""Scores on repeated sequences equal their definitions."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headscope.metrics.what.repeats import SCORES, repeated_sequences, repetition_scores


@settings(deadline=None, max_examples=25)
@given(st.integers(2, 6), st.integers(0, 2), st.integers(0, 2), st.integers(0, 2**31))
def test_scores_equal_a_plain_loop(period: int, start: int, after: int, seed: int) -> None:
    size = start + 2 * period + after
    generator = torch.Generator().manual_seed(seed)
    weights = torch.randn(2, 3, size, size, generator=generator).softmax(-1)
    found = repetition_scores(weights, period, start)
    for b in range(2):
        for h in range(3):
            a = weights[b, h].tolist()
            second = range(start + period, start + 2 * period)
            expected = [
                sum(a[i][i - 1] for i in second) / period,
                sum(a[i][i - period] for i in second) / period,
                sum(a[i][i - period + 1] for i in second) / period,
            ]
            np.testing.assert_allclose(found[b, h], expected, atol=1e-6)


@pytest.mark.parametrize(("back", "score"), [(1, 0), (5, 1), (4, 2)])
def test_a_perfect_head_scores_one_on_its_own_measure(back: int, score: int) -> None:
    weights = torch.eye(12).roll(-back, dims=1)[None, None]
    found = repetition_scores(weights, period=5, start=1)[0, 0]
    assert found.tolist() == [float(at == score) for at in range(len(SCORES))]


def test_sequences_repeat_and_follow_the_seed() -> None:
    sequences = repeated_sequences(range(100, 200), count=3, period=7, seed=4)
    assert (sequences[:, :7] == sequences[:, 7:]).all()
    assert sequences.min() >= 100 and sequences.max() < 200
    again = repeated_sequences(range(100, 200), count=3, period=7, seed=4)
    other = repeated_sequences(range(100, 200), count=3, period=7, seed=5)
    assert (sequences == again).all() and (sequences != other).any()
