"""A page of several texts: choosing one draws it, and settings go along."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

import headscope as hs
from tests.browser.conftest import Watched
from tests.references.traces import known_trace, random_trace

pytestmark = pytest.mark.browser
Open = Callable[..., Watched]


def page_of(open_page: Open, hash: str = "") -> Watched:
    views = {
        "Three words": known_trace().head_view(layer=0, heads=[0], hide=(), mass=1.0),
        "Ten words": random_trace().head_view(layer=0, heads=[0], hide=(), mass=1.0),
        "All heads": random_trace(seed=1).model_view(enlarged=False),
    }
    return open_page(hs.gallery(views, title="Lesson").html(), hash)


def test_a_click_on_a_text_draws_it(open_page: Open) -> None:
    page = page_of(open_page)
    assert len(page.lines()) == 6
    page.page.get_by_role("button", name="Ten words").click()
    drawn = {(line["query"], line["key"]): line["weight"] for line in page.lines()}
    assert drawn[5, 3] == pytest.approx(float(random_trace().weights[0][0, 5, 3]), abs=1e-5)
    expect(page.page.locator(".hs-root")).to_have_count(1)
    assert "text=1" in page.address()
    page.page.get_by_role("button", name="All heads").click()
    page.settle()
    expect(page.page.locator(".hs-thumb")).to_have_count(12)
    page.shot("gallery")


def test_what_the_reader_changed_goes_along(open_page: Open) -> None:
    page = page_of(open_page)
    page.page.get_by_role("radio", name="Dark").click()
    page.token("q", 1).click()
    page.settle()
    page.page.get_by_role("button", name="Ten words").click()
    page.settle()
    expect(page.page.locator(".hs-root")).to_have_attribute("data-theme", "dark")
    assert page.state()["pinned"] is None


def test_a_link_opens_a_text_with_its_settings(open_page: Open) -> None:
    page = page_of(open_page, "text=1&layer=2&heads=3")
    assert {line["head"] for line in page.lines()} == {3}
    assert page.state()["layer"] == 2
    current = page.page.locator("[aria-current='true']")
    expect(current).to_have_text(re.compile("Ten words"))


def test_the_list_answers_the_keyboard_and_has_no_barriers(open_page: Open) -> None:
    page = page_of(open_page)
    page.page.get_by_role("button", name="Three words").focus()
    page.page.keyboard.press("ArrowDown")
    page.settle()
    assert "text=1" in page.address()
    assert page.barriers() == []
    page.resize(390, 800)
    assert page.page.evaluate("document.documentElement.scrollWidth") <= 390
    page.shot("gallery-phone")
