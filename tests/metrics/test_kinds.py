"""The exemplars of a kind are what a plain loop over all pairs finds, however inputs are cut."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headscope.metrics.metric import Axis, Grid, State
from headscope.metrics.records import kinds
from headscope.metrics.records.kinds import KindExemplars, distance_kind, draw_order
from tests.metrics import plain
from tests.metrics.inputs import (
    HEADS,
    RELATIONS,
    TAGS,
    Input,
    make_batch,
    make_layer,
    random_input,
)

METRIC = KindExemplars(Grid((0,), HEADS), (Axis("tag", TAGS), Axis("deprel", RELATIONS)), seed=3)
Found = tuple[float, int, int, int]  # weight, input, query, key


@st.composite
def corpora(draw: st.DrawFn) -> list[Input]:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    is_causal = draw(st.booleans())
    return [random_input(rng, is_causal) for _ in range(draw(st.integers(1, 7)))]


def see(metric: KindExemplars, inputs: list[Input], first: int = 0) -> State:
    state = metric.zero(len(inputs))
    batch = make_batch(inputs, first)
    metric.update_matrix(state, make_layer(inputs, batch))
    return state


def is_of(kind: str, each: Input, query: int, key: int) -> bool:
    what, _, name = kind.partition(" ")
    word = each.word[key]
    if what == "any":
        return True
    if what == "tag":
        return word >= 0 and TAGS[each.tag[word]] == name
    if what == "relation":
        return word >= 0 and RELATIONS[each.relation[word]] == name
    return distance_kind(abs(query - key)) == kind and query != key


def surest(inputs: list[Input], head: int, kind: str, with_self: bool) -> dict[int, Found]:
    """The largest weight of every input that has a pair of the kind, and the first such pair."""
    found: dict[int, Found] = {}
    for number, each in enumerate(inputs):
        a = each.weights[0, head]
        own = [
            (float(a[i, j]), number, i, j)
            for i, j in plain.pairs(each)
            if (with_self or i != j) and a[i, j] > 0 and is_of(kind, each, i, j)
        ]
        if own:
            found[number] = min(own, key=lambda item: (-item[0], item[3], item[2]))
    return found


@given(corpora(), st.booleans())
@settings(max_examples=40)
def test_the_strongest_and_the_drawn_pair_of_every_kind_are_those_of_a_plain_loop(
    inputs: list[Input], with_self: bool
) -> None:
    metric = KindExemplars(METRIC.grid, METRIC.labels, METRIC.seed, with_self)
    found = metric.compute(see(metric, inputs).sums, lambda: iter(()))
    assert found["kind_exemplar_weight"]["kind"].values.tolist() == list(metric.kinds)
    parts = {
        name: found[f"kind_exemplar_{name}"].transpose("layer", "head", "kind", "pick").values[0]
        for name in ("weight", "sentence", "query", "key")
    }
    order = draw_order(metric.seed, np.arange(len(inputs)), len(metric.kinds))
    for head in range(HEADS):
        for place, kind in enumerate(metric.kinds):
            own = surest(inputs, head, kind, with_self)
            ranked = sorted(own.values(), key=lambda item: (-item[0], item[1]))[: kinds.STRONGEST]
            drawn = min(own, key=lambda number: order[number, place], default=None)
            wanted: list[Found | None] = [*ranked, *[None] * (kinds.STRONGEST - len(ranked))]
            wanted.append(None if drawn is None else own[drawn])
            assert len(wanted) == len(kinds.PICKS)
            for pick, expected in enumerate(wanted):
                weight, *places = (values[head, place, pick] for values in parts.values())
                if expected is None:
                    assert np.isnan(weight) and places == [-1, -1, -1]
                else:
                    assert weight == pytest.approx(expected[0], abs=1e-6)
                    assert tuple(places) == expected[1:]


@given(corpora(), st.integers(0, 7))
@settings(max_examples=40)
def test_two_shards_give_the_same_as_one_pass_in_either_order(
    inputs: list[Input], cut: int
) -> None:
    whole = see(METRIC, inputs).sums
    cut = min(cut, len(inputs))
    parts = [
        see(METRIC, some, first).sums
        for some, first in ((inputs[:cut], 0), (inputs[cut:], cut))
        if some
    ]
    for ordered in (parts, parts[::-1]):
        merged = METRIC.zero(0).sums
        for part in ordered:
            merged = METRIC.merge(merged, part)
        for name, values in whole.items():
            np.testing.assert_allclose(merged[name], values, atol=1e-7, err_msg=name)


@given(corpora(), st.integers(0, 7), st.booleans())
@settings(max_examples=40)
def test_batches_that_compete_in_one_state_give_the_same_as_one_batch(
    inputs: list[Input], cut: int, is_far: bool
) -> None:
    whole = see(METRIC, inputs).sums
    cut = min(cut, len(inputs))
    parts = [(some, first) for some, first in ((inputs[:cut], 0), (inputs[cut:], cut)) if some]
    for ordered in (parts, parts[::-1]):
        state = METRIC.zero(len(inputs))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(kinds, "is_far", lambda tensor: is_far)  # as on a GPU: all cells compete
            for some, first in ordered:
                METRIC.update_matrix(state, make_layer(some, make_batch(some, first)))
        for name, values in whole.items():
            np.testing.assert_allclose(state.sums[name], values, atol=1e-7, err_msg=name)


def test_a_kind_is_named_after_the_separation_it_holds() -> None:
    assert [distance_kind(tokens) for tokens in (0.2, 1, 2, 3.4, 4, 15, 16, 900)] == [
        "distance 1", "distance 1", "distance 2–3", "distance 2–3", "distance 4–7",
        "distance 8–15", "distance 16 or more", "distance 16 or more",
    ]  # fmt: skip


def test_the_draw_follows_the_seed_and_the_number_of_the_input_alone() -> None:
    numbers = np.arange(2000)
    order = draw_order(7, numbers, 6)
    assert np.array_equal(order[500:900], draw_order(7, numbers[500:900], 6))
    assert not np.array_equal(order, draw_order(8, numbers, 6))
    assert (order >= 0).all() and (order < 1).all() and len(np.unique(order)) == order.size
    firsts = order.argmin(0)
    assert len(set(firsts.tolist())) == 6  # another input for every kind
    np.testing.assert_allclose(np.histogram(order, 10, (0, 1))[0], 1200, rtol=0.15)
