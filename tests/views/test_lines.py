"""Which lines are drawn, against plain loops."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headscope.views.lines import (
    Drawing,
    attention_on_text,
    binned,
    cutoffs,
    drawing,
    lines,
    merge,
    opacity,
    span_runs,
    strongest,
    units,
    width,
)
from headscope.views.opening import initial_state
from headscope.views.weights import shown_weights
from tests.references.traces import known_trace, pair_side, random_trace

rows = st.lists(st.sampled_from([0.0, 0.125, 0.25, 0.5, 0.75, 1.0]), min_size=1, max_size=6)


def slow_kept(row: list[float], mass: float) -> set[int]:
    """Take the strongest one by one until the mass is reached, then all that tie with the last."""
    kept: list[int] = []
    for key in sorted(range(len(row)), key=lambda key: -row[key]):
        if sum(row[other] for other in kept) >= mass * sum(row):
            break
        kept.append(key)
    last = min((row[key] for key in kept), default=np.inf)
    return {key for key, weight in enumerate(row) if weight >= last and weight > 0}


@given(rows, st.sampled_from([0.05, 0.3, 0.5, 0.9, 0.99, 1.0]))
def test_a_row_keeps_the_strongest_that_hold_the_mass(row: list[float], mass: float) -> None:
    weights = np.array([[row]])
    cut = cutoffs(weights, mass)[0, 0]
    kept = {key for key, weight in enumerate(row) if weight > 0 and weight >= cut}
    assert kept == slow_kept(row, mass)


def test_words_sum_over_keys_and_average_over_queries() -> None:
    side = pair_side()
    state = initial_state(random_trace(tokens=side), "head", unit="word")
    words = units(side, state, slice(0, len(side)))
    weights = random_trace(tokens=side, causal=False).weights[0].numpy().astype(np.float64)
    merged = merge(weights, words, words)
    assert words.labels[4] == "unbelievably"
    assert words.members[4] == (4, 5, 6)
    for head, query, key in product(range(4), range(10), range(10)):
        total = sum(weights[head, i, j] for i in words.members[query] for j in words.members[key])
        assert merged[head, query, key] == pytest.approx(total / len(words.members[query]))
    np.testing.assert_allclose(merged.sum(-1), 1, rtol=1e-6)


def test_hidden_mass_is_the_mean_share_of_the_shown_queries() -> None:
    trace = known_trace()
    state = initial_state(trace, "head", hide="first")
    stack = trace.default
    picture = drawing(stack.weights[0].numpy(), stack, state)
    assert picture.hidden == pytest.approx((0.25 + 0.1) / 2)
    assert not picture.shown[0].any() and not picture.shown[:, 0].any()


@pytest.mark.parametrize("pair", ["aa", "ab", "ba", "bb"])
def test_a_sentence_pair_keeps_one_quarter_of_the_matrix(pair: str) -> None:
    trace = random_trace(tokens=pair_side(), causal=False)
    stack = trace.default
    state = initial_state(trace, "head", pair=pair)
    shown = drawing(stack.weights[0].numpy(), stack, state).shown
    first, second = ("ab".index(letter) for letter in pair)
    for query, key in product(range(12), range(12)):
        segments = stack.queries.segments
        assert shown[query, key] == (segments[query] == first and segments[key] == second)


SPANS = ["1-6 all", "2-3 inner", "8+10 far, away"]


def test_spans_hold_their_tokens_and_the_shortest_wins() -> None:
    side = pair_side()
    state = initial_state(random_trace(tokens=side), "head", unit="span", spans=SPANS)
    found = units(side, state, slice(0, len(side)))
    assert dict(zip(found.labels, found.members, strict=True)) == {
        "everything else": (0, 7, 9, 11),
        "all": (1, 4, 5, 6),
        "inner": (2, 3),
        "far, away": (8, 10),
    }
    hidden = units(
        side, initial_state(random_trace(tokens=side), "head", unit="span", spans=SPANS,
                            hide=["first", "special"]), slice(0, len(side)),
    )  # fmt: skip
    assert hidden.members[0] == (0, 7, 11) and hidden.labels[0] == "hidden"
    assert hidden.kept.tolist() == [False, True, True, True, True]


def test_runs_are_neighbours_of_one_span() -> None:
    side = pair_side()
    state = initial_state(random_trace(tokens=side), "head", spans=SPANS)
    found = units(side, state, slice(0, len(side)))
    assert span_runs(found, SPANS) == [(1, 2, 0), (2, 4, 1), (4, 7, 0), (8, 9, 2), (10, 11, 2)]


def test_a_filter_keeps_what_one_span_gives_to_another() -> None:
    trace = random_trace(tokens=pair_side(), causal=False)
    stack = trace.default
    state = initial_state(
        trace, "head", spans=SPANS, attending="inner", attended="far, away", hide=()
    )
    shown = drawing(stack.weights[0].numpy(), stack, state).shown
    for query, key in product(range(12), range(12)):
        assert shown[query, key] == (query in (2, 3) and key in (8, 10))


@pytest.mark.parametrize("how", ["mean", "max"])
def test_a_summary_is_what_a_loop_over_layers_and_heads_finds(how: str) -> None:
    trace = random_trace(tokens=pair_side(), causal=False)
    stack = trace.default
    state = initial_state(trace, "head", summary=how, layers=[0, 2], heads=[1, 3])
    heads, weights = shown_weights(stack, state, state.heads)
    assert heads == [0] and weights.shape == (1, 12, 12)
    for query, key in product(range(12), range(12)):
        all_of = [float(stack.weights[n][h, query, key]) for n in (0, 2) for h in (1, 3)]
        expected = max(all_of) if how == "max" else sum(all_of) / 4
        assert weights[0, query, key] == pytest.approx(expected, abs=1e-6)


def test_attention_on_the_text_is_the_mean_of_those_that_look() -> None:
    trace = random_trace(tokens=pair_side(), causal=False)
    stack = trace.default
    weights = stack.weights[0].numpy()
    picture = drawing(weights, stack, initial_state(trace, "head", hide=()))
    for key in range(12):
        mean = weights[:, [2, 5, 6], key].mean()
        assert attention_on_text(picture, "q2+5-6", None)[key] == pytest.approx(mean, abs=1e-6)
        given = weights[:, key, [1, 4]].sum(-1).mean()
        assert attention_on_text(picture, "k1+4", None)[key] == pytest.approx(given, abs=1e-6)
        written = weights[:, 9:, key].mean()
        assert attention_on_text(picture, None, 9)[key] == pytest.approx(written, abs=1e-6)
    by_span = drawing(
        weights, stack, initial_state(trace, "head", hide=(), unit="span", spans=SPANS)
    )
    on_tokens = attention_on_text(by_span, None, None)
    assert on_tokens[2] == on_tokens[3] != on_tokens[1]


def test_bins_keep_the_mass_of_a_row() -> None:
    trace = random_trace(tokens=pair_side(), causal=False)
    stack = trace.default
    picture = drawing(stack.weights[0].numpy(), stack, initial_state(trace, "head"))
    small = binned(picture, 5)
    assert small.weights.shape == (4, 5, 5)
    np.testing.assert_allclose(small.weights.sum(-1), 1, rtol=1e-5)
    assert binned(picture, 99).weights == pytest.approx(picture.weights)


def test_the_strongest_lines_are_kept() -> None:
    trace = known_trace()
    stack = trace.default
    picture: Drawing = drawing(stack.weights[0].numpy(), stack, initial_state(trace, "head"))
    found = lines(picture, 1.0)
    assert sorted(strongest(found, 2).weight) == pytest.approx([0.75, 1.0])
    assert strongest(found, 99) is found


def test_opacity_and_width_grow_with_the_weight_and_stay_in_range() -> None:
    weights = np.array([0.0, 0.25, 1.0, 3.0])
    assert opacity(weights) == pytest.approx([0, 0.5, 1, 1])
    assert width(weights) == pytest.approx([0.6, 1.2, 3.0, 3.0])
