"""What heads do in one text: numbers as in a plain loop, words and rules as in portraits."""

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from headscope.head import Head
from headscope.model.trace import StackTrace, Trace
from headscope.views.roles import describe_text, roles, worth_a_look
from tests.references.traces import encoder_decoder_trace, patterned_trace, random_trace

WAYS: dict[str, Callable[[Sequence[str], int, int], bool]] = {
    "what followed the same token before": lambda words, query, key: (
        key >= 1 and query not in (key - 1, key) and words[key - 1] == words[query]
    ),
    "the same token elsewhere": lambda words, query, key: (
        key != query and words[key] == words[query]
    ),
    "the previous token": lambda words, query, key: key == query - 1,
    "the next token": lambda words, query, key: key == query + 1,
    "itself": lambda words, query, key: key == query,
}
REPEATED = ("what followed the same token before", "the same token elsewhere")


def plain_share(stack: StackTrace, words: str, head: Head) -> float:
    """The share of what is left beside null tokens that goes to the keys of a fact, pair by pair.

    Of repetitions only the rows count that have such a key.
    """
    tokens, special = stack.queries.labels, stack.queries.special
    weights = stack.weights[head.layer].numpy()[head.head]
    attended = sum(stack.weights[layer].numpy().sum(0) for layer in stack.layers)
    is_causal = not np.triu(attended, 1).any()
    visible = np.tril(np.ones_like(attended)) if is_causal else np.ones_like(attended)
    null = [special[place] or (is_causal and place == 0) for place in range(len(tokens))]
    given = left = 0.0
    for query in range(len(tokens)):
        keys = [key for key in range(len(tokens)) if visible[query, key] and not null[key]]
        inside = [key for key in keys if WAYS[words](tokens, query, key)]
        if null[query] or len(keys) < 3 or (words in REPEATED and not inside):
            continue
        given += math.fsum(weights[query, key] for key in inside)
        left += math.fsum(weights[query, key] for key in keys)
    return given / left


def assert_shares(stack: StackTrace) -> None:
    facts = {each.head: next(fact for fact in each.facts if fact.group != "sink")
             for each in describe_text(stack)}  # fmt: skip
    for one in worth_a_look(stack):
        head = Head(one.layer, one.head)
        assert facts[head].words == one.words
        assert facts[head].value == pytest.approx(plain_share(stack, one.words, head), abs=1e-3)


def sharp_trace(seed: int, *, special: bool) -> Trace:
    """Noise on few keys, with a head for each of three offsets."""
    random = np.random.default_rng(seed)
    words = random.choice(["a", "b", "c", "d"], 16).tolist()
    weights = random.dirichlet(np.full(16, 0.05), (3, 4, 16)).astype(np.float32)
    for head in range(3):
        weights[head, head] = 0.3 * weights[head, head] + 0.7 * np.eye(16, k=head - 1)
    marks = [special and place in (0, 6, 15) for place in range(16)]
    return Trace.from_weights(weights / weights.sum(-1, keepdims=True), words, special=marks)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("special", [False, True])
def test_shares_are_those_of_a_plain_loop(seed: int, special: bool) -> None:
    stack = sharp_trace(seed, special=special).default
    worth = worth_a_look(stack)
    assert {(one.layer, one.head) for one in worth} == {(0, 0), (1, 1), (2, 2)}
    assert_shares(stack)


def test_repetitions_come_first_and_the_sentence_is_that_of_portraits() -> None:
    stack = patterned_trace().default
    assert [(one.layer, one.head, one.words, one.sentence) for one in worth_a_look(stack)] == [
        (1, 2, "what followed the same token before",
         "In this text L1H2 rests on the first token (50 % of its weight). Where the same token "
         "stood before, 100 % of what is left goes to what followed it (evenly 18 %)."),
        (0, 1, "the previous token",
         "In this text L0H1 looks at the previous token (93 % of its weight)."),
    ]  # fmt: skip
    assert_shares(stack)


def test_heads_of_noise_have_no_name() -> None:
    random = np.random.default_rng(0)
    for sharpness in (0.1, 0.3, 1.0):
        weights = random.dirichlet(np.full(24, sharpness), (12, 12, 24)).astype(np.float32)
        stack = Trace.from_weights(weights, [f"w{place % 10}" for place in range(24)]).default
        assert {each.name for each in describe_text(stack)} <= {"unnamed", "widely", "evenly"}
        assert worth_a_look(stack) == ()
    assert worth_a_look(random_trace().default) == ()


def test_between_two_sequences_no_head_is_described() -> None:
    stack = encoder_decoder_trace().stacks["cross"]
    assert describe_text(stack) == []
    assert {role.name for row in roles(stack) for role in row} == {"unnamed"}


def test_every_head_has_a_role_and_its_group() -> None:
    named = [[(role.name, role.group) for role in row] for row in roles(patterned_trace().default)]
    even, induction = ("evenly", "even"), ("after the same", "repetition")
    assert named == [[even, ("previous token", "position"), even], [even, even, induction]]


def test_a_head_without_a_pattern_is_named_after_where_it_rests() -> None:
    weights = np.full((1, 3, 8, 8), 0.02)
    weights[0, 0, :, 0], weights[0, 1, :, 5], weights[0, 2, :, 0] = 0.86, 0.86, 0.44
    weights[0, 2, :, 5] = 0.44
    special = [True] + [False] * 4 + [True] + [False] * 2
    tokens = ["[CLS]", *"abcd", "[SEP]", *"ef"]
    trace = Trace.from_weights(weights, tokens, special=special)
    assert [role.name for role in roles(trace.default)[0]] == ["[CLS]", "[SEP]", "delimiters"]
    assert describe_text(trace.default)[1].sentence == (
        "In this text L0H1 rests on [SEP] (88 % of its weight). The rest is spread evenly."
    )


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5])
def test_a_text_too_short_for_any_pattern_is_shown(length: int) -> None:
    weights = np.tril(np.ones((1, 2, length, length), np.float32))
    weights /= weights.sum(-1, keepdims=True)
    trace = Trace.from_weights(weights, [f"word{i}" for i in range(length)])
    assert {role.name for role in roles(trace.default)[0]} <= {"evenly", "unnamed", "first token"}
    assert trace.head_view().html()
