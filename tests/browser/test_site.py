"""The site in a sub-folder of a plain web server: every page, by every way of reading it."""

import re
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from headscope.explorer.site import site
from headscope.results.records import Records
from headscope.results.run import read_run
from tests.browser.conftest import resize
from tests.browser.explorer import Visit, visiting
from tests.browser.test_explorer_layout import CUT, OUTSIDE
from tests.references.luger2026_run import write_luger_run
from tests.references.runs import write_run

pytestmark = pytest.mark.browser

HEAD = "/head.html?run=luger&head=L1H2"
PAGES = {
    "index": "/",
    "finder": "/finder.html?run=luger",
    "head": HEAD,
    "card": "/head.html?run=vig&head=L1H2",
    "embed": "/embed.html?run=luger&head=L1H2",
    "embed-card": "/embed.html?run=vig&head=L1H2",
    "compare": "/compare.html?a=vig&b=later",
    "findings": "/findings.html?run=vig",
}


LENGTHEN = """() => document.querySelectorAll("option").forEach((one) => {
  one.textContent = "Attention to something with a very long name ".repeat(2); })"""


class Quiet(SimpleHTTPRequestHandler):
    """Python's own web server, without its log and without waits between packets."""

    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("web")
    runs = root / "runs"
    write_run(runs / "vig", "vig2019")
    write_run(runs / "later", "vig2019", shift=2.0)
    write_luger_run(runs / "luger", layers=2, heads=3)
    site([runs / name for name in ("vig", "later", "luger")], root / "deep" / "pages")
    return root


@pytest.fixture(scope="module")
def kept(root: Path) -> Records:
    return read_run(root / "runs" / "luger").records


@pytest.fixture(scope="module")
def place(root: Path) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(root)))
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/deep/pages"
    server.shutdown()


@pytest.fixture
def visit(tab: Page, place: str) -> Iterator[Visit]:
    with visiting(tab, place) as visit:
        yield visit


def test_every_page_can_be_read_by_everybody(visit: Visit) -> None:
    visit.open("/")
    for name, path in PAGES.items():
        visit.follow(path)
        expect(visit.at("main h1").first).to_be_visible()
        for theme, is_second in visit.lights():
            assert visit.faults() == [], f"{name}, {theme}"
            assert visit.watched.barriers(of_colours=is_second) == [], f"{name}, {theme}"


def test_every_page_fits_a_phone_and_a_desk(visit: Visit) -> None:
    for name in ("index", "head", "card", "embed", "embed-card"):  # others are those of a server
        path = PAGES[name]
        for width, arrive in ((390, visit.open), (1280, visit.follow)):
            resize(visit.page, width, 900)
            arrive(path)
            assert visit.page.evaluate("document.documentElement.scrollWidth") <= width, name
            assert visit.page.evaluate(OUTSIDE) == [], name
            assert visit.page.evaluate(CUT) == [], name


def test_links_stay_in_the_folder_and_load_no_document_again(visit: Visit) -> None:
    visit.open("/")
    visit.page.evaluate("window.same = true")
    visit.at("#nav-finder").click()
    visit.wait()
    visit.page.locator("table td a").first.click()
    visit.wait()
    assert visit.address().startswith("/head.html?run=vig&head=L0H0")
    visit.page.go_back()
    visit.wait()
    assert visit.page.evaluate("window.same") and visit.address() == "/finder.html?run=vig"
    expect(visit.at("h1")).to_have_text("Which head does that?")


def test_what_needs_a_model_is_closed_and_says_why(visit: Visit) -> None:
    visit.open("/overview.html?run=vig")
    expect(visit.at("#nav-text")).to_have_attribute("title", re.compile("plain files.*model"))
    expect(visit.at("#nav-text")).to_have_attribute("aria-disabled", "true")


def test_a_run_or_head_that_is_not_there_is_said(tab: Page, place: str) -> None:
    tab.goto(f"{place}/head.html?run=vig&head=L9H9")
    expect(tab.locator("[role=alert]")).to_contain_text("This site has no file for")
    tab.goto(f"{place}/overview.html?run=gone")
    expect(tab.locator("[role=alert]")).to_contain_text("There is no run gone here; choose one of")


def test_a_token_shows_where_it_looks_and_who_looks_at_it(visit: Visit, kept: Records) -> None:
    visit.open(f"{HEAD}&band=3")
    example = visit.at(".example").first
    own = next(one for one in kept.examples(1, 2) if one.band == 2)
    edges = list(zip(own.query, own.key, own.weight, strict=True))
    token = 4
    example.locator(f"[data-token='{token}']").hover()
    to = {key for query, key, weight in edges if query == token and round(1000 * weight) >= 20}
    by = {query for query, key, weight in edges if key == token and round(1000 * weight) >= 20}
    for kind, places in (("to", to), ("from", by)):
        marked = example.locator(f"[data-{kind}]")
        found = marked.evaluate_all("all => all.map((one) => Number(one.dataset.token))")
        assert set(found) == places and places
    expect(example.locator(".readout")).to_contain_text("looks at")


def test_buttons_of_a_figure_stay_side_by_side_and_long_names_in_the_page(visit: Visit) -> None:
    for width in (390, 700, 1440):
        resize(visit.page, width, 900)
        visit.open("/overview.html?run=vig")
        visit.page.evaluate(LENGTHEN)
        assert visit.page.evaluate("document.documentElement.scrollWidth") <= width
        tops = visit.page.eval_on_selector_all(
            ".figure-save",
            "all => all.map((one) => new Set([...one.children].map((b) => b.offsetTop)).size)",
        )
        assert tops and set(tops) == {1}, width


def test_on_a_phone_a_claim_is_read_without_scrolling_sideways(visit: Visit) -> None:
    resize(visit.page, 390, 900)
    visit.open("/findings.html?run=vig")
    verdict = visit.at(".claims .verdict").first
    expect(verdict).to_be_visible()
    box = verdict.bounding_box()
    assert box is not None and box["x"] + box["width"] <= 390
    label = "one => getComputedStyle(one.closest('td'), '::before').content"
    assert "Holds" in verdict.evaluate("one => one.closest('td').dataset.label")
    assert verdict.evaluate(label) != "none"


def test_the_arrow_keys_walk_through_an_example(visit: Visit) -> None:
    visit.open(HEAD)
    text = visit.at(".token-text").first
    text.focus()
    visit.page.keyboard.press("Home")
    visit.page.keyboard.press("ArrowRight")
    expect(text.locator("[aria-selected=true]")).to_have_attribute("data-token", "1")
    active = text.get_attribute("aria-activedescendant")
    assert active and active.endswith("-1")


def test_a_band_is_chosen_and_kept_in_the_address(visit: Visit) -> None:
    visit.open(HEAD)
    expect(visit.at(".example")).to_have_count(5)  # the very top ones
    visit.at("#band-2").check()
    expect(visit.at(".example")).to_have_count(2)
    assert visit.address().endswith("band=2")
    expect(visit.at(".example-about").first).to_contain_text("0.333")


def test_tokens_of_a_text_are_text(visit: Visit) -> None:
    visit.open(HEAD)
    expect(visit.at("#tops")).to_contain_text("<script>alert(1)</script>")
    assert visit.page.evaluate("document.querySelectorAll('main script').length") == 0


def test_a_point_of_the_map_opens_its_input(visit: Visit, kept: Records) -> None:
    visit.open(f"{HEAD}&map=value")
    own = [one for one in kept.points(1, 2) if one.space == "value"]
    expect(visit.at(".dot")).to_have_count(len(own))
    visit.at(".dot[data-head='value-3']").focus()
    expect(visit.at("#map-readout strong")).to_have_text(own[3].token, use_inner_text=False)
    visit.page.keyboard.press("Enter")
    tokens = kept.inputs([own[3].input])[own[3].input].tokens
    expect(visit.at(".opened .token")).to_have_count(len(tokens))
    expect(visit.at(".opened [aria-selected=true]")).to_have_attribute(
        "data-token", str(own[3].position)
    )


def test_the_code_to_embed_a_head_works_in_a_page_of_another_host(
    visit: Visit, root: Path, place: str
) -> None:
    visit.open(HEAD)
    visit.at("#share").click()
    expect(visit.at("#share-link")).to_have_value(f"{place}{HEAD}")
    code = visit.at("#share-frame").input_value()
    text = f"<!doctype html><title>Elsewhere</title><p>My page</p>{code}"
    (root / "elsewhere.html").write_text(text, encoding="utf-8")
    page = visit.page.context.new_page()
    page.goto(place.replace("127.0.0.1", "localhost").replace("deep/pages", "elsewhere.html"))
    frame = page.frame_locator("iframe")
    expect(frame.locator("h1")).to_have_text("Head L1H2")
    expect(frame.locator("#top")).to_be_hidden()
    expect(frame.get_by_role("link", name="Open in the explorer")).to_have_attribute(
        "target", "_blank"
    )


def test_runs_that_agree_do_not_differ(tab: Page, root: Path, place: str) -> None:
    runs = root / "same"
    paths = [write_run(runs / name, "vig2019", layers=(0, 1), heads=3) for name in ("a", "b")]
    site(paths, root / "agree")
    with visiting(tab, place.replace("/deep/pages", "/agree")) as visit:
        visit.open("/compare.html")
        expect(visit.at("#no-difference")).to_have_text("The two runs do not differ in any value.")


def test_compare_is_closed_where_no_two_runs_are_of_one_study(
    tab: Page, root: Path, place: str
) -> None:
    site([root / "runs" / "vig", root / "runs" / "luger"], root / "apart")
    with visiting(tab, place.replace("/deep/pages", "/apart")) as visit:
        visit.open("/overview.html")
        why = "No two of these runs are of one study: vig2019, luger2026."
        expect(visit.at("#nav-compare")).to_have_attribute("title", why)
        visit.follow("/compare.html")
        expect(visit.at("main .note")).to_contain_text(why)
