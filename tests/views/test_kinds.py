"""A kind of view is a folder: everything else finds it in the registry."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from headscope.cli import app
from headscope.errors import ViewError
from headscope.explorer.tracing import answer
from headscope.explorer.wire import Limits, RefusedError, TextRequest, check_request
from headscope.views.kinds import all_settings, javascript
from headscope.views.view import describe, open_view, title
from tests.explorer.wire import unframe
from tests.references.explorer_models import tiny_model
from tests.references.rings import install_rings
from tests.references.traces import random_trace


@pytest.fixture(autouse=True)
def _rings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_rings(tmp_path / "packages", monkeypatch)


def test_its_settings_are_opened_and_checked_like_all_others() -> None:
    trace = random_trace()
    view = open_view(trace, "rings", layer=2, turn="right")
    state = asdict(view.state)
    assert (state["rings"], state["turn"], state["layer"]) == (3, "right", 2)
    with pytest.raises(ViewError, match=r"^turn is 'up'; choose left, right\.$"):
        open_view(trace, "rings", turn="up")
    with pytest.raises(ViewError, match="The rings view has no setting 'summary'; it has stack"):
        open_view(trace, "rings", summary="mean")
    with pytest.raises(ViewError, match=r"There is no view 'squares'; choose .*, neuron, rings\."):
        open_view(trace, "squares")


def test_it_is_described_packed_and_printed(tmp_path: Path) -> None:
    view = open_view(random_trace(), "rings", head=1)
    assert title(view) == "Rings view of random-model · L0H1 · 10 tokens"
    assert "Strongest: L0H1: " in describe(view)
    header = view.payload.header
    assert (header["kind"], header["state"]["rings"]) == ("rings", 3)
    assert header["stacks"][0]["sets"].keys() <= {"raw", "norm"}
    printed = view.save(tmp_path / "x.svg").read_text(encoding="utf-8")
    assert "3 rings of L0H1" in printed


def test_the_widget_has_its_settings_as_traits_and_checks_them() -> None:
    widget = open_view(random_trace(), "rings").widget
    widget.turn = "right"
    assert (widget.rings, widget.turn) == (3, "right")
    with pytest.raises(ViewError, match="turn is 'up'"):
        widget.turn = "up"


def test_the_command_line_and_the_explorer_take_it(tmp_path: Path) -> None:
    stored, out = tmp_path / "x.hst", tmp_path / "x.svg"
    random_trace().save(stored)
    options = ["--kind", "rings", "--layer", "1", "--heads", "2", "--out", str(out)]
    done = CliRunner().invoke(app, ["view", str(stored), *options])
    assert done.exception is None, done.exception
    assert done.stdout == f"{out}\n"
    assert "3 rings of L1H2" in out.read_text(encoding="utf-8")
    request = TextRequest("A cat.", kind="rings", head=2)
    check_request(request, Limits())
    header, _ = unframe(answer(tiny_model(), request, Limits()).unpack())
    assert (header["kind"], header["state"]["rings"], header["state"]["head"]) == ("rings", 4, 2)
    with pytest.raises(RefusedError, match="There is no kind 'squares'"):
        check_request(TextRequest("A cat.", kind="squares"), Limits())


def test_the_scripts_are_told_of_it() -> None:
    settings: dict[str, Any] = all_settings()
    assert settings["rings"].meaning == "how many rings"
    assert " * @property {number} rings  how many rings\n" in javascript()
    assert '"title": "Rings", "meaning": "how many rings", "kinds": ["rings"]' in javascript()
