"""A study of two stages in a folder of one's own, its metric in one file, is shown everywhere."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from starlette.testclient import TestClient
from typer.testing import CliRunner

import headscope as hs
from headscope.cli import app
from headscope.demo import show
from headscope.explorer.answers.runs import Library
from headscope.explorer.api import create_app
from headscope.explorer.texts import Texts
from headscope.results.run import read_finished
from headscope.results.statements import read_statements
from headscope.studies import STUDIES, find_study
from tests.references.tiny_models import causal_model, treebank

METRIC = '''
"""How sure a head is: the mean of each row's largest weight."""

from headscope.metrics.metric import Ratio, Terms
from headscope.observe.layer import Layer
from headscope.results.measure import Baseline, Measure

SURENESS = Measure(
    "sureness",
    title="Sureness",
    meaning="Mean of the largest weight of a row.",
    formula="Σ_i max_j a[i, j] / number of rows",
    reference="none",
    more="is surer",
    baselines=(Baseline("sureness_even", "even attention"),),
)


def sure_terms(layer: Layer) -> Terms:
    largest = layer.of_rows(lambda rows: rows.amax(-1))
    counted = (layer.rows > 0).to(largest.dtype)
    return (largest * counted).sum(-1)[..., None], counted.sum(-1)[..., None]


def sureness(grid):
    return Ratio(SURENESS, grid, sure_terms)
'''

STUDY = '''
"""A study of sureness, and of the rank of every head in it."""

from dataclasses import dataclass

import numpy as np

from headscope.engine.stage import Stage
from headscope.results.measure import Measure
from headscope.engine.question import InputKind, Question
from headscope.studies.shared.sentences import sentence_inputs
from headscope.studies.study import Study
from sure_study.claims import CLAIMS
from sure_study.figures import FIGURES
from sure_study.metrics import sureness

RANK = Measure(
    "sure_rank",
    title="Rank in sureness",
    meaning="How many heads are surer.",
    formula="number of heads with a larger sureness",
    reference="none",
    unit="",
    with_errors=False,
)


@dataclass(frozen=True)
class RankOfLayer:
    """What is done to a layer: the ranks of its heads among all."""

    values: np.ndarray
    threads: int
    needs_gpu: bool = False

    def open(self):
        pass

    def describe(self, layer, /):
        return f"Layer {layer}"

    def __call__(self, layer, /):
        ranks = [int((self.values > value).sum()) for value in self.values[layer]]
        return np.array(ranks, dtype=np.int64).tobytes()


class Ranks(Stage[int]):
    name = "ranks"

    def pieces(self, setup, result):
        return tuple(range(len(setup.grid.layers)))

    def work(self, setup, result, threads, folder):
        return RankOfLayer(result["sureness"].values, threads)

    def finish(self, setup, result, outcomes, folder):
        rows = [np.frombuffer(outcomes[layer], dtype=np.int64) for layer in sorted(outcomes)]
        return result.assign(sure_rank=(("layer", "head"), np.stack(rows)))


def sure_metrics(setup):
    return [sureness(setup.grid)]


STUDY = Study(
    name="sure",
    title="Sure heads",
    citation="Nobody (2026)",
    question="Which heads are sure?",
    inputs=(InputKind(sentence_inputs, (Question(("sureness",), sure_metrics),)),),
    later_stages=(Ranks(),),
    measures=(RANK,),
    figures=FIGURES,
    claims=CLAIMS,
    demo={"mini-bert": {"sentences": 12}},
)
'''


CLAIM = '''
from headscope.results.claims import Evidence, claim, claims_in
from headscope.results.intervals import SHARE


@claim("Heads are sure.", "nowhere", above=0.9, of=SHARE)
def heads_are_sure(data):
    """Mean sureness of the heads."""
    return Evidence(data["sureness"].mean(("layer", "head")))


CLAIMS = claims_in(globals())
'''

FIGURE = """
from headscope.plots.heatmap import Panel, draw_panels
from headscope.studies.study import Figure


def draw(result):
    return draw_panels([Panel.of(result, "sureness", "sureness")], 1, "mean")


FIGURES = (Figure("sureness", "How sure heads are", "A cell for every head.", ("sureness",), draw),)
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("package")
    package = folder / "sure_study"
    package.mkdir()
    (package / "metrics.py").write_text(METRIC, encoding="utf-8")
    (package / "claims.py").write_text(CLAIM, encoding="utf-8")
    (package / "figures.py").write_text(FIGURE, encoding="utf-8")
    (package / "__init__.py").write_text(STUDY, encoding="utf-8")
    sys.path.insert(0, str(folder))
    hs.study("sure_study:STUDY", causal_model(), treebank(20), folder / "run")
    yield folder / "run"
    sys.path.remove(str(folder))


def test_both_stages_are_in_the_result_and_their_pieces_in_the_run(run: Path) -> None:
    with (run / "result.nc").open("rb") as file:
        result = xr.load_dataset(file, engine="h5netcdf")
    sureness = result["sureness"].values
    ranks = [[(sureness > value).sum() for value in layer] for layer in sureness]
    np.testing.assert_array_equal(result["sure_rank"], ranks)
    even = float(
        result["sureness_even"] if "sureness_even" in result else result.attrs["sureness_even"]
    )
    assert 0 < even < sureness.max()
    assert [file.name for file in sorted((run / "shards").iterdir())] == ["00000.npz"]
    assert len(list((run / "stages" / "ranks").iterdir())) == len(sureness)


def test_both_measures_are_in_the_explorer(run: Path) -> None:
    visitor = TestClient(create_app(Library([run]), Texts(None, None)), base_url="http://127.0.0.1")
    measures = visitor.get("/api/runs/run").json()["measures"]
    assert {measure["name"] for measure in measures} == {"sureness", "sure_rank"}
    picture = visitor.get("/api/runs/run/measures/sureness").json()
    values = read_finished(run).data["sureness"].values
    assert picture["values"] == values.tolist() and picture["baseline"]["means"] == "even attention"
    assert picture["meaning"] == "Mean of the largest weight of a row."
    assert picture["formula"] == "Σ_i max_j a[i, j] / number of rows"
    card = visitor.get("/api/runs/run/heads/L1H1").json()
    lines = {line["spec"]: line["value"] for line in card["measures"]}
    assert lines.keys() == {"sureness", "sure_rank"} and lines["sureness"] == values[1, 1]


def test_the_claim_and_the_figure_of_one_file_each_are_shown(run: Path) -> None:
    with (run / "result.nc").open("rb") as file:
        result = xr.load_dataset(file, engine="h5netcdf")
    mean = float(result["sureness"].mean())
    (judged,) = read_statements(result).findings
    assert (judged.claim, judged.rule) == (
        "Heads are sure.",
        "Mean sureness of the heads: above 0.9",
    )
    assert judged.value == pytest.approx(mean) and 0 < mean < 0.9
    assert judged.holds == "no"
    page = hs.report(run, study="sure_study:STUDY").read_text(encoding="utf-8")
    assert "How sure heads are" in page and "Heads are sure." in page
    assert "Sureness <code>sureness</code>" in page
    assert "Rank in sureness <code>sure_rank</code>" in page
    assert (run / "figures" / "sureness.svg").exists()
    visitor = TestClient(create_app(Library([run]), Texts(None, None)), base_url="http://127.0.0.1")
    stated = visitor.get("/api/runs/run/statements").json()
    assert [claim["claim"] for claim in stated["findings"]] == ["Heads are sure."]


def test_the_study_is_run_by_its_import_path_and_is_on_the_site(run: Path) -> None:
    assert json.loads((run / "run.json").read_text())["study"] == "sure_study:STUDY"
    assert find_study("sure_study:STUDY").options == ()
    help_page = CliRunner().invoke(app, ["study", "--help"]).output
    assert "package.module:STUDY" in help_page
    hs.site([run], run.parent / "site")
    pages = [path for path in (run.parent / "site").rglob("*") if path.is_file()]
    assert any(b"Heads are sure." in path.read_bytes() for path in pages)


def test_with_a_line_in_the_registry_the_study_is_in_the_demo_and_in_the_help(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [*STUDIES]:
        monkeypatch.delitem(STUDIES, name)
    monkeypatch.setitem(STUDIES, "sure", "sure_study")
    told = "\n".join(show("mini-bert", tmp_path, None))
    assert f"Open {tmp_path / 'sure-mini-bert' / 'report.html'}" in told
    assert "sure on mini-bert: of the paper's claims" in told
    help_page = CliRunner().invoke(app, ["study", "--help"]).output
    assert "headscope study sure --help lists them" in " ".join(help_page.split())
