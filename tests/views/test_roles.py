"""Roles of heads in one text: their shares are those of a plain loop."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from headscope.model.trace import StackTrace, Trace
from headscope.views.roles import CLEAR, LEAST, roles, worth_a_look
from tests.references.traces import encoder_decoder_trace, patterned_trace, random_trace

WAYS: dict[str, Callable[[Sequence[str], int, int], bool]] = {
    "what followed the same token before": lambda words, query, key: (
        key >= 1 and key != query and key - 1 < query and words[key - 1] == words[query]
    ),
    "the same token elsewhere": lambda words, query, key: (
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


def test_every_head_has_a_role_and_its_group() -> None:
    named = [[(role.name, role.group) for role in row] for row in roles(patterned_trace().default)]
    even, induction = ("evenly", "even"), ("after the same", "repetition")
    assert named == [[even, ("previous token", "position"), even], [even, even, induction]]


def test_a_head_without_a_pattern_is_named_after_where_it_rests() -> None:
    weights = np.full((1, 3, 8, 8), 0.02)
    weights[0, 0, :, 0], weights[0, 1, :, 5], weights[0, 2, :, 2:4] = 0.86, 0.86, 0.44
    special = [False] * 5 + [True] + [False] * 2
    trace = Trace.from_weights(weights, list("abcdefgh"), special=special)
    assert [role.name for role in roles(trace.default)[0]] == [
        "first token",
        "delimiters",
        "unnamed",
    ]
