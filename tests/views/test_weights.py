"""Weights taken apart, rolled out and scored: by plain loops, and of real model families."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headscope.errors import ViewError
from headscope.views import head_view, model_view, neuron_view
from headscope.views.weights import (
    head_scores,
    neuron_order,
    neurons_of,
    pinned_query,
    rollout,
    take_apart,
)
from tests.contracts.families import FAMILIES
from tests.references.tiny_families import family, tiny
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


WEIGHTS = [random_trace(sink=True).weights[layer].double().numpy() for layer in range(3)]


def test_rollout_is_the_product_of_half_attention_half_identity() -> None:
    count = WEIGHTS[0].shape[-1]
    flow = np.eye(count)
    for weights, found in zip(WEIGHTS, rollout(WEIGHTS), strict=True):
        average = weights.mean(0)
        step = np.zeros((count, count))
        for query in range(count):
            total = average[query].sum()
            for key in range(count):
                step[query, key] = 0.5 * average[query, key] / total + 0.5 * (query == key)
        flow = step @ flow
        np.testing.assert_allclose(found, flow)


def test_rollout_rows_sum_to_one_even_with_a_sink() -> None:
    for flow in rollout(WEIGHTS):
        np.testing.assert_allclose(flow.sum(-1), 1)


def test_head_scores_of_a_known_matrix() -> None:
    scores = head_scores(known_trace().weights[0].double().numpy())
    rows = [[1.0], [0.25, 0.75], [0.1, 0.3, 0.6]]
    entropy = np.mean([-sum(w * np.log(w) for w in row) for row in rows])
    assert scores["entropy"][0] == pytest.approx(entropy)
    assert scores["distance"][0] == pytest.approx((0.25 * 1 + 0.1 * 2 + 0.3 * 1) / 3)
    assert scores["largest weight"][0] == pytest.approx(1.0)
    assert scores["first token"][0] == pytest.approx((1 + 0.25 + 0.1) / 3)
    assert scores["previous token"][0] == pytest.approx((0.25 + 0.3) / 3)
    assert scores["same token"][0] == pytest.approx((1 + 0.75 + 0.6) / 3)
    assert scores["next token"][0] == 0


# Plain, rotary with grouped keys, soft-capped, with a sink, with position bias, three stacks.
TAKEN_APART = ("BERT", "GPT-2", "Llama", "Gemma 2", "gpt-oss", "T5", "BART", "ModernBERT", "Qwen 3")


@pytest.mark.parametrize("name", TAKEN_APART)
def test_query_and_key_make_the_weights_in_every_stack(name: str) -> None:
    target = "Birds fly." if family(name).kind == "seq2seq" else None
    trace = tiny(name).trace("Birds sing loudly.", target=target)
    neuron_view(trace).html()
    for stack in trace.stacks.values():
        for layer in stack.layers:
            for head in stack.heads:
                neurons = neurons_of(stack, layer, head)
                for query in range(len(stack.queries)):
                    weights = take_apart(neurons, query).weights
                    recorded = stack.weights[layer][stack.heads.index(head)][query]
                    np.testing.assert_allclose(weights, recorded, atol=2e-5)


@pytest.mark.parametrize("name", ["DeBERTa", "BLOOM", "GPT-J"])
def test_families_without_query_and_key_have_the_other_views_and_say_why(name: str) -> None:
    trace = tiny(name).trace("Birds sing loudly.")
    assert head_view(trace).html() and model_view(trace).html()
    with pytest.raises(ViewError, match="The neuron view needs query and key vectors: "):
        neuron_view(trace)


def test_generated_text_has_its_boundary() -> None:
    trace = tiny("GPT-2").trace("Birds sing", generate=3)
    header = head_view(trace).payload.header
    assert header["prompt"] == trace.prompt_length
    assert trace.prompt_length is not None and trace.prompt_length < len(trace.tokens)


def test_the_names_above_are_families() -> None:
    assert set(TAKEN_APART) <= {family.name for family in FAMILIES}
