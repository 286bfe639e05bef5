"""A metric with its measure in one file is in the explorer, titled and with its baseline."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from starlette.testclient import TestClient

import headscope as hs
from headscope.explorer.answers.runs import Library
from headscope.explorer.api import create_app
from headscope.explorer.texts import Texts
from tests.references.tiny_models import causal_model, treebank

OWN = """
import xarray as xr

from headscope.metrics.metric import Ratio
from headscope.results.measure import Baseline, Measure
from headscope.engine.question import InputKind, Question
from headscope.studies.shared.sentences import sentence_inputs
from headscope.studies.study import Study

SELF = Measure(
    name="self_share",
    title="Attention to the token itself",
    meaning="Share of its attention that a token pays to itself.",
    formula="Σ a[i,i] / Σ a[i,j]",
    reference="made up",
    more="looks at itself",
    baselines=(Baseline("chance", "a token picked at random"),),
)


def terms(layer):
    return layer.self_weight.sum(-1)[..., None], layer.total[..., None]


class SelfShare(Ratio):
    def compute(self, sums):
        return {**super().compute(sums), "chance": xr.DataArray(0.25)}


def self_metrics(setup):
    return [SelfShare(SELF, setup.grid, terms)]


STUDY = Study(
    name="self",
    title="Attention to the token itself",
    citation="",
    question="Which heads look at the token itself?",
    inputs=(InputKind(sentence_inputs, (Question(("self_share",), self_metrics),)),),
)
"""


def imported(path: Path) -> ModuleType:
    path.write_text(OWN, encoding="utf-8")
    spec = spec_from_file_location("own_metric", path)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_measure_declared_beside_its_metric_is_in_the_explorer(tmp_path: Path) -> None:
    own = imported(tmp_path / "own_metric.py")
    result = hs.study(own.STUDY, causal_model(), treebank(), out=tmp_path / "run", sentences=20)
    library = Library([tmp_path / "run"])
    visitor = TestClient(create_app(library, Texts(None, None)), base_url="http://127.0.0.1")
    [entry] = visitor.get("/api/runs/run").json()["measures"]
    assert (entry["name"], entry["title"], entry["errors"]) == (
        "self_share",
        "Attention to the token itself",
        True,
    )
    picture = visitor.get("/api/runs/run/measures/self_share").json()
    assert picture["baseline"] == {"value": 0.25, "means": "a token picked at random"}
    assert picture["meaning"] == "Share of its attention that a token pays to itself."
    assert picture["formula"] == "Σ a[i,i] / Σ a[i,j]"
    assert picture["values"] == result["self_share"].values.tolist()
    [line] = visitor.get("/api/runs/run/heads/L1H1").json()["measures"]
    assert line["value"] == float(result["self_share"].sel(layer=1, head=1))
