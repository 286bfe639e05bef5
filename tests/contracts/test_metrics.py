"""What every metric of every study keeps, without a test of its own being written for it."""

from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import headscope as hs
from headscope.engine import job
from headscope.engine.forward import observe
from headscope.engine.job import Counts, Partial
from headscope.errors import RunError
from headscope.metrics.metric import BatchMetric, MatrixMetric, Metric, State
from headscope.metrics.where.spread import CORRELATION, CORRELATION_P
from headscope.model.capture.modes import Mode
from headscope.observe.inputs import Example
from headscope.results.measure import DERIVED, Measure
from headscope.results.replicates import GROUPS
from headscope.studies import STUDIES, find_study
from headscope.studies.study import Setup
from headscope.text.corpus import Corpus
from headscope.text.segments import Excerpt
from tests.engine.tiny import MODELS, make_sentences

BATCH_TOKENS = 64
OPTIONS = {"luger2026": {"context": 16, "rest": True}}  # tiny documents are shorter than 512


@cache
def prepare(study: str, kind: str) -> list[tuple[Metric, tuple[Example, ...], Setup]]:
    """Every metric of a study with the inputs it reads."""
    corpus, chosen = Corpus.from_sentences(make_sentences(40)), find_study(study)
    options = chosen.with_options(OPTIONS.get(study, {}))
    setup = Setup(MODELS[kind](), corpus, options, chosen.labels(corpus), 64)
    return [
        (metric, tuple(part.inputs(setup, Excerpt(list(corpus)), 0).examples), setup)
        for part in chosen.parts(setup)
        for metric in part.metrics
    ]


def all_metrics() -> Iterator[tuple[str, str, str]]:
    for study in STUDIES:
        for kind in MODELS:
            for metric, _, _ in prepare(study, kind):
                yield study, kind, metric.name


@pytest.fixture(params=list(all_metrics()), ids="-".join)
def case(request: pytest.FixtureRequest) -> tuple[Metric, tuple[Example, ...], Setup]:
    study, kind, name = request.param
    return next(found for found in prepare(study, kind) if found[0].name == name)


def see(case: tuple[Metric, tuple[Example, ...], Setup], start: int, stop: int) -> State:
    metric, examples, setup = case
    return observe(setup.model, examples[start:stop], [metric], BATCH_TOKENS)[metric.name]


def compute(metric: Metric, *states: State) -> dict[str, xr.DataArray]:
    """Merge states in order and compute, as the engine does with shards."""
    sums = metric.zero(0).sums
    for state in states:
        sums = metric.merge(sums, state.sums)
    return metric.compute(sums, lambda: iter([state.records for state in states]))


def assert_close(left: dict[str, xr.DataArray], right: dict[str, xr.DataArray]) -> None:
    assert left.keys() == right.keys()
    for name in left:
        if left[name].dtype.kind in "fi":
            # A group may hold a single input, whose rounding no other one evens out; the error of
            # an entropy, in which large sums cancel, is made of such groups.
            rough = name.endswith(("_numerator", "_denominator")) or name == "entropy_se"
            rtol = 1e-4 if rough else 1e-5
            np.testing.assert_allclose(left[name], right[name], atol=2e-6, rtol=rtol, err_msg=name)


def test_merging_shards_equals_one_pass(case: tuple) -> None:
    whole, cut = see(case, 0, 40), len(case[1]) // 3
    parts = see(case, 0, cut), see(case, cut, 40)
    assert_close(compute(case[0], *parts), compute(case[0], whole))


def test_merging_is_associative_and_zero_changes_nothing(case: tuple) -> None:
    metric, cut = case[0], max(1, len(case[1]) // 3)
    a, b, c = (see(case, n * cut, (n + 1) * cut).sums for n in range(3))
    left = metric.merge(metric.merge(a, b), c)
    right = metric.merge(a, metric.merge(b, c))
    with_zero = metric.merge(metric.zero(0).sums, a)
    for name in a:
        np.testing.assert_allclose(left[name], right[name], rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(with_zero[name], a[name])


def test_sums_are_float64_and_states_survive_their_file(case: tuple, tmp_path: Path) -> None:
    metric, state = case[0], see(case, 0, 12)
    assert all(values.dtype == np.float64 for values in state.sums.values())
    packed = job.pack(Partial({metric.name: state}, Counts(12, 99, {"empty": 1})))
    (tmp_path / "0.npz").write_bytes(packed)
    sums, counts = job.load_sums(tmp_path / "0.npz")
    assert counts == Counts(12, 99, {"empty": 1})
    for name, values in state.sums.items():
        np.testing.assert_array_equal(sums[metric.name][name], values)
    records = job.load_records(tmp_path / "0.npz", metric.name)
    assert records.keys() == state.records.keys()


def test_no_inputs_give_no_value(case: tuple) -> None:
    metric = case[0]
    for name, array in compute(metric, metric.zero(0)).items():
        if name.endswith(("_numerator", "_denominator")):
            assert not array.values.any(), name
            continue
        known = np.isfinite(array.values) if array.dtype.kind == "f" else array.values > -1
        assert not known.any(), name


def test_a_value_per_head_comes_with_its_error(case: tuple) -> None:
    found = compute(case[0], see(case, 0, 40))
    own = [name for name in found if name == case[0].name and "head" in found[name].dims]
    assert all(f"{name}_se" in found for name in own)


def test_every_ratio_is_that_of_the_sums_it_comes_with(case: tuple) -> None:
    found = compute(case[0], see(case, 0, 40))
    for name in [name.removesuffix("_numerator") for name in found if name.endswith("_numerator")]:
        x, y = found[f"{name}_numerator"], found[f"{name}_denominator"]
        assert x.dims[0] == y.dims[0] == "group"
        assert x["group"].values.tolist() == list(range(GROUPS))
        assert set(y.dims) <= set(x.dims)
        share = x.sum("group") / y.sum("group").where(y.sum("group") > 0)
        np.testing.assert_allclose(found[name], share.transpose(*found[name].dims), rtol=1e-12)
        if f"{name}_by_layer" in found and "head" in y.dims:
            pooled = x.sum(("group", "head")) / y.sum(("group", "head"))
            by_layer = found[f"{name}_by_layer"]
            np.testing.assert_allclose(by_layer, pooled.transpose(*by_layer.dims), rtol=1e-12)


@pytest.mark.parametrize("way", ["rows", "fused"])
def test_without_matrices_a_metric_gives_the_same_or_is_refused_by_its_type(
    case: tuple, way: Mode
) -> None:
    metric, examples, setup = case
    if isinstance(case[0], MatrixMetric | BatchMetric):
        said = rf"{metric.name} (needs|compares) whole attention matrices.* attention=dense"
        with pytest.raises(RunError, match=said):
            observe(setup.model, examples[:6], [metric], BATCH_TOKENS, way)
        return
    found = observe(setup.model, examples[:6], [metric], BATCH_TOKENS, way)[metric.name]
    assert_close(compute(metric, found), compute(metric, see(case, 0, 6)))


def names_of(measures: Iterable[Measure]) -> set[str]:
    """Every variable that the measures speak for."""
    return {
        name
        for each in measures
        for name in (each.name, *each.also, *(f"{each.name}{end}" for end in DERIVED))
        if each.with_errors or name in (each.name, *each.also)
    }


def test_every_variable_has_a_measure_and_every_measure_a_variable(case: tuple) -> None:
    metric = case[0]
    found = compute(metric, see(case, 0, 40))
    assert not found.keys() - names_of(metric.measures)
    assert not {measure.name for measure in metric.measures} - found.keys()


def test_every_measure_says_what_it_is_and_its_baselines_exist() -> None:
    for study in STUDIES:
        measures = {
            measure.name: measure
            for kind in MODELS
            for metric, _, _ in prepare(study, kind)
            for measure in metric.measures
        }
        for measure in measures.values():
            words = (measure.title, measure.meaning, measure.formula, measure.reference)
            assert all(words), measure.name
            assert {each.variable for each in measure.baselines} <= names_of(measures.values())


@pytest.mark.parametrize("kind", MODELS)
def test_every_variable_of_vig2019_has_a_measure(kind: str) -> None:
    result = hs.study("vig2019", MODELS[kind](), Corpus.from_sentences(make_sentences(40)))
    measures = [measure for metric, _, _ in prepare("vig2019", kind) for measure in metric.measures]
    known = names_of((*measures, CORRELATION, CORRELATION_P))
    assert not {str(name) for name in result.data_vars} - known
