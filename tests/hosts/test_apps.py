"""marimo, Gradio, Streamlit and nbconvert show the three views, and their controls draw."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from playwright.sync_api import BrowserContext, Frame, Page

import headscope as hs
from tests.hosts import pages
from tests.hosts.conftest import ARTEFACTS, Serve

Start = Callable[[Serve, Path], str]


def _gradio(serve: Serve, folder: Path) -> str:
    (folder / "page.py").write_text(pages.GRADIO, encoding="utf-8")
    return serve("page.py", "{port}", folder=folder) + "?__theme=dark"


def _streamlit(serve: Serve, folder: Path) -> str:
    (folder / "page.py").write_text(pages.STREAMLIT, encoding="utf-8")
    options = ["--server.port={port}", "--server.headless=true", "--theme.base=dark"]
    options += ["--browser.gatherUsageStats=false", "--server.fileWatcherType=none"]
    return serve("-m", "streamlit", "run", "page.py", *options, folder=folder)


def _marimo(serve: Serve, folder: Path) -> str:
    (folder / "page.py").write_text(pages.MARIMO, encoding="utf-8")
    (folder / ".marimo.toml").write_text(pages.MARIMO_CONFIG, encoding="utf-8")
    options = ["--port", "{port}", "--headless", "--no-token"]
    return serve("-m", "marimo", "run", "page.py", *options, folder=folder)


def _nbconvert(_: Serve, folder: Path) -> str:
    notebook = nbformat.v4.new_notebook()
    notebook.cells = [nbformat.v4.new_code_cell(source) for source in pages.NOTEBOOK]
    nbformat.write(notebook, folder / "page.ipynb")
    command = ["-m", "nbconvert", "--to", "html", "--execute", "--theme", "dark", "page.ipynb"]
    subprocess.run([sys.executable, *command], cwd=folder, check=True, env=os.environ)
    return f"file://{folder / 'page.html'}"


HOSTS: dict[str, Start] = {
    "gradio": _gradio,
    "streamlit": _streamlit,
    "marimo": _marimo,
    "nbconvert": _nbconvert,
}


@pytest.fixture(scope="module")
def trace() -> Any:
    return hs.load("mini-gpt2").trace(pages.TEXT)


@pytest.mark.parametrize("host", HOSTS)
def test_views_are_drawn_and_answer(
    host: str, serve: Serve, context: BrowserContext, tmp_path: Path, trace: Any
) -> None:
    page = context.new_page()
    page.set_viewport_size({"width": 1400, "height": 2600})
    context.set_offline(host == "nbconvert")
    page.goto(HOSTS[host](serve, tmp_path))
    head, model, neuron = (view_in(page, kind) for kind in ("Head", "Model", "Neuron"))
    a_layer_and_heads_are_drawn(head, trace)
    a_theme_is_followed_and_chosen(head)
    a_head_is_enlarged(model, trace)
    weights_of_a_head_are_shown(neuron, trace)
    page.screenshot(path=ARTEFACTS / f"{host}.png")
    page.close()


def view_in(page: Page, kind: str) -> Frame:
    """The frame with the view of a kind, when it is drawn."""
    for _ in range(300):
        for frame in page.frames[1:]:
            found = frame.locator("h1", has_text=f"{kind} view")
            if found.count():
                found.scroll_into_view_if_needed()
                frame.evaluate("window.headscope.idle()")
                return frame
        for one in page.locator("iframe").all():
            one.scroll_into_view_if_needed()
        page.wait_for_timeout(200)
    raise AssertionError(f"no {kind} view among {[frame.url for frame in page.frames]}")


def lines(frame: Frame) -> list[dict[str, Any]]:
    frame.evaluate("window.headscope.idle()")
    return frame.evaluate("window.headscope.lines()")


def a_layer_and_heads_are_drawn(frame: Frame, trace: Any) -> None:
    frame.get_by_label("Layer", exact=True).select_option("5")
    drawn = {(one["head"], one["query"], one["key"]): one["weight"] for one in lines(frame)}
    assert drawn[1, 9, 4] == pytest.approx(float(trace.weights[5][1, 9, 4]), abs=1e-5)
    frame.locator("[data-number='0']").first.click()
    assert {one["head"] for one in lines(frame)} == {1}


def a_theme_is_followed_and_chosen(frame: Frame) -> None:
    assert frame.evaluate("window.headscope.scene().paper") == "#14181d"
    frame.get_by_role("radio", name="Light").click()
    frame.evaluate("window.headscope.idle()")
    assert frame.evaluate("window.headscope.scene().paper") == "#ffffff"


def a_head_is_enlarged(frame: Frame, trace: Any) -> None:
    frame.locator(".hs-thumb").nth(20).click()
    drawn = {(one["query"], one["key"]): one["weight"] for one in lines(frame)}
    assert drawn[9, 4] == pytest.approx(float(trace.weights[2][4, 9, 4]), abs=1e-5)


def weights_of_a_head_are_shown(frame: Frame, trace: Any) -> None:
    frame.get_by_label("Head", exact=True).select_option("1")
    frame.evaluate("window.headscope.idle()")
    texts = frame.evaluate("window.headscope.scene().shapes.map(shape => shape.text)")
    assert f"{float(trace.weights[5][1, 10, 4]):.4f}" in texts
