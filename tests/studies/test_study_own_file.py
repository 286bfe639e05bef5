"""A study and a metric of one's own: declared in one file, found everywhere with nothing else."""

import sys
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path

import pytest
import xarray as xr
from typer.testing import CliRunner

import headscope as hs
from headscope.cli import app
from headscope.results.compare import compare, largest
from headscope.results.measure import measure_of
from headscope.studies.study import Figure
from headscope.studies.vig2019.figures import draw_one
from headscope.text.corpus import Corpus
from tests.docs.page_module import load_page
from tests.references.tiny_models import causal_model, make_sentences

# One file, as a user writes it.
SOURCE = '''
"""How much attention tokens pay to themselves."""

from dataclasses import dataclass

import torch
import xarray as xr

from headscope.metrics.metric import Metric
from headscope.results.measure import Baseline, Measure
from headscope.engine.question import InputKind, Question
from headscope.studies.shared.sentences import sentence_inputs
from headscope.studies.study import Study

SELF = Measure(
    name="self_share",
    title="Attention to <oneself>",
    meaning="Share of its attention that a token pays to itself.",
    formula="Σ a[i, i] / Σ a[i, j]",
    reference="Nobody 2026",
    more="keeps what it has",
    baselines=(Baseline("self_even", "even attention"),),
    with_errors=False,
)


@dataclass(frozen=True)
class SelfShare(Metric):
    grid: object
    name: str = "self"
    measures: tuple[Measure, ...] = (SELF,)

    def zero(self):
        empty = torch.zeros(self.grid.shape, dtype=torch.float64)
        return {"paid": empty, "rows": empty.clone()}

    def see_layer(self, sums, layer):
        tokens = layer.batch.mask.shape[1]
        paid = layer.weights(0, tokens).diagonal(dim1=-2, dim2=-1) * layer.batch.mask[:, None]
        sums["paid"][layer.index] += paid.sum((0, 2)).double()
        sums["rows"][layer.index] += layer.batch.mask.sum()

    def compute(self, sums):
        even = xr.DataArray([0.25], dims="once").isel(once=0)
        return {"self_share": self.grid.array(sums["paid"] / sums["rows"]), "self_even": even}


def self_metrics(setup):
    return [SelfShare(setup.grid)]


MINE = Study(
    name="mine",
    title="Attention to the token itself",
    citation="Nobody (2026), Nothing",
    question="Which heads look at the token itself?",
    inputs=(InputKind(sentence_inputs, (Question(("self_share",), self_metrics),)),),
)
'''


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, xr.Dataset]:
    folder = tmp_path_factory.mktemp("own")
    (folder / "own_metric.py").write_text(SOURCE, encoding="utf-8")
    sys.path.insert(0, str(folder))
    study = import_module("own_metric").MINE
    corpora = [Corpus.from_sentences(make_sentences(12, seed=seed)) for seed in (0, 1)]
    runs = [folder / "first", folder / "second"]
    results = [hs.study(study, causal_model(), *each) for each in zip(corpora, runs, strict=True)]
    return runs[0], runs[1], results[0]


def test_the_measure_travels_in_the_result(own: tuple[Path, Path, xr.Dataset]) -> None:
    measure = measure_of(own[2], "self_share")
    assert (measure.title, measure.unit) == ("Attention to <oneself>", "share")
    assert own[2]["self_share"].attrs["long_name"] == "Attention to <oneself>"


def test_the_report_shows_the_measure_with_its_baseline_and_range(
    own: tuple[Path, Path, xr.Dataset],
) -> None:
    page = hs.report(own[0]).read_text(encoding="utf-8")
    assert "Attention to &lt;oneself&gt; <code>self_share</code>" in page
    assert "Share of its attention that a token pays to itself." in page
    assert "0.25 (even attention)" in page
    assert "Unit: share. More: keeps what it has. Nobody 2026." in page
    highest = own[2]["self_share"].stack(place=("layer", "head")).idxmax().item()
    assert f"in L{highest[0]}H{highest[1]}</td>" in page
    assert "data:image/png;base64," in page
    assert (own[0] / "figures" / "self_share.svg").is_file()  # a study without figures of its own


def test_compare_prints_its_title(own: tuple[Path, Path, xr.Dataset]) -> None:
    rows = largest(compare(own[0], own[1]))
    assert {row["title"] for row in rows} == {"Attention to <oneself>"}
    assert len(rows) == own[2]["self_share"].size


def test_the_page_of_metrics_lists_it(own: tuple[Path, Path, xr.Dataset]) -> None:
    page = load_page("metrics_page").page(["own_metric"])
    row = next(line for line in page.splitlines() if line.startswith("| `self_share` |"))
    assert "**Attention to <oneself>.** Share of its attention" in row
    assert "Beside even attention (`self_even`)." in row
    assert "| Σ a[i, i] / Σ a[i, j] | Nobody 2026 |" in row
    assert "## Your own" in page


def test_an_own_study_is_named_by_import_path_and_never_taken_from_the_run(
    own: tuple[Path, Path, xr.Dataset], monkeypatch: pytest.MonkeyPatch
) -> None:
    page = hs.report(own[0], study="own_metric:MINE").read_text(encoding="utf-8")
    assert "After Nobody (2026), Nothing." in page
    assert "general figures" not in page
    monkeypatch.delitem(sys.modules, "own_metric")
    page = CliRunner().invoke(app, ["report", str(own[0] / "result.nc")])
    assert page.exit_code == 0
    assert "own_metric" not in sys.modules
    shown = (own[0] / "report.html").read_text(encoding="utf-8")
    assert "The study mine is one of your own, so these are general figures" in shown
    assert 'id="self_share"' in shown


def test_figures_of_a_study_given_as_an_object_are_drawn(
    own: tuple[Path, Path, xr.Dataset],
) -> None:
    study = import_module("own_metric").MINE
    figure = Figure(
        "mine",
        "My figure",
        "One map.",
        ("self_share",),
        partial(draw_one, variable="self_share", title="self", unit="mean"),
    )
    page = hs.report(own[0], study=replace(study, figures=(figure,))).read_text(encoding="utf-8")
    assert "<b>My figure.</b> One map." in page
    assert "After Nobody (2026), Nothing." in page
    assert (own[0] / "figures" / "mine.pdf").is_file()
