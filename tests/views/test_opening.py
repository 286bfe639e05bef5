"""Heads worth a look: their shares are those of a plain loop, and views open on them."""

from collections.abc import Callable, Sequence
from dataclasses import asdict

import numpy as np
import pytest

from headscope.errors import ViewError
from headscope.model.trace import StackTrace, Trace
from headscope.views import head_view, model_view, neuron_view
from headscope.views.model.state import ModelState
from headscope.views.neuron.opening import telling_query
from headscope.views.opening import (
    CLEAR,
    LEAST,
    hidden_at_first,
    initial_state,
    worth_a_look,
)
from tests.references.traces import (
    encoder_decoder_trace,
    pair_side,
    patterned_trace,
    random_trace,
    side,
)

WAYS: dict[str, Callable[[Sequence[str], int, int], bool]] = {
    "what followed the same token before": lambda words, query, key: (
        key >= 1 and key != query and key - 1 < query and words[key - 1] == words[query]
    ),
    "an earlier occurrence of the same token": lambda words, query, key: (
        key < query and words[key] == words[query]
    ),
    "the previous token": lambda words, query, key: key == query - 1,
    "the next token": lambda words, query, key: key == query + 1,
    "itself": lambda words, query, key: key == query,
}


def plainly(stack: StackTrace, way: Callable[[Sequence[str], int, int], bool]) -> np.ndarray:
    """Share and strength of every head, pair by pair: (layer, head, 2)."""
    words, special = stack.queries.labels, stack.queries.special
    found = np.zeros((len(stack.layers), len(stack.heads), 2))
    weights = {layer: stack.weights[layer].numpy() for layer in stack.layers}
    visible = np.sum([weights[layer].sum(0) for layer in stack.layers], 0) > 0
    for place, layer in enumerate(stack.layers):
        for head in range(len(stack.heads)):
            shares, rests, chances = [], [], []
            for query in range(len(words)):
                awake = [
                    key
                    for key in range(len(words))
                    if key > 0 and not special[key] and visible[query, key]
                ]
                inside = [key for key in awake if way(words, query, key)]
                if special[query] or not inside:
                    continue
                row = weights[layer][head][query]
                shares.append(sum(row[key] for key in inside))
                rests.append(row[0] + sum(row[k] for k in range(1, len(words)) if special[k]))
                chances.append(len(inside) / len(awake))
            if len(shares) < 2:
                return np.zeros_like(found)
            share, awake_share, chance = np.mean(shares), 1 - np.mean(rests), np.mean(chances)
            strength = (share / max(awake_share, 1e-9) - chance) / max(1e-9, 1 - chance)
            found[place, head] = share, strength
    return found


def sharp_trace(seed: int, *, special: bool) -> Trace:
    """Weights on few keys, so that some head follows some pattern by chance."""
    random = np.random.default_rng(seed)
    words = random.choice(["a", "b", "c", "d"], 12).tolist()
    weights = random.dirichlet(np.full(12, 0.05), (3, 4, 12)).astype(np.float32)
    for head in range(4):  # some follow one for certain
        weights[head % 3, head] = 0.4 * weights[head % 3, head] + 0.6 * np.eye(12, k=head - 2)
    marks = [special and place in (0, 6, 11) for place in range(12)]
    return Trace.from_weights(weights / weights.sum(-1, keepdims=True), words, special=marks)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("special", [False, True])
def test_shares_are_those_of_a_plain_loop(seed: int, special: bool) -> None:
    stack = sharp_trace(seed, special=special).default
    named = {one.words: one for one in worth_a_look(stack)}
    for words, way in WAYS.items():
        share, strength = np.moveaxis(plainly(stack, way), -1, 0)
        clear = np.where((share >= LEAST) & (strength >= CLEAR), share, 0)
        assert (words in named) == bool(clear.any())
        if words in named:
            one = named[words]
            assert one.share == pytest.approx(clear.max(), abs=6e-4)
            assert clear[one.layer, one.head] == pytest.approx(clear.max(), abs=1e-6)
    assert named  # a test in which nothing is named says nothing


def test_the_most_telling_pattern_comes_first() -> None:
    assert [
        (one.layer, one.head, one.words) for one in worth_a_look(patterned_trace().default)
    ] == [
        (1, 2, "what followed the same token before"),
        (0, 1, "the previous token"),
    ]


def test_where_no_head_follows_a_pattern_nothing_is_named() -> None:
    assert worth_a_look(random_trace().default) == ()
    assert worth_a_look(encoder_decoder_trace().stacks["cross"]) == ()


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
