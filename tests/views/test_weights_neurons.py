"""Weights taken apart: every step, against the weights themselves."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headscope.errors import ViewError
from headscope.views import neuron_view
from headscope.views.weights import neuron_order, neurons_of, pinned_query, take_apart
from tests.references.traces import known_trace, pair_side, random_trace


@given(
    causal=st.booleans(),
    softcap=st.sampled_from([None, 1.5, 30.0]),
    sink=st.booleans(),
    position_bias=st.booleans(),
    key_heads=st.sampled_from([1, 2, 4]),
    seed=st.integers(0, 99),
)
def test_the_parts_make_the_recorded_weights(
    causal: bool,
    softcap: float | None,
    sink: bool,
    position_bias: bool,
    key_heads: int,
    seed: int,
) -> None:
    trace = random_trace(
        layers=1,
        causal=causal,
        softcap=softcap,
        sink=sink,
        position_bias=position_bias,
        key_heads=key_heads,
        seed=seed,
    )
    for head, query in ((0, 0), (1, 4), (3, 9)):
        parts = take_apart(neurons_of(trace.default, 0, head), query)
        np.testing.assert_allclose(parts.weights, trace.weights[0][head][query], atol=1e-6)
        assert parts.weights.sum() + parts.sink == pytest.approx(1)
        np.testing.assert_allclose(parts.products.sum(-1), parts.dots)


def test_neurons_are_ordered_by_what_they_add_to_the_attended_scores() -> None:
    trace = random_trace()
    parts = take_apart(neurons_of(trace.default, 0, 0), 9)
    sums = [
        sum(parts.weights[key] * parts.products[key, neuron] for key in range(10))
        for neuron in range(8)
    ]
    assert neuron_order(parts, "number").tolist() == list(range(8))
    assert neuron_order(parts, "contribution").tolist() == sorted(range(8), key=lambda n: -sums[n])


def test_the_query_is_the_pinned_token_or_the_last_that_is_not_special() -> None:
    stack = random_trace(tokens=pair_side(), causal=False).default
    assert pinned_query(stack, "q4") == 4
    assert pinned_query(stack, None) == 10
    assert pinned_query(stack, "k2") == 10


def test_without_queries_and_keys_the_neuron_view_says_why() -> None:
    with pytest.raises(ViewError, match="given without queries and keys"):
        neuron_view(known_trace())
