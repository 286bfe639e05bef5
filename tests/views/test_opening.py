"""Heads worth a look: their shares are those of a plain loop, and views open on them."""

from dataclasses import asdict

import numpy as np
import pytest

from headscope.errors import ViewError
from headscope.model.trace import Trace
from headscope.views import head_view, model_view, neuron_view
from headscope.views.model.state import ModelState
from headscope.views.opening import hidden_at_first, initial_state, telling_query
from tests.references.traces import (
    pair_side,
    patterned_trace,
    random_trace,
    side,
)


def test_views_open_on_a_head_worth_a_look() -> None:
    trace = patterned_trace()
    head = head_view(trace).state
    assert (head.layer, head.heads, head.hide) == (1, (2,), ("first",))
    model = model_view(trace).state
    assert isinstance(model, ModelState)
    assert (model.layer, model.head, model.enlarged) == (1, 2, True)
    assert (model.layers, model.heads) == ((0, 1), (0, 1, 2))
    assert asdict(model_view(trace, order="entropy").state)["enlarged"] is False


def test_what_is_asked_for_is_shown() -> None:
    trace = patterned_trace()
    state = head_view(trace, layer=0).state
    assert (state.layer, state.heads) == (0, (0, 1, 2))
    assert head_view(trace, heads=[1]).state.layer == 0
    assert head_view(trace, hide=()).state.hide == ()
    assert asdict(model_view(trace, layers=[0]).state)["enlarged"] is False


def test_the_first_token_is_hidden_where_it_takes_most() -> None:
    weights = np.full((1, 2, 4, 4), 0.1)
    weights[0, 0, :, 0], weights[0, 1, :, 2] = 0.7, 0.7
    trace = Trace.from_weights(weights, ["a", "b", "c", "d"], special=[True, False, True, False])
    assert hidden_at_first(trace.default, [0], [0]) == ("first",)
    assert hidden_at_first(trace.default, [0], [1]) == ("special",)
    plain = Trace.from_weights(weights, ["a", "b", "c", "d"])
    assert hidden_at_first(plain.default, [0], [1]) == ()
    assert head_view(trace, heads=[0]).state.hide == ("first",)


def test_the_neuron_view_opens_on_a_word_that_looks_sharply_at_another() -> None:
    trace = random_trace(causal=False)
    weights = trace.weights[1][2].numpy().copy()
    words = trace.tokens
    plain = {
        (query, key): float(weights[query, key])
        for query in range(10)
        for key in range(1, 10)
        if query != key and words[query].isalpha() and words[key].isalpha()
        and len(words[query]) > 2 and len(words[key]) > 2
    }  # fmt: skip
    best = max(plain, key=lambda pair: plain[pair])[0]
    assert telling_query(trace.default, 1, 2) == best
    assert neuron_view(trace, layer=1, head=2).state.pinned == f"q{best}"
    assert neuron_view(trace, layer=1, head=2, pinned=3).state.pinned == "q3"
    signs = random_trace(tokens=side([".", ",", ";"]))
    assert telling_query(signs.default, 0, 0) is None
    assert neuron_view(signs).state.pinned is None


def test_a_wrong_number_is_refused_by_name_before_anything_is_looked_at() -> None:
    for kind in ("head", "model", "neuron"):
        with pytest.raises(ViewError, match="Layer 7 is not in this trace"):
            initial_state(random_trace(tokens=pair_side()), kind, layer=7)
