"""What travels to the browser, how exact it is, and what is refused before it does."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from headscope.errors import ViewError
from headscope.model.trace import Trace
from headscope.views import head_view, model_view, neuron_view
from headscope.views.page import embedded_json
from headscope.views.payload import STEPS, Quantised, pack, quantise
from headscope.views.weights import no_rollout
from tests.references.decoding import dequantise, unpack
from tests.references.traces import HOSTILE, encoder_decoder_trace, random_trace, side


def broken(weights: torch.Tensor) -> Trace:
    """A trace whose first layer was replaced."""
    trace = random_trace()
    stack = replace(trace.default, weights={**trace.default.weights, 0: weights})
    return replace(trace, stacks={"self": stack})


def test_each_layer_is_one_block_that_gives_its_weights_back() -> None:
    trace = random_trace()
    payload = head_view(trace).payload
    stack = payload.header["stacks"][0]
    for layer, entry in stack["sets"]["raw"]["layers"].items():
        block = Quantised(payload.blocks[entry["block"]], entry["scales"])
        back = dequantise(block, (4, 10, 10))
        np.testing.assert_allclose(back, trace.weights[int(layer)], atol=7.7e-6)


def test_norms_travel_as_one_factor_for_each_head_and_key() -> None:
    trace = random_trace()
    payload = head_view(trace).payload
    norm = payload.header["stacks"][0]["sets"]["norm"]
    assert norm["layers"] == payload.header["stacks"][0]["sets"]["raw"]["layers"]
    entry = norm["factors"]["1"]
    factors = unpack(payload.blocks[entry["block"]], np.dtype("<f4"), tuple(entry["shape"]))
    norms = trace.default.norms
    assert norms is not None
    weights = trace.weights[1].numpy()
    np.testing.assert_allclose(weights * factors[:, None, :], norms[1], rtol=1e-6)


def test_only_the_neuron_view_carries_vectors() -> None:
    trace = random_trace()
    assert head_view(trace).payload.header["stacks"][0]["neurons"] is None
    neurons = neuron_view(trace).payload.header["stacks"][0]["neurons"]
    assert neurons["layers"]["2"]["query"]["shape"] == [4, 10, 8]


def test_nan_is_refused_with_its_place() -> None:
    weights = random_trace().weights[0].clone()
    weights[1, 2, 0] = torch.nan
    message = "Layer 0 head 1 has the weight nan from token 2 to token 0"
    with pytest.raises(ViewError, match=message):
        head_view(broken(weights)).html()


def test_a_shape_that_does_not_fit_the_tokens_is_refused() -> None:
    with pytest.raises(ViewError, match=r"shape 4 × 9 × 9, but .* make 4 × 10 × 10"):
        model_view(broken(torch.full((4, 9, 9), 1 / 9))).html()


def test_rollout_needs_one_sequence_and_every_layer_from_the_first() -> None:
    assert no_rollout(random_trace().default) is None
    assert "joins two" in str(no_rollout(encoder_decoder_trace().stacks["cross"]))
    gap = replace(random_trace().default, layers=(0, 2))
    assert "some were not captured" in str(no_rollout(gap))


def test_scores_must_cover_the_heads() -> None:
    with pytest.raises(ViewError, match=r"'mine' has shape 2 × 4; .* at least 3 × 4"):
        model_view(random_trace(), scores={"mine": np.zeros((2, 4))}).html()


def test_the_header_is_json_that_cannot_end_its_element() -> None:
    view = head_view(random_trace(tokens=side(HOSTILE)))
    text = embedded_json(view.payload.header)
    assert "<" not in text and text.isascii()
    assert json.loads(text)["stacks"][0]["queries"]["labels"][0] == HOSTILE[0]


def test_a_missing_score_travels_as_null() -> None:
    scores = np.full((3, 4), np.nan)
    header = model_view(random_trace(), scores={"mine": scores}).payload.header
    assert header["stacks"][0]["scores"]["mine"][0] == [None] * 4


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
