"""The buttons that save what is shown: vector, with real text, in the current state."""

import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest
from PIL import Image

from headscope.views import View, head_view, model_view, neuron_view
from tests.browser.conftest import Watched
from tests.references.traces import WORDS, known_trace, random_trace

pytestmark = pytest.mark.browser
Open = Callable[..., Watched]
SVG = "{http://www.w3.org/2000/svg}"

VIEWS = {
    "head": head_view(random_trace(), pinned=2),
    "model": model_view(random_trace(), enlarged=True),
    "neuron": neuron_view(random_trace(sink=True)),
}


def saved(page: Watched, button: str, folder: Path) -> Path:
    """The file that a button of the page writes."""
    with page.page.expect_download() as download:
        page.page.get_by_role("button", name=button).click()
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    return path


def test_the_svg_button_saves_the_lines_on_screen(open_page: Open, tmp_path: Path) -> None:
    page = open_page(head_view(known_trace(), mass=1.0))
    page.token("q", 2).click()
    page.settle()
    path = saved(page, "SVG", tmp_path)
    root = ElementTree.parse(path).getroot()
    curves = [node for node in root.iter(f"{SVG}path") if node.get("stroke-opacity")]
    texts = [node.text for node in root.iter(f"{SVG}text")]
    opacities = [float(node.get("stroke-opacity") or 0) for node in curves]
    assert sorted(opacities) == pytest.approx([0.316, 0.548, 0.775], abs=2e-3)
    assert texts == ["one", "two", "three", "one", "two", "three", "H0", "0.100", "0.300", "0.600"]
    assert path.name == "known-layer-0-heads-0.svg"


@pytest.mark.parametrize("kind", VIEWS)
def test_every_view_saves_svg_with_text_and_without_pictures(
    open_page: Open, tmp_path: Path, kind: str
) -> None:
    view: View = VIEWS[kind]
    root = ElementTree.parse(saved(open_page(view), "SVG", tmp_path)).getroot()
    texts = {node.text for node in root.iter(f"{SVG}text")}
    assert set(WORDS) <= texts
    assert not list(root.iter(f"{SVG}image"))


@pytest.mark.parametrize("kind", VIEWS)
def test_the_png_button_saves_three_pixels_for_each(
    open_page: Open, tmp_path: Path, kind: str
) -> None:
    page = open_page(VIEWS[kind])
    picture = Image.open(saved(page, "PNG", tmp_path)).convert("RGB")
    scene = page.evaluate("({...window.headscope.scene(), shapes: []})")
    assert picture.size == pytest.approx((3 * scene["width"], 3 * scene["height"]), abs=1)
    colors = picture.getcolors(1 << 24)
    assert colors is not None and len(colors) > 20


@pytest.mark.parametrize("kind", VIEWS)
def test_the_pdf_is_one_page_of_vectors_with_embedded_fonts(
    open_page: Open, context: object, kind: str
) -> None:
    page = open_page(VIEWS[kind])
    page.page.evaluate("window.printed = 0")
    text = page.page.evaluate("window.headscope.printPage()")
    sheet = page.page.context.new_page()
    sheet.set_content(text)
    document = sheet.pdf(prefer_css_page_size=True, print_background=True)
    assert document.count(b"/Type /Page\n") + document.count(b"/Type /Page ") == 1
    assert b"/FontFile" in document or b"/Type /Font" in document
    assert re.search(rb"/Subtype\s*/Image", document) is None


def test_the_pdf_button_prints_the_picture_alone(open_page: Open) -> None:
    page = open_page(head_view(random_trace()))
    page.page.evaluate(
        """() => {
          window.sheets = [];
          new MutationObserver(changes => {
            const added = changes.flatMap(change => [...change.addedNodes]);
            window.sheets.push(...added.filter(node => node.srcdoc).map(node => node.srcdoc));
          }).observe(document.body, { childList: true });
        }"""
    )
    page.page.get_by_role("button", name="PDF").click()
    page.page.wait_for_function("window.sheets.length === 1")
    assert page.page.evaluate("window.sheets[0]") == page.page.evaluate(
        "window.headscope.printPage()"
    )
