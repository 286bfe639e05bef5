"""Each metric equals a plain-loop reading of its equation, for causal and bidirectional models.

And whichever way its layer is looked at: whole matrices, blocks of rows, or queries and keys.
"""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headscope.metrics import Axis, Grid, Metric, Variables, dependencies, labels, spread
from headscope.metrics.dependencies import DependencySpan
from headscope.metrics.variability import Variability
from headscope.observe import FORMS
from tests.references import vig2019 as plain
from tests.references.random_attention import (
    HEADS,
    LAYERS,
    RELATIONS,
    TAGS,
    Input,
    make_batch,
    make_layer_of,
    random_input,
)

GRID = Grid((0,), HEADS)
TAG = Axis("tag", TAGS)
DEPREL = Axis("deprel", RELATIONS)

Feature = Callable[[Input, int, int], bool]  # of a pair (query, key) of an input

every_layer = pytest.mark.parametrize("kind", LAYERS)


@st.composite
def corpora(draw: st.DrawFn) -> list[Input]:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    is_causal = draw(st.booleans())
    return [random_input(rng, is_causal) for _ in range(draw(st.integers(1, 6)))]


def close(found: object, wanted: object) -> None:
    np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), atol=2e-6, rtol=2e-6)


def measure(metric: Metric, inputs: list[Input], kind: str) -> Variables:
    """One padded batch and its first layer through a metric."""
    batch, sums = make_batch(inputs), metric.zero()
    metric.see_text(sums, batch)
    metric.see_layer(sums, make_layer_of(kind, inputs, batch))
    return metric.compute(metric.shrink(sums))


def measure_text(metric: Metric, inputs: list[Input]) -> Variables:
    """One padded batch through a metric of the text."""
    sums = metric.zero()
    metric.see_text(sums, make_batch(inputs))
    return metric.compute(metric.shrink(sums))


def expect(
    found: Variables, name: str, terms: Callable[[int, int], list], heads: int = HEADS
) -> None:
    """`terms(head, item)` are the plain-loop terms of one cell of the variable."""
    values = found[name].values.reshape(heads, -1)
    errors = found[f"{name}_se"].values.reshape(heads, -1)
    for head in range(heads):
        for item in range(values.shape[1]):
            value, error = plain.ratio_and_error(terms(head, item))
            close(values[head, item], value)
            np.testing.assert_allclose(errors[head, item], error, atol=2e-6, rtol=1e-4)


def expect_shares(
    found: Variables, name: str, inputs: list[Input], features: Sequence[Feature]
) -> None:
    """Shares of the attention to pairs with a feature, of every head and of even attention."""

    def terms(texts: list[Input], head: int, item: int) -> list:
        return [plain.weighted(text, head, partial(features[item], text)) for text in texts]

    assert found[name].size == HEADS * len(features)
    expect(found, name, partial(terms, inputs))
    even = [plain.evenly(text) for text in inputs]
    expect(found, f"{name}_even", partial(terms, even), heads=1)


@every_layer
@given(corpora())
@settings(max_examples=25)
def test_null_share_is_attention_to_null_over_all_attention(kind: str, inputs: list[Input]) -> None:
    found = measure(spread.null_share(GRID), inputs, kind)
    expect(found, "null_share", lambda h, _: [plain.null_terms(e, h, False) for e in inputs])
    found = measure(spread.null_share_of_all_queries(GRID), inputs, kind)
    everything = [[plain.null_terms(e, h, True) for e in inputs] for h in range(HEADS)]
    expect(found, "null_share_all_queries", lambda h, _: everything[h])


@given(corpora())
@settings(max_examples=25)
def test_the_null_share_of_even_attention_is_that_of_even_weights(inputs: list[Input]) -> None:
    found = measure_text(spread.null_share(GRID), inputs)
    value, error = plain.ratio_and_error(
        [plain.null_terms(plain.evenly(e), 0, False) for e in inputs]
    )
    close(found["null_share_even"], value)
    np.testing.assert_allclose(found["null_share_even_se"], error, atol=2e-6, rtol=1e-4)


@every_layer
@given(corpora())
@settings(max_examples=20)
def test_tag_shares_follow_equation_3_to_and_from(kind: str, inputs: list[Input]) -> None:
    def receives(tag: str, text: Input, _: int, key: int) -> bool:
        return plain.tag_of(text, key) == tag

    def pays(tag: str, text: Input, query: int, _: int) -> bool:
        return plain.tag_of(text, query) == tag

    received = measure(labels.label_to(labels.POS_TO, GRID, TAG), inputs, kind)
    expect_shares(received, "pos_to", inputs, [partial(receives, tag) for tag in TAGS])
    paid = measure(labels.label_from(labels.POS_FROM, GRID, TAG), inputs, kind)
    expect_shares(paid, "pos_from", inputs, [partial(pays, tag) for tag in TAGS])


@every_layer
@given(corpora())
@settings(max_examples=15)
def test_relation_shares_use_the_relation_of_the_receiving_token(
    kind: str, inputs: list[Input]
) -> None:
    def receives(relation: str, text: Input, _: int, key: int) -> bool:
        return plain.relation_of(text, key) == relation

    shares = measure(labels.label_to(labels.DEPREL_TO, GRID, DEPREL), inputs, kind)
    features = [partial(receives, relation) for relation in RELATIONS]
    expect_shares(shares, "deprel_to", inputs, features)


@every_layer
@given(corpora())
@settings(max_examples=25)
def test_dependency_alignment_follows_equation_4_in_three_forms(
    kind: str, inputs: list[Input]
) -> None:
    forms: list[Feature] = [
        lambda e, i, j: plain.is_parent(e, i, j),
        lambda e, i, j: plain.is_parent(e, j, i),
        lambda e, i, j: plain.is_parent(e, i, j) or plain.is_parent(e, j, i),
    ]
    alignment = measure(dependencies.dependency_alignment(GRID), inputs, kind)
    expect_shares(alignment, "dependency_alignment", inputs, forms)


@given(corpora())
@settings(max_examples=25)
def test_shares_of_pairs_give_every_pair_the_same_weight(inputs: list[Input]) -> None:
    with_self = measure_text(dependencies.dependency_baseline(), inputs)["dependency_baseline"]
    name = "dependency_baseline_without_self"
    without = measure_text(dependencies.dependency_baseline_without_self(), inputs)[name]
    all_pairs = [(e, i, j) for e in inputs for i, j in plain.pairs(e)]
    parents = sum(plain.is_parent(e, i, j) for e, i, j in all_pairs)
    children = sum(plain.is_parent(e, j, i) for e, i, j in all_pairs)
    apart = sum(i != j for _, i, j in all_pairs)
    for form, count in zip(FORMS, (parents, children, parents + children), strict=True):
        wanted = count / len(all_pairs) if all_pairs else np.nan
        close(with_self.sel(form=form), wanted)
        np.testing.assert_allclose(without.sel(form=form), count / apart if apart else np.nan)


@given(corpora())
@settings(max_examples=15)
def test_frequencies_count_content_tokens_once(inputs: list[Input]) -> None:
    found = measure_text(labels.label_frequency(labels.TAG_FREQUENCY, TAG), inputs)["tag_frequency"]
    tokens = [plain.tag_of(e, t) for e in inputs for t in range(e.length) if not e.null[t]]
    wanted = [tokens.count(tag) / len(tokens) if tokens else np.nan for tag in TAGS]
    close(found, wanted)


@every_layer
@given(corpora())
@settings(max_examples=25)
def test_distance_and_entropy_follow_equations_6_and_7(kind: str, inputs: list[Input]) -> None:
    def far(head: int, _: int) -> list:
        return [plain.weighted(e, head, lambda i, j: abs(i - j)) for e in inputs]

    expect(measure(spread.distance(GRID), inputs, kind), "distance", far)
    nats = [[plain.entropy_terms(e, h) for e in inputs] for h in range(HEADS)]
    expect(measure(spread.entropy(GRID), inputs, kind), "entropy", lambda h, _: nats[h])


@every_layer
@given(corpora(), st.integers(2, 12))
@settings(max_examples=25)
def test_variability_follows_equation_5(kind: str, inputs: list[Input], size: int) -> None:
    found = measure(Variability(GRID, inputs[0].is_causal, size), inputs, kind)
    for head in range(HEADS):
        value, error = plain.variability(inputs, head, size)
        close(found["variability"][0, head], value)
        np.testing.assert_allclose(found["variability_se"][0, head], error, atol=2e-6, rtol=1e-4)


@given(corpora())
@settings(max_examples=25)
def test_dependency_probability_counts_each_pair_once(inputs: list[Input]) -> None:
    found = measure_text(DependencySpan(), inputs)
    once = [
        (abs(i - j), plain.is_parent(e, i, j) or plain.is_parent(e, j, i))
        for e in inputs
        for i, j in plain.pairs(e)
        if j < i
    ]
    spans = [d for d, related in once if related]
    if spans:
        np.testing.assert_allclose(found["mean_dependency_span"], np.mean(spans))
        within = found["dependency_within"].sel(separation=2)
        np.testing.assert_allclose(within, np.mean([d <= 2 for d in spans]))
    for separation in (1, 2, 5):
        at = [related for d, related in once if d == separation]
        probability = found["dependency_probability"].sel(separation=separation)
        np.testing.assert_allclose(probability, np.mean(at) if at else np.nan)
