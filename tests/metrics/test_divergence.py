"""Divergence between heads equals the definition, row by row."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headscope.metrics import divergence as products
from headscope.metrics import divergence_loop
from headscope.metrics.divergence import SMOOTHING, _blocks, divergence


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


def by_kernel(weights: torch.Tensor, causal: bool) -> np.ndarray:
    return divergence_loop.divergence_of_blocks(_blocks(weights, causal, SMOOTHING).numpy())


def by_product(weights: torch.Tensor, causal: bool) -> np.ndarray:
    pieces = _blocks(weights, causal, SMOOTHING)
    found = products.divergence_of_blocks(pieces, floor=SMOOTHING / weights.shape[-1])
    return found.numpy()


Way = Callable[[torch.Tensor, bool], np.ndarray]
BOTH_WAYS = pytest.mark.parametrize("way", [by_kernel, by_product])


@BOTH_WAYS
@settings(deadline=None, max_examples=25)
@given(
    units=st.integers(1, 5),
    size=st.integers(2, 14),
    causal=st.booleans(),
    seed=st.integers(0, 2**31),
    sharpness=st.floats(0.1, 8),
)
def test_divergence_equals_a_plain_loop(
    way: Way, units: int, size: int, causal: bool, seed: int, sharpness: float
) -> None:
    weights = attention(units, size, causal, seed, sharpness)
    expected = plain_divergence(weights, SMOOTHING)
    np.testing.assert_allclose(way(weights, causal), expected, rtol=1e-5, atol=5e-7 * size)


@BOTH_WAYS
@settings(deadline=None, max_examples=10)
@given(size=st.integers(2, 40), causal=st.booleans(), seed=st.integers(0, 2**31))
def test_divergence_is_symmetric_zero_on_the_diagonal_and_bounded(
    way: Way, size: int, causal: bool, seed: int
) -> None:
    found = way(attention(6, size, causal, seed), causal)
    assert (found == found.T).all()
    assert (np.diag(found) == 0).all()
    assert (found >= 0).all() and (found <= size * math.log(2)).all()


@BOTH_WAYS
def test_a_copy_of_a_head_does_not_diverge_from_it(way: Way) -> None:
    head = attention(1, 60, False, 0)
    assert way(torch.cat([head, head]), False).max() <= 1e-6


@BOTH_WAYS
def test_heads_that_look_at_different_tokens_reach_the_bound(way: Way) -> None:
    size = 32
    here, there = torch.eye(size), torch.eye(size).roll(1, dims=1)
    found = way(torch.stack([here, there]), False)
    expected = plain_divergence(torch.stack([here, there]), SMOOTHING)
    assert found[0, 1] == pytest.approx(expected[0, 1], rel=1e-6)
    assert found[0, 1] > 0.99 * size * math.log(2)


@pytest.mark.parametrize("causal", [False, True])
def test_both_ways_agree_on_a_whole_segment(causal: bool) -> None:
    weights = attention(24, 128, causal, 1)
    np.testing.assert_allclose(by_kernel(weights, causal), by_product(weights, causal), rtol=2e-6)


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


def test_without_the_compiler_the_products_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    weights = attention(4, 20, False, 3)
    monkeypatch.setattr("headscope.metrics.divergence.find_spec", lambda name: None)
    assert (divergence(weights, causal=False).numpy() == by_product(weights, False)).all()
