"""Firefox draws the three views, alone and in frames, and their controls change the drawing."""

import html
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import headscope as hs
from headscope.views import View
from tests.hosts import pages
from tests.hosts.conftest import ARTEFACTS, free_port
from tests.hosts.firefox import FIREFOX, Firefox

pytestmark = pytest.mark.skipif(FIREFOX is None, reason="there is no Firefox")
FRAMES = {"alone": None, "framed": "", "sandboxed": 'sandbox="allow-scripts"'}
# Marionette's scripts see a page as a stranger does; the page itself is behind it.
DRAWN = """
const page = (window.wrappedJSObject ?? window).headscope;
await page.idle();
return JSON.parse(JSON.stringify({ lines: page.lines(), paper: page.scene().paper,
  texts: page.scene().shapes.map((shape) => shape.text ?? "") }));
"""


@pytest.fixture(scope="module")
def trace() -> Any:
    return hs.load("mini-gpt2").trace(pages.TEXT)


@pytest.fixture(scope="module")
def firefox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Firefox]:
    browser = Firefox(tmp_path_factory.mktemp("firefox"), free_port())
    yield browser
    browser.close()


def show(firefox: Firefox, view: View, how: str, folder: Path) -> None:
    page, attributes = view.html(), FRAMES[how]
    if attributes is not None:
        page = (
            "<!doctype html><meta charset=utf-8><iframe style='width:1200px;height:950px' "
            f'{attributes} srcdoc="{html.escape(page)}"></iframe>'
        )
    (folder / "page.html").write_text(page, encoding="utf-8")
    firefox.ask("WebDriver:SwitchToFrame", {"id": None})
    firefox.open(f"file://{folder / 'page.html'}")
    if attributes is not None:
        firefox.enter("iframe")
    firefox.run(
        "while (!window.wrappedJSObject.headscope) await new Promise((go) => setTimeout(go, 50))"
    )


def choose(firefox: Firefox, label: str, value: str) -> None:
    firefox.run(
        "const select = document.querySelector(`select[aria-label='${given[0]}']`);"
        "select.value = given[1]; select.dispatchEvent(new Event('change', { bubbles: true }));",
        label,
        value,
    )


@pytest.mark.parametrize("how", FRAMES)
def test_layer_heads_and_theme(firefox: Firefox, trace: Any, how: str, tmp_path: Path) -> None:
    show(firefox, trace.head_view(layer=4, heads=[0, 1], hide=(), mass=1.0), how, tmp_path)
    choose(firefox, "Layer", "5")
    drawn = {(one["head"], one["query"], one["key"]): one["weight"] for one in lines(firefox)}
    assert drawn[1, 9, 4] == pytest.approx(float(trace.weights[5][1, 9, 4]), abs=1e-5)
    firefox.click("[data-number='0']")
    assert {one["head"] for one in lines(firefox)} == {1}
    firefox.click("[role=radio][data-value=dark]")
    assert firefox.run(DRAWN)["paper"] == "#14181d"
    firefox.shot(ARTEFACTS / f"firefox-head-{how}.png")


@pytest.mark.parametrize("how", FRAMES)
def test_pointing_at_a_token_leaves_its_lines(
    firefox: Firefox, trace: Any, how: str, tmp_path: Path
) -> None:
    show(firefox, trace.head_view(layer=4, heads=[0, 1], hide=(), mass=1.0), how, tmp_path)
    firefox.hover("[data-side='q'] .hs-token", 9)
    assert {one["query"] for one in lines(firefox)} == {9}
    assert "looks at these tokens" in firefox.text(".hs-readout")
    assert f"{float(trace.weights[4][0, 9, 0]):.3f}" in firefox.run(DRAWN)["texts"]


@pytest.mark.parametrize("how", FRAMES)
def test_a_head_is_enlarged(firefox: Firefox, trace: Any, how: str, tmp_path: Path) -> None:
    view = trace.model_view(layer=4, head=0, enlarged=False, hide=(), mass=1.0)
    show(firefox, view, how, tmp_path)
    firefox.click(".hs-thumb", 20)
    drawn = {(one["query"], one["key"]): one["weight"] for one in lines(firefox)}
    assert drawn[9, 4] == pytest.approx(float(trace.weights[2][4, 9, 4]), abs=1e-5)
    firefox.shot(ARTEFACTS / f"firefox-model-{how}.png")


@pytest.mark.parametrize("how", FRAMES)
def test_weights_of_another_head(firefox: Firefox, trace: Any, how: str, tmp_path: Path) -> None:
    show(firefox, trace.neuron_view(layer=5, head=5, pinned=10), how, tmp_path)
    choose(firefox, "Head", "1")
    assert f"{float(trace.weights[5][1, 10, 4]):.4f}" in firefox.run(DRAWN)["texts"]
    firefox.shot(ARTEFACTS / f"firefox-neuron-{how}.png")


def lines(firefox: Firefox) -> list[dict[str, Any]]:
    return firefox.run(DRAWN)["lines"]
