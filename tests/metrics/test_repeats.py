"""Scores on repeated sequences equal their definitions."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from headscope.metrics import Grid, Variables
from headscope.metrics.repeats import (
    DEPTH,
    NEEDLE,
    SCORES,
    WANTED,
    repeated_sequences,
    repetitions,
    retrieval,
)
from headscope.studies.luger2026.made_inputs import hide
from tests.references.random_attention import in_blocks, matrix_layer, plain_batch, random_weights


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


@pytest.mark.parametrize("seed", range(4))
def test_retrieval_equals_a_plain_loop_over_the_copies_of_needles(seed: int) -> None:
    rng = np.random.default_rng(seed)
    depths = (0.2, 0.9)
    texts = [hide(np.arange(100, 110), np.array([1, 2, 3, 4]), depth, (7,)) for depth in depths]
    weights = random_weights(rng, 1, len(texts[0].ids), is_causal=True)
    weights = torch.from_numpy(np.stack([weights[0], random_weights(rng, 1, 19, True)[0]]))
    labels = {
        WANTED: torch.from_numpy(np.stack([text.successor for text in texts])),
        NEEDLE: torch.from_numpy(np.stack([text.needle for text in texts])),
        DEPTH: torch.tensor([[0] * 19, [1] * 19]),
    }
    batch = replace(plain_batch(torch.ones(2, 19, dtype=torch.bool)), labels=labels)
    layer = in_blocks(matrix_layer(0, batch, weights), 5)
    variables: Variables = {}
    for metric in retrieval(Grid((0,), weights.shape[1]), depths):
        sums = metric.zero()
        metric.see_text(sums, batch)
        metric.see_layer(sums, layer)
        variables |= metric.compute(sums)
    for head in range(weights.shape[1]):
        by_text: list[float] = []
        for text, hidden in enumerate(texts):
            copied: list[float] = []
            first = hidden.ids.tolist().index(1)  # where the needle begins, and its copy
            copy = len(hidden.ids) - 4
            for place in range(3):  # the last token of a needle has no successor
                copied.append(float(weights[text, head, copy + place, first + place + 1]))
            by_text.append(sum(copied) / 3)
        at = {"layer": 0, "head": head}
        assert float(variables["retrieval"].sel(at)) == pytest.approx(np.mean(by_text), abs=1e-6)
        assert variables["retrieval_at"].sel(at).values == pytest.approx(by_text, abs=1e-6)
