"""Alignment expected from distances equals a plain-loop reading, and so does its error."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headscope.metrics import Grid, Variables
from headscope.metrics.dependencies import dependency_expected
from headscope.observe import FORMS
from tests.references import vig2019 as plain
from tests.references.random_attention import (
    HEADS,
    LAYERS,
    Input,
    make_batch,
    make_layer_of,
    random_input,
)

GRID = Grid((0,), HEADS)


@st.composite
def corpora(draw: st.DrawFn) -> list[Input]:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    is_causal = draw(st.booleans())
    return [random_input(rng, is_causal) for _ in range(draw(st.integers(1, 6)))]


def related(each: Input, i: int, j: int, form: str) -> bool:
    parent, child = plain.is_parent(each, i, j), plain.is_parent(each, j, i)
    return {FORMS[0]: parent, FORMS[1]: child, FORMS[2]: parent or child}[form]


def expected(inputs: list[Input], head: int, form: str, longest: int) -> float:
    """Each row's weight spread over its keys in proportion to the strength of their offsets."""
    follows = total = 0.0
    for each in inputs:
        strength = strengths(each, head, longest)
        for i in range(each.length):
            keys = [j for query, j in plain.pairs(each) if query == i]
            row = sum(float(each.weights[0, head, i, j]) for j in keys)
            by_key = {j: strength[bin_of(i - j, longest)] for j in keys}
            if sum(by_key.values()) > 0:
                arcs = sum(by_key[j] for j in keys if related(each, i, j, form))
                follows += row * arcs / sum(by_key.values())
            total += row
    return follows / total if total > 0 else math.nan


def strengths(each: Input, head: int, longest: int) -> dict[int, float]:
    """The weight of a head at every offset beside that of even attention."""
    weight: dict[int, float] = {}
    even: dict[int, float] = {}
    evenly = plain.evenly(each).weights[0, 0]
    for i, j in plain.pairs(each):
        offset = bin_of(i - j, longest)
        weight[offset] = weight.get(offset, 0.0) + float(each.weights[0, head, i, j])
        even[offset] = even.get(offset, 0.0) + float(evenly[i, j])
    return {offset: weight[offset] / even[offset] for offset in weight}


def bin_of(offset: int, longest: int) -> int:
    return offset if abs(offset) <= longest else longest + 1


def jackknife(inputs: list[Input], head: int, form: str, longest: int) -> float:
    """The spread of the value without each input, among the inputs that have any weight."""
    known = [n for n, each in enumerate(inputs) if plain.weighted(each, head, lambda *_: 1)[1] > 0]
    if len(known) < 2:
        return math.nan
    values = [expected([*inputs[:n], *inputs[n + 1 :]], head, form, longest) for n in known]
    mean, k = sum(values) / len(known), len(known)
    return math.sqrt((k - 1) / k * sum((value - mean) ** 2 for value in values))


def measure(inputs: list[Input], longest: int, kind: str) -> Variables:
    """One padded batch and its first layer through the metric."""
    batch = make_batch(inputs)
    metric = dependency_expected(GRID, longest)
    sums = metric.zero()
    metric.see_text(sums, batch)
    metric.see_layer(sums, make_layer_of(kind, inputs, batch))
    return metric.compute(sums)


@pytest.mark.parametrize("kind", LAYERS)
@given(corpora(), st.sampled_from([3, 100]))
@settings(max_examples=20)
def test_it_is_the_share_at_each_offset_times_the_chance_of_an_arc_there(
    kind: str, inputs: list[Input], longest: int
) -> None:
    variables = measure(inputs, longest, kind)
    for head in range(HEADS):
        for form in FORMS:
            at = {"layer": 0, "head": head, "form": form}
            value = expected(inputs, head, form, longest)
            np.testing.assert_allclose(
                variables["dependency_expected"].sel(at), value, atol=3e-6, rtol=3e-6
            )
            error = jackknife(inputs, head, form, longest)
            np.testing.assert_allclose(
                variables["dependency_expected_se"].sel(at), error, atol=3e-6, rtol=1e-3
            )


def test_a_head_that_looks_at_one_offset_has_just_what_is_expected_of_it() -> None:
    rng = np.random.default_rng(3)
    inputs = [random_input(rng, is_causal=True) for _ in range(12)]
    for each in inputs:
        each.weights[:] = 0.0
        for i in range(1, each.length):
            each.weights[0, :, i, i - 1] = 1.0
    arcs = sum(plain.is_parent(e, i, i - 1) or plain.is_parent(e, i - 1, i)
               for e in inputs for i in range(2, e.length))  # fmt: skip
    pairs = sum(max(0, each.length - 2) for each in inputs)
    variables = measure(inputs, 64, "matrix")
    alignment = variables["dependency_expected"].sel(head=0, form="either")
    np.testing.assert_allclose(alignment, arcs / pairs, rtol=1e-6)


@pytest.mark.parametrize("is_causal", [True, False])
def test_an_even_head_follows_the_arcs_that_are_expected_of_it(is_causal: bool) -> None:
    rng = np.random.default_rng(5)
    inputs = [random_input(rng, is_causal) for _ in range(12)]
    for each in inputs:
        each.weights[:] = plain.evenly(each).weights
    variables = measure(inputs, 64, "matrix")
    for form in FORMS:
        follows = total = 0.0
        for each in inputs:
            for i, j in plain.pairs(each):
                total += float(each.weights[0, 0, i, j])
                follows += float(each.weights[0, 0, i, j]) * related(each, i, j, form)
        expectation = variables["dependency_expected"].sel(head=0, form=form)
        np.testing.assert_allclose(expectation, follows / total, rtol=1e-5)
