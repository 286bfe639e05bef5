"""Smoothed entropies, uniform lines and confidence equal their definitions."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headscope.metrics.metric import Grid
from headscope.metrics.where.surface import (
    confidences,
    mean_over,
    uniform_entropy,
    visible_uniform_entropy,
)
from headscope.observe.dense import DenseLayer, smoothed_entropy
from tests.metrics.attention_maps import Maps, maps
from tests.metrics.inputs import plain_batch


def plain_entropy(row: list[float], amount: float) -> float:
    smoothed = [(1 - amount) * p + amount / len(row) for p in row]
    return -sum(p * math.log(p) for p in smoothed)


@settings(deadline=None, max_examples=50)
@given(maps(), st.sampled_from([1e-4, 1e-3, 0.1]))
def test_mean_smoothed_entropy_equals_a_plain_loop(batch: Maps, amount: float) -> None:
    found = mean_over(smoothed_entropy(batch.weights, batch.mask, amount), batch.mask)
    expected = [
        [sum(plain_entropy(row, amount) for row in h) / len(h) for h in heads]
        for heads in batch.inputs()
    ]
    np.testing.assert_allclose(found, expected, atol=1e-6)


@settings(deadline=None, max_examples=50)
@given(maps())
def test_confidence_equals_a_plain_loop(batch: Maps) -> None:
    layer = DenseLayer(0, batch.weights, plain_batch(batch.mask))
    found = confidences(Grid((0,), batch.weights.shape[1])).terms(layer)[0][..., 0]
    expected = [[sum(map(max, h)) / len(h) for h in heads] for heads in batch.inputs()]
    np.testing.assert_allclose(found, expected, atol=1e-6)


@settings(deadline=None, max_examples=20)
@given(maps())
def test_uniform_lines_are_the_entropies_of_uniform_rows(batch: Maps) -> None:
    for at, size in enumerate(batch.mask.sum(-1).tolist()):
        seen = sum(math.log(i) for i in range(1, size + 1)) / size
        assert uniform_entropy(batch.mask)[at] == pytest.approx(math.log(size))
        assert visible_uniform_entropy(batch.mask)[at] == pytest.approx(seen)


def test_an_unsmoothed_uniform_row_has_the_uniform_entropy() -> None:
    mask = torch.tensor([[True] * 5 + [False] * 3])
    weights = (mask / 5.0)[:, None, None, :].expand(1, 1, 8, 8)
    found = smoothed_entropy(weights, mask)[0, 0, 0].item()
    assert found == pytest.approx(math.log(5))
