"""JupyterLab and Jupyter Notebook with a real kernel, and their notebooks opened without one."""

import json
import re
import time
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Any

import nbformat
import pytest
from playwright.sync_api import BrowserContext, Locator, Page, expect

from tests.hosts.conftest import ARTEFACTS, PATIENCE, Serve
from tests.hosts.pages import TEXT

VIEWS = ["head", "model", "neuron"]
CELLS = [
    f'import headscope as hs\ntrace = hs.load("mini-gpt2").trace("{TEXT}")',
    "view = trace.head_view(layer=4, heads=[0, 1])\nview",
    "trace.model_view(layer=4, head=0, enlarged=False)",
    "trace.neuron_view(layer=5, head=5, pinned=10)",
    "view.widget.layer = 6",
    "print('layer', view.widget.layer, 'heads', view.widget.heads)",
]
# What a canvas shows, as one number; of a copy, since reading makes a canvas slow.
DRAWN = """canvas => {
  const copy = document.createElement("canvas");
  [copy.width, copy.height] = [canvas.width, canvas.height];
  const pen = copy.getContext("2d");
  pen.drawImage(canvas, 0, 0);
  const data = pen.getImageData(0, 0, copy.width, copy.height).data;
  let sum = 0;
  for (let i = 0; i < data.length; i++) sum = (sum * 31 + data[i]) % 2147483647;
  return sum;
}"""
PATHS = {"lab": "lab/tree/views.ipynb", "notebook": "notebooks/views.ipynb"}


@pytest.fixture(scope="module", params=PATHS)
def opened(
    request: pytest.FixtureRequest, serve: Serve, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Path, str]:
    """The address of a server, the folder it shows, and which of the two it is."""
    folder = tmp_path_factory.mktemp(request.param)
    notebook = nbformat.v4.new_notebook()
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
    notebook.cells = [nbformat.v4.new_code_cell(source) for source in CELLS]
    nbformat.write(notebook, folder / "views.ipynb")
    options = ["--no-browser", "--allow-root", "--port={port}", "--IdentityProvider.token="]
    options += ["--ServerApp.disable_check_xsrf=True"]  # kernels are stopped from here
    module = "jupyterlab" if request.param == "lab" else "notebook"
    address = serve("-m", module, *options, folder=folder, path="api")
    return address.removesuffix("api"), folder, request.param


def open_notebook(context: BrowserContext, address: str, name: str, *, kernel: bool) -> Page:
    """Open the notebook, with a kernel that is ready, or in peace without one."""
    page = context.new_page()
    page.set_viewport_size({"width": 1400, "height": 2600})  # cells out of sight are not drawn
    page.goto(address + PATHS[name] + ("?reset" if name == "lab" else ""))
    page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=PATIENCE)
    for _ in range(100 if kernel else 0):
        found = [
            one["kernel"] for one in json.load(urllib.request.urlopen(f"{address}api/sessions"))
        ]
        if any(one["connections"] and one["execution_state"] == "idle" for one in found):
            break
        page.wait_for_timeout(300)
    page.wait_for_timeout(3000)
    answer(page, "Select" if kernel else "No Kernel")
    return page


def answer(page: Page, button: str) -> None:
    """Close the dialogue that asks for a kernel, if it is there."""
    asked = page.get_by_role("dialog").get_by_role("button", name=button)
    if asked.count():
        asked.click()
        page.wait_for_timeout(2000)


def cell(page: Page, number: int) -> Locator:
    return page.locator(".jp-Notebook .jp-CodeCell").nth(number)


def run_all(page: Page) -> None:
    """Run every cell; a kernel that is only just starting may not have heard the first time."""
    for _ in range(5):
        page.get_by_role("menuitem", name="Run", exact=True).first.click()
        page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
        page.wait_for_timeout(3000)
        answer(page, "Select")
        if re.search(r"[*\d]", cell(page, 0).locator(".jp-InputPrompt").inner_text()):
            return
    raise AssertionError("the cells do not run")


def drawn(place: Locator) -> int:
    return place.locator("canvas").first.evaluate(DRAWN)


def changed(place: Locator, before: int) -> int:
    """What the canvas shows when it shows something else than before."""
    for _ in range(100):
        now = drawn(place)
        if now != before:
            return now
        place.page.wait_for_timeout(100)
    raise AssertionError("the drawing stayed as it was")


def test_a_notebook_lives_is_saved_and_opened_again(
    opened: tuple[str, Path, str], context: BrowserContext
) -> None:
    address, folder, name = opened
    page = open_notebook(context, address, name, kernel=True)
    run_all(page)
    head = cell(page, 1).locator(".hs-root")
    for number in (1, 2, 3):
        cell(page, number).locator(".hs-root").wait_for()
    only_the_widget_is_seen(page)
    python_and_the_page_are_in_step(page, head)
    keys_stay_in_the_view(page, head)
    a_head_is_enlarged(page)
    the_theme_is_followed(page, head, name)
    page.screenshot(path=ARTEFACTS / f"{name}-live.png")
    head.locator("select").first.focus()
    page.keyboard.press("Control+s")
    saved = wait_until_saved(folder / "views.ipynb")
    page.close()
    outputs_are_kept(saved)
    kill_kernels(address)
    again(context, address, name, folder)


def only_the_widget_is_seen(page: Page) -> None:
    for number in (1, 2, 3):
        expect(cell(page, number).locator("iframe")).to_be_hidden()
        expect(cell(page, number).locator(".jp-RenderedImage img")).to_be_hidden()


def python_and_the_page_are_in_step(page: Page, head: Locator) -> None:
    layer = head.get_by_label("Layer", exact=True)
    expect(layer).to_have_value("6")  # a cell below has set it
    before = drawn(head)
    layer.select_option("5")
    after = changed(head, before)
    head.locator("[data-number='0']").first.click()
    changed(head, after)
    cell(page, 5).locator(".cm-content").click()
    page.keyboard.press("Control+Enter")
    expect(cell(page, 5).locator(".jp-OutputArea-output")).to_have_text("layer 5 heads [1]\n")


def keys_stay_in_the_view(page: Page, head: Locator) -> None:
    cells = page.locator(".jp-Notebook .jp-CodeCell").count()
    before = drawn(head)
    layer = head.get_by_label("Layer", exact=True)
    page.wait_for_timeout(1000)  # a cell that was run takes the focus once more
    head.locator(".hs-readout").click()
    layer.focus()
    expect(layer).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(layer).to_have_value("6")
    changed(head, before)
    expect(cell(page, 1)).to_have_class(re.compile("jp-mod-active"))
    head.locator("[data-number='1']").first.focus()
    for key in ("x", "d", "d", "b", "a", "m", "ArrowDown", "ArrowUp"):
        page.keyboard.press(key)
    page.wait_for_timeout(300)
    assert page.locator(".jp-Notebook .jp-CodeCell").count() == cells
    expect(cell(page, 1)).to_have_class(re.compile("jp-mod-active"))


def a_head_is_enlarged(page: Page) -> None:
    model = cell(page, 2).locator(".hs-root")
    model.scroll_into_view_if_needed()
    model.locator(".hs-thumb").nth(20).click()
    stage = model.locator(".hs-enlarged .hs-token").first
    expect(stage).to_be_visible()


def the_theme_is_followed(page: Page, head: Locator, name: str) -> None:
    head.scroll_into_view_if_needed()
    before = drawn(head)
    page.get_by_role("menuitem", name="Settings", exact=True).first.click()
    page.locator(".lm-Menu-itemLabel", has_text=re.compile("^Theme$")).click()
    page.locator(".lm-Menu-itemLabel", has_text=re.compile("^JupyterLab Dark$")).click()
    expect(page.locator(".hs-root[data-theme='dark']")).to_have_count(3)
    changed(head, before)
    expect(head).to_have_css("background-color", "rgb(20, 24, 29)")


def wait_until_saved(path: Path) -> Any:
    for _ in range(200):
        with suppress(nbformat.reader.NotJSONError):  # read while it is being written
            saved = nbformat.read(path, as_version=4)
            if len(saved.cells[3].get("outputs", [])) == 3:
                return saved
        time.sleep(0.1)
    raise AssertionError("the notebook was not saved")


def outputs_are_kept(saved: Any) -> None:
    for number, kind in enumerate(VIEWS, 1):
        outputs = [one["data"] for one in saved.cells[number].outputs]
        assert outputs[0]["text/plain"].startswith(f"{kind.capitalize()} view of mini-gpt2")
        assert "Strongest:" in outputs[0]["text/plain"]
        assert len(outputs[0]["image/png"]) < 150_000
        assert "<iframe" in outputs[1]["text/html"]
    assert len(json.dumps(saved)) < 2_000_000


def kill_kernels(address: str) -> None:
    for one in json.load(urllib.request.urlopen(address + "api/sessions")):
        request = urllib.request.Request(f"{address}api/sessions/{one['id']}", method="DELETE")
        urllib.request.urlopen(request)


def again(context: BrowserContext, address: str, name: str, folder: Path) -> None:
    """Opened again, the kernel that made the views is gone: every cell shows its page."""
    page = open_notebook(context, address, name, kernel=False)
    frames = []
    for number in (1, 2, 3):
        cell(page, number).scroll_into_view_if_needed()
        inside = cell(page, number).frame_locator("iframe")
        inside.locator(".hs-root").wait_for()
        frames.append(inside)
        expect(cell(page, number).locator(".jp-RenderedImage img")).to_be_hidden()
    page.wait_for_timeout(2000)
    for said in page.get_by_text("Error displaying widget").all():
        expect(said).to_be_hidden()
    cell(page, 1).scroll_into_view_if_needed()
    canvas = frames[0].locator("canvas").first
    before = canvas.evaluate(DRAWN)
    frames[0].get_by_label("Layer", exact=True).select_option("2")
    page.wait_for_timeout(500)
    assert canvas.evaluate(DRAWN) != before
    page.screenshot(path=ARTEFACTS / f"{name}-again.png")
    page.close()
    untrusted(context, address, name, folder)


def untrusted(context: BrowserContext, address: str, name: str, folder: Path) -> None:
    """A notebook from someone else may run no script: the pictures are there."""
    path = folder / "views.ipynb"
    saved = nbformat.read(path, as_version=4)
    saved.cells[0].outputs.append(
        nbformat.v4.new_output("display_data", {"text/html": "<b>from elsewhere</b>"})
    )
    nbformat.write(saved, path)
    page = open_notebook(context, address, name, kernel=False)
    for number in (1, 2, 3):
        cell(page, number).scroll_into_view_if_needed()
        expect(cell(page, number).locator(".jp-RenderedImage img")).to_be_visible()
        assert cell(page, number).locator("iframe").count() == 0
    page.screenshot(path=ARTEFACTS / f"{name}-untrusted.png")
    page.close()
