"""Scores on repeated sequences equal their definitions."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from headscope.metrics import Grid, Variables
from headscope.metrics.repeats import SCORES, repeated_sequences, repetitions
from tests.references.random_attention import in_blocks, matrix_layer, plain_batch


def measure(weights: Tensor, period: int, start: int, block: int) -> Variables:
    """The three scores of a batch of inputs of equal length, some query rows at a time."""
    batch = plain_batch(torch.ones(weights.shape[0], weights.shape[2], dtype=torch.bool))
    layer = in_blocks(matrix_layer(0, batch, weights), block)
    variables: Variables = {}
    for metric in repetitions(Grid((0,), weights.shape[1]), period, start):
        sums = metric.zero()
        metric.see_text(sums, batch)
        metric.see_layer(sums, layer)
        variables |= metric.compute(sums)
    return variables


@settings(deadline=None, max_examples=25)
@given(
    st.integers(1, 6),
    st.integers(0, 2),
    st.integers(0, 2),
    st.integers(1, 20),
    st.integers(0, 2**31),
)
def test_scores_equal_a_plain_loop(
    period: int, start: int, after: int, block: int, seed: int
) -> None:
    size = start + 2 * period + after
    generator = torch.Generator().manual_seed(seed)
    weights = torch.randn(2, 3, size, size, generator=generator).softmax(-1)
    variables = measure(weights, period, start, block)
    second = range(start + period, start + 2 * period)
    for score_measure, back in zip(SCORES, (1, period, period - 1), strict=True):
        numerators = variables[f"{score_measure.name}_numerator"]
        for text in range(2):  # of a group each
            for head in range(3):
                a = weights[text, head].tolist()
                expected = sum(a[i][i - back] for i in second) / period
                value = numerators.sel(group=text, layer=0, head=head)
                np.testing.assert_allclose(value, expected, atol=1e-6)
        mean = numerators.sum("group") / 2
        np.testing.assert_allclose(variables[score_measure.name], mean, rtol=1e-12)


@pytest.mark.parametrize(("back", "score"), [(1, 0), (5, 1), (4, 2)])
def test_a_perfect_head_scores_one_on_its_own_measure(back: int, score: int) -> None:
    weights = torch.eye(12).roll(-back, dims=1)[None, None]
    variables = measure(weights, period=5, start=1, block=12)
    scores = [variables[score_measure.name].item() for score_measure in SCORES]
    assert scores == [float(place == score) for place in range(len(SCORES))]


def test_sequences_repeat_and_follow_the_seed() -> None:
    sequences = repeated_sequences(range(100, 200), count=3, period=7, seed=4)
    assert (sequences[:, :7] == sequences[:, 7:]).all()
    assert sequences.min() >= 100 and sequences.max() < 200
    again = repeated_sequences(range(100, 200), count=3, period=7, seed=4)
    other = repeated_sequences(range(100, 200), count=3, period=7, seed=5)
    assert (sequences == again).all() and (sequences != other).any()
