"""Every head has one sentence, wherever a run is shown."""

import csv
import json
from html import unescape
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from typer.testing import CliRunner

import headscope as hs
from headscope.cli import app
from headscope.explorer.answers.runs import Library
from headscope.explorer.api import create_app
from headscope.explorer.texts import Texts
from headscope.results.dataset import load
from headscope.results.measure import heads_of
from tests.references.runs import write_run

Sentences = dict[str, str]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("runs") / "run", "own", described=True)


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the same model that says other things of its heads."""
    path = tmp_path_factory.mktemp("runs") / "other"
    return write_run(path, "own", seed=1, described=True)


@pytest.fixture(scope="module")
def sentences(run: Path) -> Sentences:
    """The sentences that the run stores."""
    result = load(run)
    names = map(str, heads_of(result))
    return dict(zip(names, map(str, result["description"].values.ravel()), strict=True))


def test_the_command_line_says_them(run: Path, sentences: Sentences) -> None:
    printed = CliRunner().invoke(app, ["heads", str(run), "--json"]).stdout
    [model] = json.loads(printed)
    assert {head["head"]: head["sentence"] for head in model["heads"]} == sentences


def test_python_says_them(run: Path, sentences: Sentences) -> None:
    table = hs.heads(run)
    assert dict(zip(table["head"], table["sentence"], strict=True)) == sentences


def test_the_explorer_says_them_on_every_page(run: Path, sentences: Sentences) -> None:
    visitor = TestClient(create_app(Library([run]), Texts(None, None)), base_url="http://127.0.0.1")
    places = visitor.get("/api/runs/run/map").json()["cells"]
    assert {cell["name"]: cell["sentence"] for cell in places} == sentences
    found = visitor.get("/api/runs/run/heads").json()["heads"]
    assert {head["name"]: head["looks"] for head in found} == sentences
    cards = {name: visitor.get(f"/api/runs/run/heads/{name}").json() for name in sentences}
    assert {name: card["looks"] for name, card in cards.items()} == sentences


def test_the_report_says_them(run: Path, sentences: Sentences) -> None:
    page = unescape(hs.report(run, formats=["png"]).read_text(encoding="utf-8"))
    assert [name for name, sentence in sentences.items() if sentence not in page] == []


def test_an_export_says_them(run: Path, sentences: Sentences, tmp_path: Path) -> None:
    hs.export(run, tmp_path / "out", format="csv")
    with (tmp_path / "out" / "tables" / "what_heads_look_at.csv").open(encoding="utf-8") as file:
        assert {row["head"]: row["sentence"] for row in csv.DictReader(file)} == sentences


def test_a_site_says_them(run: Path, sentences: Sentences, tmp_path: Path) -> None:
    hs.site([run], tmp_path / "site")
    written = "".join(
        file.read_text(encoding="utf-8") for file in sorted((tmp_path / "site").rglob("*.js*"))
    )
    quoted = {name: json.dumps(text, ensure_ascii=False) for name, text in sentences.items()}
    assert [name for name, text in quoted.items() if text not in written] == []


def test_of_two_runs_of_one_model_every_page_says_what_one_of_them_says(
    run: Path, other: Path, sentences: Sentences, tmp_path: Path
) -> None:
    left_out = [str(text) for text in load(other)["description"].values.ravel()]
    assert not {*left_out} & {*sentences.values()}
    library = Library([run, other])
    visitor = TestClient(create_app(library, Texts(None, None)), base_url="http://127.0.0.1")
    for slug in library.slugs:
        places = visitor.get(f"/api/runs/{slug}/map").json()["cells"]
        assert {cell["name"]: cell["sentence"] for cell in places} == sentences
        assert visitor.get(f"/api/runs/{slug}/heads/L0H0").json()["looks"] == sentences["L0H0"]
    report = hs.report(run, other, out=tmp_path / "both.html", formats=["png"])
    page = unescape(report.read_text(encoding="utf-8"))
    hs.site([run, other], tmp_path / "site")
    files = sorted((tmp_path / "site").rglob("*.js*"))
    site = "".join(file.read_text(encoding="utf-8") for file in files)
    assert all(sentence in page for sentence in sentences.values())
    for sentence in left_out:
        assert sentence not in page and json.dumps(sentence, ensure_ascii=False) not in site
