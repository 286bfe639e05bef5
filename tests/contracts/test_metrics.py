"""What every metric of every study keeps, without a test of its own being written for it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
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
from headscope.model.capture.modes import AttentionPath
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


@dataclass(frozen=True)
class Part:
    """Metrics of a study that read the same inputs, and are shown them together, as in a run."""

    metrics: tuple[Metric, ...]
    examples: tuple[Example, ...]
    setup: Setup

    def without_matrices(self) -> "Part":
        """The metrics that no long input keeps from being computed."""
        kept = [each for each in self.metrics if not needs_matrices(each)]
        return replace(self, metrics=tuple(kept))

    def observe(self, start: int, stop: int, way: AttentionPath = "dense") -> dict[str, State]:
        """The states of all metrics after some of the inputs."""
        examples = self.examples[start:stop]
        return observe(self.setup.model, examples, self.metrics, BATCH_TOKENS, way)


@dataclass(frozen=True)
class Case:
    """One metric, and the part of its study that it belongs to."""

    study: str
    kind: str
    place: int
    metric: Metric

    @property
    def part(self) -> Part:
        """With whom it is shown inputs."""
        return parts(self.study, self.kind)[self.place]

    def see(self, start: int, stop: int, way: AttentionPath = "dense") -> State:
        """What it knows after some of its inputs; nothing may change it."""
        return seen(self.study, self.kind, self.place, start, stop, way)[self.metric.name]


@cache
def parts(study: str, kind: str) -> list[Part]:
    corpus, chosen = Corpus.from_sentences(make_sentences(40)), find_study(study)
    options = chosen.with_options(OPTIONS.get(study, {}))
    setup = Setup(MODELS[kind](), corpus, options, chosen.labels(corpus), 64)
    return [
        Part(
            tuple(part.metrics),
            tuple(part.inputs(setup, Excerpt(list(corpus)), 0).examples),
            setup,
        )
        for part in chosen.parts(setup)
    ]


@cache
def seen(
    study: str, kind: str, place: int, start: int, stop: int, way: AttentionPath
) -> dict[str, State]:
    part = parts(study, kind)[place]
    return (part if way == "dense" else part.without_matrices()).observe(start, stop, way)


def metrics_of(study: str, kind: str) -> Iterator[Metric]:
    return (metric for part in parts(study, kind) for metric in part.metrics)


def needs_matrices(metric: Metric) -> bool:
    return isinstance(metric, MatrixMetric | BatchMetric)


def all_cases() -> Iterator[Case]:
    for study in STUDIES:
        for kind in MODELS:
            for place, part in enumerate(parts(study, kind)):
                yield from (Case(study, kind, place, metric) for metric in part.metrics)


@pytest.fixture(
    params=list(all_cases()), ids=lambda case: f"{case.study}-{case.kind}-{case.metric.name}"
)
def case(request: pytest.FixtureRequest) -> Case:
    return request.param


@cache
def everything(study: str, kind: str, place: int, name: str) -> dict[str, xr.DataArray]:
    """The variables of a metric that has seen all of its inputs."""
    (metric,) = (each for each in parts(study, kind)[place].metrics if each.name == name)
    return compute(metric, seen(study, kind, place, 0, 40, "dense")[name])


def whole(case: Case) -> dict[str, xr.DataArray]:
    return everything(case.study, case.kind, case.place, case.metric.name)


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


def test_merging_shards_equals_one_pass(case: Case) -> None:
    cut = len(case.part.examples) // 3
    assert_close(compute(case.metric, case.see(0, cut), case.see(cut, 40)), whole(case))


def test_merging_is_associative_and_zero_changes_nothing(case: Case) -> None:
    metric, cut = case.metric, max(1, len(case.part.examples) // 3)
    a, b, c = (case.see(n * cut, (n + 1) * cut).sums for n in range(3))
    left = metric.merge(metric.merge(a, b), c)
    right = metric.merge(a, metric.merge(b, c))
    with_zero = metric.merge(metric.zero(0).sums, a)
    for name in a:
        np.testing.assert_allclose(left[name], right[name], rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(with_zero[name], a[name])


def test_sums_are_float64_and_states_survive_their_file(case: Case, tmp_path: Path) -> None:
    metric, state = case.metric, case.see(0, 12)
    assert all(values.dtype == np.float64 for values in state.sums.values())
    packed = job.pack(Partial({metric.name: state}, Counts(12, 99, {"empty": 1})))
    (tmp_path / "0.npz").write_bytes(packed)
    sums, counts = job.load_sums(tmp_path / "0.npz")
    assert counts == Counts(12, 99, {"empty": 1})
    for name, values in state.sums.items():
        np.testing.assert_array_equal(sums[metric.name][name], values)
    records = job.load_records(tmp_path / "0.npz", metric.name)
    assert records.keys() == state.records.keys()


def test_no_inputs_give_no_value(case: Case) -> None:
    metric = case.metric
    for name, array in compute(metric, metric.zero(0)).items():
        if name.endswith(("_numerator", "_denominator")):
            assert not array.values.any(), name
            continue
        known = np.isfinite(array.values) if array.dtype.kind == "f" else array.values > -1
        assert not known.any(), name


def test_a_value_per_head_comes_with_its_error(case: Case) -> None:
    found = whole(case)
    own = [name for name in found if name == case.metric.name and "head" in found[name].dims]
    assert all(f"{name}_se" in found for name in own)


def test_every_ratio_is_that_of_the_sums_it_comes_with(case: Case) -> None:
    found = whole(case)
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
    case: Case, way: AttentionPath
) -> None:
    metric = case.metric
    if needs_matrices(metric):
        said = rf"{metric.name} (needs|compares) whole attention matrices.* attention=dense"
        with pytest.raises(RunError, match=said):
            replace(case.part, metrics=(metric,)).observe(0, 6, way)
        return
    assert_close(compute(metric, case.see(0, 6, way)), compute(metric, case.see(0, 6)))


def names_of(measures: Iterable[Measure]) -> set[str]:
    """Every variable that the measures speak for."""
    return {
        name
        for each in measures
        for name in (each.name, *each.also, *(f"{each.name}{end}" for end in DERIVED))
        if each.with_errors or name in (each.name, *each.also)
    }


def test_every_variable_has_a_measure_and_every_measure_a_variable(case: Case) -> None:
    found, measures = whole(case), case.metric.measures
    assert not found.keys() - names_of(measures)
    assert not {measure.name for measure in measures} - found.keys()


def test_every_measure_says_what_it_is_and_its_baselines_exist() -> None:
    for study in STUDIES:
        measures = {
            measure.name: measure
            for kind in MODELS
            for metric in metrics_of(study, kind)
            for measure in metric.measures
        }
        for measure in measures.values():
            words = (measure.title, measure.meaning, measure.formula, measure.reference)
            assert all(words), measure.name
            assert {each.variable for each in measure.baselines} <= names_of(measures.values())


@pytest.mark.parametrize("kind", MODELS)
def test_every_variable_of_vig2019_has_a_measure(kind: str) -> None:
    result = hs.study("vig2019", MODELS[kind](), Corpus.from_sentences(make_sentences(40)))
    measures = [measure for metric in metrics_of("vig2019", kind) for measure in metric.measures]
    known = names_of((*measures, CORRELATION, CORRELATION_P))
    assert not {str(name) for name in result.data_vars} - known
