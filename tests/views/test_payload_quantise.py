"""Quantised blocks: small, and as exact as the documentation says."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from headscope.views.payload import STEPS, pack, quantise
from tests.references.decoding import dequantise, unpack

shapes = st.tuples(st.integers(1, 3), st.integers(1, 7), st.integers(1, 7))
weights = shapes.flatmap(
    lambda shape: arrays(np.float32, shape, elements=st.floats(0, 1, width=32))
)


@given(weights)
def test_a_weight_comes_back_within_half_a_step(given_weights: np.ndarray) -> None:
    block = quantise(given_weights)
    back = dequantise(block, given_weights.shape)
    half_step = np.array(block.scales)[:, None, None] / STEPS / 2
    assert (np.abs(back - given_weights) <= half_step * (1 + 1e-6)).all()
    assert half_step.max() <= 7.7e-6


@given(weights)
def test_zero_stays_zero_and_the_largest_weight_stays_itself(given_weights: np.ndarray) -> None:
    back = dequantise(quantise(given_weights), given_weights.shape)
    assert (back[given_weights == 0] == 0).all()
    largest = given_weights.max((1, 2))
    np.testing.assert_allclose(back.max((1, 2)), largest, rtol=1e-6)


def test_weights_take_at_most_two_bytes_each() -> None:
    random = np.random.default_rng(0).dirichlet(np.full(64, 0.5), (8, 64)).astype(np.float32)
    assert len(quantise(random).data) <= 2 * random.size


@given(
    arrays(
        np.float32, st.tuples(st.integers(1, 4), st.integers(1, 5)), elements=st.floats(width=32)
    )
)
def test_packing_floats_is_exact(values: np.ndarray) -> None:
    little = values.astype("<f4")
    back = unpack(pack(little), np.dtype("<f4"), values.shape)
    assert back.tobytes() == little.tobytes()
