"""From a phone to a wall: nothing that matters is cut off, wherever a view is put."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, expect

from headscope.model.trace import Trace
from headscope.views import View, head_view, model_view, neuron_view
from tests.browser.conftest import Watched
from tests.references.traces import random_trace, side

pytestmark = pytest.mark.browser
Open = Callable[..., Watched]
WIDTHS = (320, 390, 768, 1144, 1400, 1920, 3840)
WORDS = ["Unbelievably", "large", "crocodiles", "sat", "on", "the", "riverbank", "yesterday"]


def twelve_heads() -> Trace:
    """As many heads as BERT has, and words that need room."""
    weights = np.random.default_rng(0).dirichlet(np.full(8, 0.3), (2, 12, 8)).astype(np.float32)
    return Trace.from_weights(weights, WORDS)


VIEWS: dict[str, View] = {
    "head": head_view(twelve_heads(), layer=0),
    "model": model_view(twelve_heads(), layer=1, head=11, enlarged=True),
    "neuron": neuron_view(random_trace(tokens=side(WORDS), dim=64)),
}
OUTSIDE = """selector => [...document.querySelectorAll(selector)].filter(node => {
  const box = node.getBoundingClientRect();
  return box.width > 0 && (box.left < -1 || box.right > window.innerWidth + 1);
}).map(node => node.textContent)"""
CUT = """() => [...document.querySelectorAll('.hs-token > span')]
  .filter(node => node.scrollWidth > node.clientWidth + 1).map(node => node.textContent)"""
SMALL = """() => [...document.querySelectorAll('button, select, .hs-token, .hs-option')]
  .filter(node => node.checkVisibility())
  .map(node => [node.textContent, node.getBoundingClientRect()])
  .filter(([, box]) => Math.round(box.height) < 40)
  .map(([text, box]) => `${text}: ${box.width} × ${box.height}`)"""


def sized(open_page: Open, kind: str, width: int) -> Watched:
    page = open_page(VIEWS[kind], more=False)
    page.resize(width, 900)
    return page


@pytest.mark.parametrize("kind", VIEWS)
def test_no_page_scrolls_sideways(open_page: Open, kind: str) -> None:
    page = sized(open_page, kind, WIDTHS[0])
    for width in WIDTHS:
        page.resize(width, 900)
        assert page.page.evaluate("document.documentElement.scrollWidth") <= width
        if kind == "head":
            assert page.page.evaluate(OUTSIDE, ".hs-token") == []
            assert page.page.evaluate(CUT) == []
        if kind == "neuron":
            assert page.page.evaluate(OUTSIDE, ".hs-weight, .hs-word") == []


@pytest.mark.parametrize("width", [390, 960, 1400])
def test_the_clicked_head_and_its_enlargement_are_both_in_sight(
    open_page: Open, width: int
) -> None:
    page = sized(open_page, "model", width)
    chosen = page.page.locator(".hs-thumb[aria-selected='true']")
    expect(chosen).to_have_attribute("aria-label", re.compile("^Layer 1, head 11"))
    large = page.page.locator(".hs-enlarged").bounding_box()
    assert large and large["x"] >= 0 and large["x"] + large["width"] <= width
    if width >= 960:
        small = chosen.bounding_box()
        assert small and small["x"] + small["width"] <= large["x"]
    page.shot(f"layout-model-{width}")


def test_the_grid_takes_its_room_back_when_the_head_is_closed(open_page: Open) -> None:
    page = sized(open_page, "model", 1400)
    thumb = page.page.locator(".hs-thumb").first
    before = thumb.bounding_box()
    page.page.get_by_role("button", name="Close").click()
    page.settle()
    after = thumb.bounding_box()
    assert before and after and after["width"] > before["width"]


def test_on_a_phone_the_query_is_chosen_from_a_menu(open_page: Open) -> None:
    page = sized(open_page, "neuron", 390)
    expect(page.page.get_by_role("listbox", name="Query token")).to_be_hidden()
    page.page.get_by_label("From token").select_option("6")
    page.settle()
    expect(page.page.locator(".hs-query .hs-word")).to_have_text("riverbank")


def test_fingers_get_forty_pixels(chromium: Browser, tmp_path: Any) -> None:
    context = chromium.new_context(
        viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True
    )
    for kind, view in VIEWS.items():
        page = context.new_page()
        page.goto(f"file://{view.save(tmp_path / f'{kind}.html')}")
        page.evaluate("window.headscope.idle()")
        page.locator(".hs-more").tap()
        assert page.evaluate(SMALL) == []
    context.close()


@pytest.mark.parametrize("kind", VIEWS)
def test_paper_gets_the_picture_and_no_controls(open_page: Open, kind: str) -> None:
    page = sized(open_page, kind, 1144)
    page.page.emulate_media(media="print")
    page.settle()
    for gone in (".hs-bar .hs-button", ".hs-bar .hs-control"):
        for control in page.page.locator(gone).all():
            expect(control).to_be_hidden()
    shown = {"head": ".hs-token", "model": ".hs-thumb", "neuron": ".hs-weight"}[kind]
    assert page.page.evaluate(OUTSIDE, shown) == []
    document = page.page.pdf(width="1144px", height="900px", print_background=True)
    assert document.startswith(b"%PDF")


def test_forced_colours_keep_what_is_chosen_apart(open_page: Open) -> None:
    page = open_page(head_view(random_trace(), layer=0, heads=[1]))
    page.page.emulate_media(forced_colors="active")
    ground = "node => getComputedStyle(node).backgroundColor"
    on, off = (page.chip("Heads", number).evaluate(ground) for number in (1, 2))
    assert on != off
    page.token("q", 3).click()
    page.settle()
    outline = "node => getComputedStyle(node).outlineStyle"
    assert page.token("q", 3).evaluate(outline) == "solid"
    assert page.token("q", 4).evaluate(outline) == "none"
