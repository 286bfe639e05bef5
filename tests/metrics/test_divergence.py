"""Divergence between heads equals the definition, row by row."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headscope.metrics import Grid, divergence_loop
from headscope.metrics import divergence as plain_torch
from headscope.metrics.divergence import (
    SMOOTHING,
    HeadDivergence,
    cut_blocks,
    divergence,
    divergence_of_sums,
    sum_middles,
)
from tests.references.random_attention import HEADS, Input, make_batch, make_layer, random_input


def attention(
    units: int, size: int, causal: bool, seed: int, sharpness: float = 3.0
) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(units, size, size, generator=generator) * sharpness
    if causal:
        scores = scores.masked_fill(torch.ones(size, size).triu(1).bool(), -torch.inf)
    return scores.softmax(-1)


def entropy(row: list[float]) -> float:
    return -sum(p * math.log(p) for p in row)


def plain_divergence(weights: torch.Tensor, smoothing: float) -> np.ndarray:
    """The definition as it is written: rows of two heads, smoothed, entropies of lists."""
    units, size, _ = weights.shape
    rows = [
        [[(1 - smoothing) * w + smoothing / size for w in row] for row in head]
        for head in weights.double().tolist()
    ]
    total = np.zeros((units, units))
    for a in range(units):
        for b in range(units):
            for p, q in zip(rows[a], rows[b], strict=True):
                middle = [(x + y) / 2 for x, y in zip(p, q, strict=True)]
                total[a, b] += entropy(middle) - (entropy(p) + entropy(q)) / 2
    return total


def by_loop(weights: torch.Tensor, causal: bool) -> np.ndarray:
    blocks = cut_blocks(weights, causal, SMOOTHING).numpy()
    return divergence_of_sums(torch.from_numpy(divergence_loop.sum_middles(blocks))).numpy()


def by_torch(weights: torch.Tensor, causal: bool) -> np.ndarray:
    return divergence_of_sums(sum_middles(cut_blocks(weights, causal, SMOOTHING))).numpy()


Implementation = Callable[[torch.Tensor, bool], np.ndarray]
both_implementations = pytest.mark.parametrize("compute", [by_loop, by_torch])


@both_implementations
@settings(deadline=None, max_examples=25)
@given(
    units=st.integers(1, 5),
    size=st.integers(2, 14),
    causal=st.booleans(),
    seed=st.integers(0, 2**31),
    sharpness=st.floats(0.1, 8),
)
def test_divergence_equals_a_plain_loop(
    compute: Implementation, units: int, size: int, causal: bool, seed: int, sharpness: float
) -> None:
    weights = attention(units, size, causal, seed, sharpness)
    expected = plain_divergence(weights, SMOOTHING)
    np.testing.assert_allclose(compute(weights, causal), expected, rtol=1e-5, atol=5e-7 * size)


@both_implementations
@settings(deadline=None, max_examples=10)
@given(size=st.integers(2, 40), causal=st.booleans(), seed=st.integers(0, 2**31))
def test_divergence_is_symmetric_zero_on_the_diagonal_and_bounded(
    compute: Implementation, size: int, causal: bool, seed: int
) -> None:
    values = compute(attention(6, size, causal, seed), causal)
    assert (values == values.T).all()
    assert (np.diag(values) == 0).all()
    assert (values >= 0).all() and (values <= size * math.log(2)).all()


@both_implementations
def test_a_copy_of_a_head_does_not_diverge_from_it(compute: Implementation) -> None:
    head = attention(1, 60, False, 0)
    assert compute(torch.cat([head, head]), False).max() <= 1e-6


@both_implementations
def test_heads_that_look_at_different_tokens_reach_the_bound(compute: Implementation) -> None:
    size = 32
    diagonal, shifted = torch.eye(size), torch.eye(size).roll(1, dims=1)
    values = compute(torch.stack([diagonal, shifted]), False)
    expected = plain_divergence(torch.stack([diagonal, shifted]), SMOOTHING)
    assert values[0, 1] == pytest.approx(expected[0, 1], rel=1e-6)
    assert values[0, 1] > 0.99 * size * math.log(2)


@pytest.mark.parametrize("causal", [False, True])
def test_both_implementations_agree_on_a_whole_segment(causal: bool) -> None:
    weights = attention(24, 128, causal, 1)
    np.testing.assert_allclose(by_loop(weights, causal), by_torch(weights, causal), rtol=1e-6)


@pytest.mark.parametrize("at_once", [1, 3, 1000])
def test_any_number_of_blocks_at_once_gives_the_same(
    monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    weights = attention(5, 80, False, 4)
    usual = by_torch(weights, False)
    monkeypatch.setattr(plain_torch, "BLOCKS_AT_ONCE", at_once)
    np.testing.assert_allclose(by_torch(weights, False), usual, rtol=1e-12)


@pytest.mark.parametrize("is_causal", [False, True])
def test_heads_of_all_layers_are_compared_on_the_real_tokens_of_every_input(
    is_causal: bool,
) -> None:
    rng = np.random.default_rng(6)
    inputs = [random_input(rng, is_causal, layers=2) for _ in range(3)]
    metric = HeadDivergence(Grid((0, 1), HEADS))
    sums = metric.zero()
    for some in (inputs[:2], inputs[2:]):
        batch = make_batch(some)
        for index in range(2):
            metric.see_layer(sums, make_layer(some, batch, index))
    variables = metric.compute(sums)
    expected = sum(plain_divergence(every_head(text), SMOOTHING) for text in inputs)
    np.testing.assert_allclose(variables["head_divergence"], expected, rtol=1e-5, atol=1e-5)
    assert variables["head_divergence"].attrs["rows"] == sum(text.length for text in inputs)


def every_head(text: Input) -> torch.Tensor:
    """The weights of all heads of all layers, L0H0 first."""
    return torch.from_numpy(text.weights).flatten(0, 1)


def test_threads_do_not_change_a_single_bit() -> None:
    weights = attention(11, 50, False, 2)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        alone = divergence(weights, causal=False)
        torch.set_num_threads(3)
        assert (divergence(weights, causal=False) == alone).all()
    finally:
        torch.set_num_threads(before)


def test_without_the_compiler_plain_logarithms_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    weights = attention(4, 20, False, 3)
    monkeypatch.setattr("headscope.metrics.divergence.find_spec", lambda name: None)
    assert (divergence(weights, causal=False).numpy() == by_torch(weights, False)).all()
