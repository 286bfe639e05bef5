"""The map of heads: what is read at first sight, by pointer, by keyboard and on a phone."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from headscope.explorer.answers.runs import Library
from headscope.explorer.api import create_app
from headscope.explorer.site import site
from headscope.explorer.texts import Texts
from tests.browser.conftest import resize
from tests.browser.explorer import Visit, visiting
from tests.explorer.live import live
from tests.references.explorer_models import tiny_model
from tests.references.luger2026_run import write_luger_run
from tests.references.runs import write_run

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    for name in ("told", "later"):
        write_run(folder / name, "clark2019", described=True)
    write_luger_run(folder / "fed", layers=4, heads=4, described=True)
    return folder


@pytest.fixture(scope="module")
def place(folder: Path) -> Iterator[str]:
    with live(
        create_app(
            Library([folder / name for name in ("told", "later", "fed")]),
            Texts("tiny-gpt2", tiny_model),
        )
    ) as place:
        yield place


@pytest.fixture
def visit(tab: Page, place: str) -> Iterator[Visit]:
    with visiting(tab, place) as visit:
        yield visit


def test_the_first_page_names_every_head_and_counts_names(visit: Visit) -> None:
    visit.open("/")
    expect(visit.at("h1")).to_have_text("What does each attention head look at?")
    expect(visit.at(".map-cell")).to_have_count(16)
    expect(visit.at("#map-L0H0")).to_have_attribute("aria-label", "L0H0, previous token 50\u202f%")
    expect(visit.at("#map-L0H0 .name")).to_have_text("previous token")
    expect(visit.at("#map-L1H1 .share")).to_have_text("")  # it has no name
    expect(visit.at(".summary-line")).to_contain_text("2 have no name yet")
    chips = visit.at(".role-chip").all_inner_texts()
    assert [chip.split("\n")[0].rstrip("0123456789 ") for chip in chips] == [
        "previous token", "after the same", "verb → object", "first token", "evenly", "unnamed",
    ]  # fmt: skip


def test_a_chip_leaves_only_its_heads_and_the_address_keeps_it(visit: Visit) -> None:
    visit.open("/")
    visit.page.get_by_role("button", name="unnamed").first.click()
    expect(visit.at(".map-cell:not(.off)")).to_have_count(2)
    visit.open(visit.address())
    expect(visit.at(".map-cell:not(.off)")).to_have_count(2)


def test_a_click_opens_the_card_beside_the_map(visit: Visit) -> None:
    visit.open("/")
    visit.at("#map-L0H3").click()
    expect(visit.at("#card h2")).to_have_text("L0H3")
    expect(visit.at("#card .say")).to_contain_text("Looks from a verb to its object")
    expect(visit.at("#card .arcs")).to_have_count(1)
    expect(visit.at("#card .arcs text").filter(has_text="<script>")).to_have_count(1)
    expect(visit.at("#card .surprises .value")).to_have_text("70\u202f%, expected 2\u202f%")
    expect(visit.at("#map-L0H3")).to_have_attribute("aria-current", "true")
    visit.page.get_by_role("button", name="Next head").click()
    expect(visit.at("#card h2")).to_have_text("L1H0")
    expect(visit.at("#card-next")).to_be_focused()
    assert visit.address() == "/map?head=L1H0"
    visit.page.get_by_role("link", name="All measures of").click()
    expect(visit.at(".title h1")).to_have_text("Head L1H0")
    visit.page.go_back()
    expect(visit.at("#card h2")).to_have_text("L1H0")


def test_arcs_lead_from_the_heads_that_feed_the_chosen_one(visit: Visit) -> None:
    visit.open("/map?run=fed&head=L2H1")
    expect(visit.at(".feed-arcs path")).to_have_count(0)
    visit.at("#feeds").select_option("head")
    arcs = visit.at(".feed-arcs path")
    expect(arcs.first).to_be_attached()
    ends = arcs.evaluate_all("(all) => all.map((one) => one.dataset.feed.split(' '))")
    assert all("L2H1" in both for both in ends)
    assert sum(head == "L2H1" for _, head in ends) == 3  # the strongest three feed it
    box = visit.at("#map-L2H1").bounding_box()
    first = arcs.first.evaluate(
        "(arc) => { const end = arc.getPointAtLength(arc.getTotalLength());"
        "const on = arc.ownerSVGElement.getScreenCTM();"
        "return [end.x * on.a + on.e, end.y * on.d + on.f]; }"
    )
    assert box is not None
    assert abs(first[0] - box["x"] - box["width"] / 2) < 2
    assert abs(first[1] - box["y"] - box["height"] / 2) < 2
    visit.watched.shot("map-feeds")
    visit.at("#map-L1H0").click()
    expect(arcs.first).to_have_attribute("data-feed", re.compile("L1H0"))
    visit.at("#feeds").select_option("all")
    assert arcs.count() > 3
    assert "feeds=all" in visit.address()
    visit.at("#order").select_option("role")
    expect(arcs).to_have_count(0)


def test_arrows_walk_the_map_as_one_stop_and_enter_opens(visit: Visit) -> None:
    visit.open("/")
    expect(visit.at(".map-cell[tabindex='0']")).to_have_count(1)
    visit.at("#map-L0H0").focus()
    for key in ("ArrowRight", "ArrowDown", "ArrowDown"):
        visit.page.keyboard.press(key)
    expect(visit.at("#map-L2H1")).to_be_focused()
    expect(visit.at(".map-cell[tabindex='0']")).to_have_count(1)
    visit.page.keyboard.press("Enter")
    expect(visit.at("#card h2")).to_have_text("L2H1")
    expect(visit.at("#map-L2H1")).to_be_focused()


def test_pointing_shows_a_sentence_and_an_example(visit: Visit) -> None:
    visit.open("/")
    visit.at("#map-L1H3").hover()
    expect(visit.at(".map-hint.on p")).to_contain_text("L1H3 Rests on the first token")
    expect(visit.at(".map-hint.on .arcs")).to_have_count(1)
    visit.at("h1").hover()
    expect(visit.at(".map-hint.on")).to_have_count(0)


def test_heads_are_ordered_by_role(visit: Visit) -> None:
    visit.open("/")
    visit.at("#order").select_option("role")
    expect(visit.at(".role h3").first).to_contain_text("previous token")
    expect(visit.at(".role").first.locator(".map-cell")).to_have_count(3)
    assert "order=role" in visit.address()


def test_a_measure_is_one_choice_away(visit: Visit) -> None:
    visit.open("/")
    visit.at("#colour-by").select_option("entropy")
    visit.wait()
    expect(visit.at(".heatmap .cell")).to_have_count(16)
    assert visit.address() == "/overview?run=told&measure=entropy"


def test_on_a_phone_the_card_is_a_sheet_that_closes(visit: Visit) -> None:
    resize(visit.page, 390, 844)
    visit.open("/")
    expect(visit.at("#card")).to_be_hidden()
    visit.at("#map-L2H2").click()
    expect(visit.at("#card h2")).to_be_in_viewport()
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= 390
    visit.page.get_by_role("button", name="Close").click()
    expect(visit.at("#card")).to_be_hidden()
    expect(visit.at("#map-L2H2")).to_be_focused()


def test_nothing_is_in_the_way_of_anybody(visit: Visit) -> None:
    for path in ("/", "/?order=role", "/head?run=told&head=L0H3"):
        visit.open(path)
        for theme, is_second in visit.lights():
            assert visit.faults() == [], f"{path} {theme}"
            assert visit.watched.barriers(of_colours=is_second) == [], f"{path} {theme}"


def test_the_card_shows_evidence_first_and_measures_on_demand(visit: Visit) -> None:
    visit.open("/head?run=told&head=L0H3")
    expect(visit.at(".evidence .say")).to_be_visible()
    expect(visit.at(".evidence .arcs").first).to_be_in_viewport()
    expect(visit.at(".evidence .matrix")).to_be_visible()
    expect(visit.at(".fold table").first).to_be_hidden()
    visit.at(".fold > summary").click()
    expect(visit.at(".fold table").first).to_be_visible()


def test_a_site_opens_from_a_disk(tab: Page, folder: Path, tmp_path: Path) -> None:
    made = site([folder / "told"], tmp_path / "site")
    said: list[str] = []
    tab.on("console", lambda message: said.append(message.text))
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.goto((made / "index.html").as_uri())
    expect(tab.locator(".map-cell")).to_have_count(16)
    tab.locator("#map-L0H3").click()
    expect(tab.locator("#card .say")).to_contain_text("Looks from a verb to its object")
    tab.get_by_role("link", name="All measures of").click()
    expect(tab.locator(".title h1")).to_have_text("Head L0H3")
    tab.locator("#nav-finder").click()
    expect(tab.locator("h1")).to_have_text("Which head does that?")
    assert said == []


def test_back_returns_to_the_head_and_the_place_that_were_left(visit: Visit) -> None:
    resize(visit.page, 900, 500)
    visit.open("/overview?run=told")
    visit.cell("L2H1").focus()
    visit.page.evaluate("scrollTo(0, 150)")
    visit.page.keyboard.press("Enter")
    expect(visit.at(".title h1")).to_have_text("Head L2H1")
    expect(visit.at(".title h1")).to_be_focused()
    assert visit.page.evaluate("scrollY") == 0
    visit.page.go_back()
    expect(visit.cell("L2H1")).to_be_focused()
    assert visit.page.evaluate("scrollY") == 150


def test_the_finder_searches_names_and_sentences_and_clears(visit: Visit) -> None:
    visit.open("/finder?run=told")
    search, clear = visit.at("#q"), visit.page.get_by_role("button", name="Clear")
    expect(clear).to_be_disabled()
    search.fill("previous token")
    expect(visit.at("#count")).to_have_text("3 of 16 heads fit.")
    expect(visit.at("td a").first).to_have_text("L0H0")
    expect(visit.at("td").nth(1)).to_contain_text("looks at the previous token")
    search.fill("verb to its object")
    expect(visit.at("#count")).to_have_text("3 of 16 heads fit.")
    clear.click()
    expect(search).to_have_value("")
    expect(visit.at("#count")).to_have_text("16 of 16 heads.")


def test_runs_of_one_model_are_compared_as_maps_with_what_changed(visit: Visit) -> None:
    visit.open("/compare")
    expect(visit.at("#a")).to_have_value("told")
    expect(visit.at("#b")).to_have_value("later")
    expect(visit.at(".map-pair .map-cell")).to_have_count(32)
    expect(visit.at(".summary-line")).to_contain_text("0 heads of 16 are called otherwise")
    expect(visit.at(".fold table").first).to_be_hidden()
    visit.at("#map-second-L1H2").click()
    expect(visit.at(".title h1")).to_have_text("Head L1H2")


def test_a_table_is_a_download_with_readable_headings(visit: Visit) -> None:
    visit.open("/findings?run=told")
    expect(visit.at("nav a").filter(has_text="Tables")).to_have_count(0)
    with visit.page.expect_download() as waiting:
        visit.at(".downloads button").first.click()
    text = Path(waiting.value.path()).read_text(encoding="utf-8")
    assert text.splitlines()[0] == "relation,words,head,accuracy,baseline"
