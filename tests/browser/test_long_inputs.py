"""Long inputs in the browser: a window that moves, and nothing decoded that is not shown."""

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from headscope.explorer.answers.runs import Library
from headscope.explorer.api import create_app
from headscope.explorer.texts import Texts
from headscope.model.trace import Trace
from headscope.views import View, head_view, model_view, window
from headscope.views.lines import drawing, lines
from tests.browser.conftest import Watched
from tests.browser.explorer import visiting
from tests.explorer.live import live
from tests.references.explorer_models import tiny_model
from tests.references.traces import random_trace, side

pytestmark = pytest.mark.browser

Open = Callable[..., Watched]
TEXT = " ".join(f"The cat number {i} sat on mat {i}." for i in range(4))
READ_BLOCKS = """
window.readBlocks = [];
const find = document.getElementById.bind(document);
document.getElementById = (id) => {
  if (id.startsWith("headscope-block-")) window.readBlocks.push(Number(id.slice(16)));
  return find(id);
};
"""


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window, "TILE", 8)


def long_trace() -> Trace:
    return random_trace(tokens=side([f"t{i}" for i in range(30)]), causal=False)


def expected_lines(view: View) -> dict[tuple[int, int, int], float]:
    stack, state = view.trace.default, view.state
    picture = drawing(stack.weights[state.layer].numpy()[list(state.heads)], stack, state)
    found = lines(picture, state.mass)
    heads = [state.heads[place] for place in found.head]
    places = zip(heads, found.query.tolist(), found.key.tolist(), strict=True)
    return dict(zip(places, found.weight.tolist(), strict=True))


def drawn_lines(page: Watched) -> dict[tuple[int, int, int], float]:
    return {(one["head"], one["query"], one["key"]): one["weight"] for one in page.lines()}


@pytest.mark.parametrize("settings", [{}, {"window": (1, 0)}, {"window": (2, 1), "hide": "first"}])
def test_the_page_draws_the_window_as_python_does(open_page: Open, settings: Any) -> None:
    view = head_view(long_trace(), layer=1, mass=1.0, **settings)
    drawn, expected = drawn_lines(open_page(view)), expected_lines(view)
    assert drawn.keys() == expected.keys()
    assert drawn == pytest.approx(expected, abs=2e-5)


@pytest.fixture
def tab(context: BrowserContext) -> Page:
    """A tab whose scripts nobody else will hear."""
    return context.new_page()


def test_only_the_tiles_of_the_shown_layer_and_window_are_decoded(
    context: BrowserContext, open_page: Open
) -> None:
    context.add_init_script(READ_BLOCKS)
    view = head_view(long_trace(), layer=1)
    tiles = view.payload.header["stacks"][0]["sets"]["raw"]["layers"]["1"]["tiles"]
    page = open_page(view)
    first = {tiles[row][column] for row in (0, 1) for column in (0, 1)}
    assert set(page.evaluate("window.readBlocks")) == first
    page.page.get_by_role("button", name="Attending tokens: later ones").click()
    moved = {tiles[row][column] for row in (1, 2) for column in (1, 2)}
    assert set(page.evaluate("window.readBlocks")) == first | moved
    assert len(page.evaluate("window.readBlocks")) == len(first | moved)


def test_the_window_is_moved_and_kept_in_the_address(open_page: Open) -> None:
    page = open_page(head_view(long_trace()))
    expect(page.token("q", 0)).to_have_text("t0")
    page.page.get_by_label("Attending tokens").and_(page.page.locator("select")).select_option("2")
    expect(page.token("q", 0)).to_have_text("t16")
    expect(page.token("k", 0)).to_have_text("t16")
    page.page.get_by_role("button", name="Attended tokens: earlier ones").click()
    expect(page.token("k", 0)).to_have_text("t8")
    assert "window=2%2C1" in page.address()
    page.token("q", 3).click()
    assert page.state()["pinned"] == "q19"
    expect(page.page.locator(".hs-readout")).to_contain_text("t19 (19) looks at")
    page.shot("long-head-view")
    again = open_page(head_view(long_trace()), page.address().partition("#")[2])
    expect(again.token("q", 3)).to_have_attribute("aria-selected", "true")
    assert again.state()["window"] == [2, 1]


def test_the_model_view_shows_the_window_of_every_head(open_page: Open) -> None:
    page = open_page(model_view(long_trace(), window=(2, 0)))
    page.page.locator(".hs-thumb").nth(5).click()
    page.settle()
    expect(page.page.locator(".hs-enlarged [data-side='q'] .hs-token").first).to_have_text("t16")
    expect(page.page.locator(".hs-enlarged [data-side='k'] .hs-token").first).to_have_text("t0")
    page.shot("long-model-view")


def test_the_explorer_fetches_one_layer_and_one_window_at_a_time(context: BrowserContext) -> None:
    count = len(tiny_model().encode(TEXT).ids)
    assert count > 16
    texts = Texts("tiny-gpt2", tiny_model)
    with live(create_app(Library([]), texts)) as place, visiting(context, place) as visit:
        bodies: list[Any] = []
        visit.page.on("request", lambda request: bodies.append(request.post_data_json or {}))
        visit.open(f"/text?text={TEXT.replace(' ', '+')}")
        expect(visit.at("#view [data-side=q] .hs-token")).to_have_count(16)
        asked = [body["blocks"] for body in bodies if body.get("blocks")]
        assert [len(blocks) for blocks in asked] == [4]
        visit.at("#view select[aria-label=Layer]").select_option("2")
        expect(visit.at("#status")).to_contain_text(f"{count} tokens")
        visit.page.get_by_role("button", name="Attending tokens: later ones").click()
        first = tiny_model().trace(TEXT).default.queries.labels[8].strip()
        expect(visit.at("#view [data-side=q] .hs-token").first).to_have_text(first)
        visit.at("#kind-model").check()
        expect(visit.at("#view .hs-thumb").first).to_be_visible()
