"""What every metric of every study keeps, without a test of its own being written for it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest
import torch
import xarray as xr

import headscope as hs
from headscope.engine import Counts, Setup, measure, observe
from headscope.errors import RunError
from headscope.metrics import Metric, Sums
from headscope.metrics.spread import CORRELATION, CORRELATION_P
from headscope.model.capture.modes import AttentionPath
from headscope.observe import Columns, Example
from headscope.results.measure import DERIVED, Measure
from headscope.results.replicates import GROUPS
from headscope.studies import STUDIES, find_study
from headscope.text.corpus import Corpus
from headscope.text.segments import Excerpt
from tests.references.tiny_models import MODELS, make_sentences

BATCH_TOKENS = 64
SENTENCES = 40
OPTIONS = {"luger2026": {"context": 16, "rest": True}}  # tiny documents are shorter than 512
OF_SUMS = ("_numerator", "_denominator")


@dataclass(frozen=True)
class ReadTogether:
    """Metrics of a study that read the same inputs, and are shown them together, as in a run."""

    setup: Setup
    examples: tuple[Example, ...]
    metrics: tuple[Metric, ...]

    def observe(self, start: int, stop: int, path: AttentionPath = "dense") -> dict[str, Sums]:
        """The sums of all metrics after some of the inputs."""
        columns = Columns.of(self.examples[start:stop])
        return observe(self.setup.model, columns, self.metrics, BATCH_TOKENS, path)


@dataclass(frozen=True)
class Case:
    """One metric, and the part of its study that it belongs to."""

    study: str
    kind: str  # of the model
    part: int
    metric: Metric

    @property
    def together(self) -> ReadTogether:
        """With whom it is shown inputs."""
        return parts(self.study, self.kind)[self.part]

    def see(self, start: int, stop: int, path: AttentionPath = "dense") -> Sums:
        """Its sums after some of its inputs; nothing may change them."""
        return sums_of(self.study, self.kind, self.part, start, stop, path)[self.metric.name]

    @property
    def variables(self) -> dict[str, xr.DataArray]:
        """Its variables after all of its inputs."""
        return variables_of(self.study, self.kind, self.part)[self.metric.name]


@cache
def parts(study: str, kind: str) -> list[ReadTogether]:
    corpus, declared = Corpus.from_sentences(make_sentences(SENTENCES)), find_study(study)
    options = declared.with_options(OPTIONS.get(study, {}))
    setup = Setup(MODELS[kind](), corpus, options, declared.labels(corpus), BATCH_TOKENS)
    read: list[ReadTogether] = []
    for part in declared.parts(setup):
        examples = part.kind.make(setup, Excerpt(list(corpus)), 0).examples
        read.append(ReadTogether(setup, tuple(examples), part.metrics))
    return read


@cache
def sums_of(
    study: str, kind: str, part: int, start: int, stop: int, path: AttentionPath
) -> dict[str, Sums]:
    together = parts(study, kind)[part]
    if path != "dense":
        others = [metric for metric in together.metrics if not metric.needs_matrices]
        together = replace(together, metrics=tuple(others))
    return together.observe(start, stop, path)


@cache
def variables_of(study: str, kind: str, part: int) -> dict[str, dict[str, xr.DataArray]]:
    sums = sums_of(study, kind, part, 0, SENTENCES, "dense")
    metrics = parts(study, kind)[part].metrics
    return {metric.name: compute(metric, sums[metric.name]) for metric in metrics}


def metrics_of(study: str, kind: str) -> Iterator[Metric]:
    for together in parts(study, kind):
        yield from together.metrics


def all_cases() -> Iterator[Case]:
    for study in STUDIES:
        for kind in MODELS:
            for number, together in enumerate(parts(study, kind)):
                for metric in together.metrics:
                    yield Case(study, kind, number, metric)


@pytest.fixture(
    params=list(all_cases()), ids=lambda case: f"{case.study}-{case.kind}-{case.metric.name}"
)
def case(request: pytest.FixtureRequest) -> Case:
    return request.param


def compute(metric: Metric, *sums_of_shards: Sums) -> dict[str, xr.DataArray]:
    """Merge sums in order and compute, as the engine does with shards."""
    merged = metric.zero()
    for sums in sums_of_shards:
        merged = metric.merge(merged, sums)
    return metric.compute(merged)


def assert_close(left: dict[str, xr.DataArray], right: dict[str, xr.DataArray]) -> None:
    assert left.keys() == right.keys()
    for name in left:
        if left[name].dtype.kind in "fi":
            # A group may hold a single input, whose rounding no other one evens out; the error of
            # an entropy, in which large sums cancel, is made of such groups.
            is_rough = name.endswith(OF_SUMS) or name == "entropy_se"
            rtol = 1e-4 if is_rough else 1e-5
            np.testing.assert_allclose(left[name], right[name], atol=2e-6, rtol=rtol, err_msg=name)


def assert_same_sums(left: Sums, right: Sums, tolerance: float = 0.0) -> None:
    assert left.keys() == right.keys()
    for name in left:
        torch.testing.assert_close(
            left[name], right[name], rtol=tolerance, atol=tolerance, equal_nan=True, msg=name
        )


def test_merging_shards_equals_one_pass(case: Case) -> None:
    cut = len(case.together.examples) // 3
    assert_close(compute(case.metric, case.see(0, cut), case.see(cut, SENTENCES)), case.variables)


def test_merging_is_associative_and_zero_changes_nothing(case: Case) -> None:
    merge, cut = case.metric.merge, max(1, len(case.together.examples) // 3)
    a, b, c = (case.see(number * cut, (number + 1) * cut) for number in range(3))
    assert_same_sums(merge(merge(a, b), c), merge(a, merge(b, c)), 1e-12)
    assert_same_sums(merge(case.metric.zero(), a), a)
    assert_same_sums(merge(a, case.metric.zero()), a)


def test_merging_leaves_the_sums_of_a_shard_as_they_are(case: Case) -> None:
    sums = case.see(0, 12)
    before = {name: values.clone() for name, values in sums.items()}
    case.metric.merge(sums, case.see(12, SENTENCES))
    case.metric.merge(case.metric.zero(), sums)
    assert_same_sums(sums, before)


def test_what_is_added_is_added_in_float64_or_counted(case: Case) -> None:
    sums = case.see(0, 12)
    doubled = case.metric.merge(sums, sums)
    for name, values in sums.items():
        is_added = values.shape == doubled[name].shape and torch.equal(2 * values, doubled[name])
        if is_added and values.any():
            assert values.dtype in (torch.float64, torch.int64), name


def test_sums_lie_on_the_host_and_survive_their_file(case: Case) -> None:
    sums, counts = case.see(0, 12), Counts(12, 99, {"empty": 1})
    assert all(values.device.type == "cpu" for values in sums.values())
    read, read_counts = measure.unpack(measure.pack({case.metric.name: sums}, counts))
    assert read_counts == counts
    assert {name: values.dtype for name, values in read[case.metric.name].items()} == {
        name: values.dtype for name, values in sums.items()
    }
    assert_same_sums(read[case.metric.name], sums)


def test_sums_start_as_those_of_no_shard(case: Case) -> None:
    zero, sums = case.metric.zero(), case.see(0, 12)
    assert zero.keys() == sums.keys()
    assert all(zero[name].dtype == sums[name].dtype for name in zero)


def test_no_inputs_give_no_value(case: Case) -> None:
    for name, array in compute(case.metric).items():
        if name.endswith(OF_SUMS):
            assert not array.values.any(), name
            continue
        has_value = np.isfinite(array.values) if array.dtype.kind == "f" else array.values > -1
        assert not has_value.any(), name


def test_a_value_per_head_comes_with_its_error(case: Case) -> None:
    variables = case.variables
    of_heads = [name for name in variables if name == case.metric.name]
    of_heads = [name for name in of_heads if "head" in variables[name].dims]
    assert all(f"{name}_se" in variables for name in of_heads)


def test_every_ratio_is_that_of_the_sums_it_comes_with(case: Case) -> None:
    variables = case.variables
    for name in [n.removesuffix("_numerator") for n in variables if n.endswith("_numerator")]:
        x, y = variables[f"{name}_numerator"], variables[f"{name}_denominator"]
        assert x.dims[0] == y.dims[0] == "group"
        assert x["group"].values.tolist() == list(range(GROUPS))
        assert set(y.dims) <= set(x.dims)
        share = x.sum("group") / y.sum("group").where(y.sum("group") > 0)
        ratio = variables[name]
        np.testing.assert_allclose(ratio, share.transpose(*ratio.dims), rtol=1e-12)
        if f"{name}_by_layer" in variables and "head" in y.dims:
            pooled = x.sum(("group", "head")) / y.sum(("group", "head"))
            by_layer = variables[f"{name}_by_layer"]
            np.testing.assert_allclose(by_layer, pooled.transpose(*by_layer.dims), rtol=1e-12)


@pytest.mark.parametrize("path", ["rows", "fused"])
def test_every_path_gives_the_same_or_is_refused_because_matrices_are_needed(
    case: Case, path: AttentionPath
) -> None:
    metric = case.metric
    if metric.needs_matrices:
        message = rf"{metric.name} needs whole attention matrices.* attention=dense"
        with pytest.raises(RunError, match=message):
            replace(case.together, metrics=(metric,)).observe(0, 6, path)
        return
    assert_close(compute(metric, case.see(0, 6, path)), compute(metric, case.see(0, 6)))


def names_of(measures: Iterable[Measure]) -> set[str]:
    """Every variable that the measures speak for."""
    names: set[str] = set()
    for one in measures:
        names |= {one.name, *one.also}
        if one.with_errors:
            names |= {f"{one.name}{end}" for end in DERIVED}
    return names


def test_every_variable_has_a_measure_and_every_measure_a_variable(case: Case) -> None:
    variables, measures = case.variables, case.metric.measures
    assert not variables.keys() - names_of(measures)
    assert not {one.name for one in measures} - variables.keys()


def test_every_measure_says_what_it_is_and_its_baselines_exist() -> None:
    for study in STUDIES:
        measures: dict[str, Measure] = {}
        for kind in MODELS:
            for metric in metrics_of(study, kind):
                measures |= {one.name: one for one in metric.measures}
        names = names_of(measures.values())
        for one in measures.values():
            assert all((one.title, one.meaning, one.formula, one.reference)), one.name
            assert {baseline.variable for baseline in one.baselines} <= names


@pytest.mark.parametrize("kind", MODELS)
def test_every_variable_of_vig2019_has_a_measure(kind: str) -> None:
    result = hs.study("vig2019", MODELS[kind](), Corpus.from_sentences(make_sentences(40)))
    measures = [one for metric in metrics_of("vig2019", kind) for one in metric.measures]
    names = names_of((*measures, CORRELATION, CORRELATION_P))
    assert not {str(name) for name in result.data_vars} - names
