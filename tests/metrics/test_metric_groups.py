"""Sums of groups of documents: their errors, how they merge, and corpora with little in them."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import headscope as hs
from headscope.engine import Setup
from headscope.metrics import Axis, Grid, Ratio, Sums, Variables, add_by_group, spread, sum_by_group
from headscope.observe import AnnotatedBatch, Layer
from headscope.results import replicates
from headscope.results.measure import Baseline, Measure, attach
from headscope.results.replicates import GROUPS
from headscope.studies import find_study
from headscope.text.corpus import Corpus
from headscope.text.segments import Excerpt
from headscope.text.sentence import Sentence
from tests.references.random_attention import (
    HEADS,
    Input,
    make_batch,
    make_layer,
    matrix_layer,
    random_input,
)
from tests.references.tiny_models import MODELS, make_sentences

GRID = Grid((0, 1), HEADS)
SHARE = Measure("share", "Share", "What is shared.", "x / y", "a test")
SEEDS = st.integers(0, 2**32 - 1)
Terms = tuple[np.ndarray, np.ndarray]


def jackknife(statistic: Callable[[list[int]], float], groups: list[int]) -> float:
    """The standard error of a textbook: the statistic without each group in turn."""
    left = [statistic([g for g in groups if g != out]) for out in groups]
    k, mean = len(left), sum(left) / len(left)
    return float(np.sqrt((k - 1) / k * sum((each - mean) ** 2 for each in left)))


def observed(
    metrics: list[Ratio], inputs: list[Input]
) -> tuple[dict[str, Variables], dict[str, list[Terms]]]:
    """The variables of metrics over one batch, and x and y of every input by layer."""
    batch, variables, terms = make_batch(inputs), {}, {}
    for metric in metrics:
        sums, terms[metric.name] = metric.zero(), []
        for index in range(len(GRID.layers)):
            layer = make_layer(inputs, batch, index)
            metric.see_layer(sums, layer)
            x, y = metric.terms(layer)
            terms[metric.name].append((x.double().numpy(), y.double().numpy()))
        variables[metric.name] = metric.compute(sums)
    return variables, terms


@given(SEEDS, st.booleans())
@settings(max_examples=20, deadline=None)
def test_errors_of_ratios_differences_and_correlations_are_those_of_a_jackknife_over_documents(
    seed: int, is_causal: bool
) -> None:
    rng = np.random.default_rng(seed)
    inputs = [random_input(rng, is_causal, len(GRID.layers)) for _ in range(12)]
    metrics = [spread.distance(GRID), spread.null_share_of_all_queries(GRID)]
    found, terms = observed(metrics, inputs)
    (x0, y0), (x1, y1) = terms["null_share_all_queries"]
    far = terms["distance"]
    documents = list(range(12))

    def share(x: np.ndarray, y: np.ndarray, kept: list[int], head: int) -> float:
        return float(x[kept, head].sum() / y[kept, head].sum())

    def pooled(kept: list[int]) -> float:
        return float(x1[kept].sum() / y1[kept].sum())

    def difference(kept: list[int]) -> float:
        return share(x1, y1, kept, 2) - share(x0, y0, kept, 0)

    def correlation(kept: list[int]) -> float:
        shares = [share(x, y, kept, h) for x, y in ((x0, y0), (x1, y1)) for h in range(HEADS)]
        spans = [share(x, y, kept, h) for x, y in far for h in range(HEADS)]
        return float(np.corrcoef(shares, spans)[0, 1])

    of = found["null_share_all_queries"]
    for head in range(HEADS):
        wanted = jackknife(lambda kept, h=head: share(x0, y0, kept, h), documents)
        assert of["null_share_all_queries_se"].values[0, head] == pytest.approx(wanted, abs=1e-9)
    wanted = jackknife(pooled, documents)
    assert of["null_share_all_queries_by_layer_se"].values[1] == pytest.approx(wanted, abs=1e-9)

    if any(far[layer][1][:, head].min() <= 0 for layer in range(2) for head in range(HEADS)):
        return  # an input of null tokens alone leaves a group without data: see below
    both = xr.Dataset({**of, **found["distance"]})
    shares, spans = (
        replicates.replicates_of(both, name).values
        for name in ("null_share_all_queries", "distance")
    )
    apart = shares[:, 1, 2] - shares[:, 0, 0]
    informed = replicates.standard_error(apart, 12)
    assert float(informed) == pytest.approx(jackknife(difference, documents), abs=1e-9)
    assert apart[0] == pytest.approx(difference(documents), abs=1e-12)
    r = np.array([np.corrcoef(shares[at].ravel(), spans[at].ravel())[0, 1] for at in range(33)])
    error = float(replicates.standard_error(r, 12))
    assert error == pytest.approx(jackknife(correlation, documents), rel=1e-7, abs=1e-9)


def synthetic(values: np.ndarray) -> Ratio:
    """A ratio whose terms are looked up by the number of an input: no forward pass rounds them."""

    def terms(layer: Layer) -> tuple[torch.Tensor, torch.Tensor]:
        x = torch.from_numpy(values[layer.batch.numbers])
        return x, torch.ones_like(x[..., :1])

    return Ratio(SHARE, Grid((0,), HEADS), terms, Axis("item", ("a", "b")), has_even=False)


def batch_of(numbers: list[int], groups: list[int]) -> AnnotatedBatch:
    mask = torch.ones(len(numbers), 3, dtype=torch.bool)
    rows = np.arange(len(numbers))
    null = torch.zeros_like(mask)
    return AnnotatedBatch(np.array(numbers), rows, torch.tensor(groups), mask, null, False)


def see(metric: Ratio, sums: Sums, numbers: list[int], groups: list[int]) -> Sums:
    weights = torch.full((len(numbers), HEADS, 3, 3), 1 / 3)
    batch = batch_of(numbers, [groups[n] for n in numbers])
    metric.see_layer(sums, matrix_layer(0, batch, weights))
    return sums


@given(SEEDS, st.integers(1, 7))
@settings(max_examples=30, deadline=None)
def test_the_size_of_a_batch_does_not_change_a_bit_of_the_sums(seed: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    values, groups = rng.normal(size=(20, HEADS, 2)), rng.integers(0, 5, 20).tolist()
    metric = synthetic(values)
    at_once = see(metric, metric.zero(), list(range(20)), groups)
    pieces = metric.zero()
    for start in range(0, 20, size):
        see(metric, pieces, list(range(20))[start : start + size], groups)
    for name, sums in at_once.items():
        torch.testing.assert_close(pieces[name], sums, rtol=0, atol=0)


@given(SEEDS)
@settings(max_examples=30, deadline=None)
def test_shards_of_whole_documents_merge_to_the_bits_of_one_pass(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values, groups = rng.normal(size=(20, HEADS, 2)), sorted(rng.integers(0, GROUPS, 20).tolist())
    metric = synthetic(values)
    cut = groups.index(groups[10])
    first, second = list(range(cut)), list(range(cut, 20))
    shards = [see(metric, metric.zero(), part, groups) for part in (first, second)]
    merged = metric.merge(*shards)
    one_pass = metric.zero()
    for part in (first, second):
        see(metric, one_pass, part, groups)
    for name, sums in one_pass.items():
        torch.testing.assert_close(merged[name], sums, rtol=0, atol=0)


@pytest.mark.parametrize("is_cuda", [False, True])
def test_every_input_is_added_to_its_group(is_cuda: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """One by one, or on a GPU by a product with ones."""
    monkeypatch.setattr(torch.Tensor, "is_cuda", is_cuda)
    rng = np.random.default_rng(0)
    terms, groups = rng.normal(size=(50, 3, 4)), np.arange(50) * 7 % GROUPS
    expected = np.zeros((GROUPS, 3, 4))
    for values, group in zip(terms, groups, strict=True):
        expected[group] += values
    sums = sum_by_group(torch.from_numpy(terms), torch.from_numpy(groups))
    np.testing.assert_allclose(sums, expected, rtol=1e-14, atol=1e-14)
    added = torch.ones(GROUPS, 3, 4, dtype=torch.float64)
    add_by_group(added, torch.from_numpy(terms).float(), torch.from_numpy(groups))
    np.testing.assert_allclose(added, 1 + expected, rtol=1e-6, atol=1e-6)


def test_groups_without_data_change_neither_the_value_nor_the_error() -> None:
    rng = np.random.default_rng(1)
    values, metric_groups = rng.normal(size=(6, HEADS, 2)), [3, 3, 9, 9, 30, 30]
    metric = synthetic(values)
    found = metric.compute(see(metric, metric.zero(), list(range(6)), metric_groups))

    def mean(kept: list[int]) -> float:
        rows = [row for row, group in enumerate(metric_groups) if group in kept]
        return float(values[rows, 1, 0].mean())

    assert found["share"].values[0, 1, 0] == pytest.approx(mean([3, 9, 30]), abs=1e-12)
    error = jackknife(mean, [3, 9, 30])
    assert found["share_se"].values[0, 1, 0] == pytest.approx(error, abs=1e-9)


def test_one_group_has_a_value_and_no_error() -> None:
    metric = synthetic(np.ones((3, HEADS, 2)))
    found = metric.compute(see(metric, metric.zero(), [0, 1, 2], [4, 4, 4]))
    assert (found["share"] == 1).all()
    assert found["share_se"].isnull().all()
    assert found["share_numerator"].sel(group=4).values[0, 0].tolist() == [3, 3]


def setup_of(sentences: list[Sentence]) -> Setup:
    study, corpus = find_study("vig2019"), Corpus.from_sentences(sentences)
    labels = study.labels(corpus)
    return Setup(MODELS["causal"](), corpus, study.with_options({}), labels, 64)


def test_documents_are_the_units_where_there_are_eight_of_them() -> None:
    setup = setup_of(make_sentences(80))  # ten sentences a document
    groups = [setup.group(each, number) for number, each in enumerate(setup.corpus)]
    assert groups == [replicates.group_of(f"d{number // 10}") for number in range(80)]
    (part,) = find_study("vig2019").parts(setup)
    columns = part.kind.make(setup, Excerpt(list(setup.corpus)), 0).columns
    assert columns.groups.tolist() == [groups[number] for number in columns.numbers]


def test_sentences_are_the_units_of_fewer_documents_or_of_none() -> None:
    few = setup_of(make_sentences(70))
    assert len({few.group(each, n) for n, each in enumerate(few.corpus)}) > 20
    nameless = setup_of([Sentence(each.text, each.words) for each in make_sentences(40)])
    groups = [nameless.group(each, n) for n, each in enumerate(nameless.corpus)]
    assert groups == [replicates.group_of(str(number)) for number in range(40)]


def test_a_corpus_of_one_document_has_errors_over_its_sentences() -> None:
    sentences = [
        Sentence(each.text, each.words, document="one", id=each.id) for each in make_sentences(30)
    ]
    result = hs.study("vig2019", MODELS["causal"](), Corpus.from_sentences(sentences))
    assert result["distance_se"].notnull().all()
    assert (result["distance_se"] > 0).all()


def test_a_label_with_one_word_has_an_interval_and_neither_error_nor_q() -> None:
    sentences = make_sentences(20)
    word = sentences[3].words[-1]
    odd = type(word)(word.text, word.start, word.end, upos=word.upos, head=word.head, deprel="odd")
    words = (*sentences[3].words[:-1], odd)
    sentences[3] = Sentence(sentences[3].text, words, document=sentences[3].document, id="s3")
    options = {"probes": False, "gradients": False, "repeated_sequences": 2, "period": 4}
    result = hs.study(
        "clark2019", MODELS["bidirectional"](), Corpus.from_sentences(sentences), **options
    )
    at = result.sel(relation="odd")
    assert at["relation_accuracy_denominator"].sum("group").values.tolist() == [1, 1]
    assert at["relation_accuracy_se"].isnull().all()
    assert at["relation_accuracy_q"].isnull().all()
    low, high = (at["relation_accuracy_ci"].sel(bound=end) for end in ("low", "high"))
    assert (low >= 0).all() and (high <= 1).all() and (high - low > 0.5).all()
    every = result["relation_accuracy_ci"]
    assert not (every.sel(bound="high") - every.sel(bound="low") <= 0).any()


def test_q_values_are_of_values_above_their_baseline_over_heads_and_labels() -> None:
    rng = np.random.default_rng(5)
    x = rng.random((GROUPS, 1, HEADS, 2)) + np.array([0.0, 0.5])
    base = rng.random((GROUPS, 3, 2)) * np.array([[0.1], [1.0], [0.2]])
    one = np.ones(GROUPS)
    coords = {"group": range(GROUPS), "layer": [0], "head": range(HEADS), "item": ["a", "b"]}
    data = xr.Dataset(
        {
            "share": (("layer", "head", "item"), x.mean(0)),
            "share_numerator": (("group", "layer", "head", "item"), x),
            "share_denominator": ("group", one),
            "rule_numerator": (("group", "rule", "item"), base),
            "rule_denominator": ("group", one),
        },
        coords=coords,
    )
    against = Baseline("rule", "the best rule", best_over="rule")
    measure = Measure("share", "Share", "", "", "", baselines=(against,))
    found = replicates.add_q_values(attach(data, [measure]))["share_q"]
    difference = x - base[:, None, None, 1]  # the second rule is best for both items
    error = difference.std(0, ddof=1) / np.sqrt(GROUPS)
    p = stats.t.sf((difference.mean(0) - 0.01) / error, GROUPS - 1)  # above it, by a hundredth
    np.testing.assert_allclose(found.values, replicates.q_values(p), rtol=1e-9)
    assert found.dims == ("layer", "head", "item")
    assert "share_q" not in replicates.add_q_values(data)
