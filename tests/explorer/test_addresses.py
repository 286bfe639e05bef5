"""One line makes an answer that server, site, description and types have; it is computed once."""

import json
import time
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from headscope.explorer import addresses
from headscope.explorer.addresses import ANSWERS
from headscope.explorer.answers.card import card
from headscope.explorer.answers.runs import Library, OpenRun
from headscope.explorer.api import create_app
from headscope.explorer.description import typescript
from headscope.explorer.site import site
from headscope.explorer.texts import Texts
from headscope.explorer.wire import Card
from tests.references.runs import write_run

OWN = '''
from headscope.explorer.addresses import Answer
from headscope.explorer.answers.runs import OpenRun
from headscope.results.measure import heads_of
from msgspec import Struct


class Even(Struct, frozen=True):
    """Whether the numbers of a head are even."""

    layer: bool
    head: bool | None


def even(run: OpenRun, name: str) -> Even:
    """Which numbers of a head are even."""
    head = next(head for head in heads_of(run.data) if str(head) == name)
    return Even(head.layer % 2 == 0, head.head % 2 == 0)


ANSWER = Answer("runs/{run}/even/{head}", even, each=lambda run: ["L0H1", "L1H2"])
'''


def visit(library: Library) -> TestClient:
    return TestClient(create_app(library, Texts(None, None)), base_url="http://localhost")


@pytest.fixture
def _own_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer of a package that is not ours, in a line."""
    path = tmp_path / "own_answer.py"
    path.write_text(OWN, encoding="utf-8")
    spec = spec_from_file_location("own_answer", path)
    assert spec is not None and spec.loader is not None
    package = module_from_spec(spec)
    spec.loader.exec_module(package)
    monkeypatch.setattr(addresses, "ANSWERS", (*ANSWERS, package.ANSWER))


@pytest.mark.usefixtures("_own_answer")
def test_an_answer_of_one_line_is_on_the_server_and_the_site_and_described(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run", "vig2019")
    expected = {"layer": False, "head": True}
    visitor = visit(Library([path]))
    assert visitor.get("/api/runs/run/even/L1H2").json() == expected
    made = site([path], tmp_path / "pages")
    stored = (made / "data" / "runs" / "run" / "even" / "L1H2.js").read_text(encoding="utf-8")
    assert json.loads(stored.removeprefix("headscopeAnswer(").removesuffix(");\n")) == expected
    description = visitor.get("/api/openapi.json").json()
    described = description["paths"]["/api/runs/{run}/even/{head}"]["get"]
    assert described["summary"] == "Which numbers of a head are even."
    assert [part["name"] for part in described["parameters"]] == ["run", "head"]
    assert description["components"]["schemas"]["Even"]["required"] == ["layer", "head"]
    types = typescript(addresses.ANSWERS)
    assert "export interface Even {\n  layer: boolean;\n  head: boolean | null;\n}\n" in types


def test_a_card_is_computed_once_until_its_run_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def counted(run: OpenRun, name: str) -> Card:
        asked.append(name)
        return card(run, name)

    answers = [replace(one, function=counted) if one.function is card else one for one in ANSWERS]
    monkeypatch.setattr(addresses, "ANSWERS", answers)
    path = write_run(tmp_path / "run", "vig2019")
    visitor = visit(Library([path]))
    first = [visitor.get("/api/runs/run/heads/L0H0").json() for _ in range(3)]
    assert asked == ["L0H0"]
    assert first[0] == first[1] == first[2]
    time.sleep(0.02)
    (path / "result.nc").touch()
    visitor.get("/api/runs/run/heads/L0H0")
    assert asked == ["L0H0", "L0H0"]
