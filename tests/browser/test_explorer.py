"""Through every page of the explorer with real clicks."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from xml.etree import ElementTree

import numpy as np
import pytest
import xarray as xr
from playwright.sync_api import Locator, Page, Route, expect

from headscope.explorer.answers.runs import Library
from headscope.explorer.api import create_app
from headscope.explorer.texts import Texts
from headscope.model.model import Model
from headscope.results.dataset import load
from headscope.results.replicates import margin_of
from headscope.results.statements import read_statements
from tests.browser.explorer import Visit, visiting
from tests.explorer.live import live
from tests.references.explorer_models import tiny_model
from tests.references.runs import HOSTILE, unfinished_run, write_run

pytestmark = pytest.mark.browser

PAGES = {
    "overview": "/overview?run=vig&more=1",
    "finder": "/finder?run=clark",
    "head": "/head?run=clark&head=L1H2",
    "clusters": "/clusters?run=clark",
    "findings": "/findings?run=vig",
    "text": "/text",
    "compare": "/compare?a=vig&b=vig-later",
}


RUNS = ("vig", "vig-later", "clark", "hybrid", "stopped", "damaged")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    write_run(folder / "vig", "vig2019")
    write_run(folder / "vig-later", "vig2019", shift=2.0)
    write_run(folder / "clark", "clark2019")
    write_run(folder / "hybrid", "clark2019", layers=(1, 3, 5))
    unfinished_run(folder / "stopped")
    (write_run(folder / "damaged", "vig2019") / "result.nc").write_bytes(b"not HDF5")
    return folder


@pytest.fixture(scope="module")
def library(folder: Path) -> Library:
    return Library([folder / name for name in RUNS])


@pytest.fixture(scope="module")
def place(library: Library) -> Iterator[str]:
    texts = Texts("tiny-gpt2", tiny_model)
    with live(create_app(library, texts)) as place:
        yield place


@pytest.fixture
def visit(tab: Page, place: str) -> Iterator[Visit]:
    with visiting(tab, place) as visit:
        yield visit


@pytest.fixture
def vig(folder: Path) -> xr.Dataset:
    return load(folder / "vig")


def shown_values(visit: Visit) -> np.ndarray:
    cells = visit.page.eval_on_selector_all(
        ".heatmap .cell", "cells => cells.map((one) => Number(one.dataset.value))"
    )
    return np.array(cells).reshape(4, 4)


def downloaded(visit: Visit, button: str) -> str:
    with visit.page.expect_download() as waiting:
        visit.page.get_by_role("button", name=button, exact=True).first.click()
    return Path(waiting.value.path()).read_text(encoding="utf-8")


def assert_downloads(visit: Visit, figure: Locator) -> None:
    """The drawing is XML with something in it, the numbers are a table with a heading."""
    texts = []
    for kind in ("SVG", "CSV"):
        with visit.page.expect_download() as waiting:
            figure.locator("button", has_text=kind).click()
        texts.append(Path(waiting.value.path()).read_text(encoding="utf-8"))
    drawing, rows = ElementTree.fromstring(texts[0]), list(csv.reader(io.StringIO(texts[1])))
    assert drawing.tag.endswith("svg") and len(list(drawing.iter())) > 5
    assert len(rows) > 1 and {len(row) for row in rows} == {len(rows[0])}


def test_heatmap_cells_equal_the_result_for_every_choice_of_the_menus(
    visit: Visit, vig: xr.Dataset
) -> None:
    visit.open("/overview?run=vig")
    visit.choose("measure", "pos_to")
    visit.choose("measure-tag", "VERB")
    np.testing.assert_array_equal(shown_values(visit), vig["pos_to"].sel(tag="VERB"))
    visit.choose("measure", "distance")
    np.testing.assert_array_equal(shown_values(visit), vig["distance"])
    said = visit.cell("L2H1").get_attribute("aria-label") or ""
    margin = margin_of(vig, "distance")
    assert margin is not None
    assert said == f"L2H1: {float(vig['distance'][2, 1]):.3f} ± {float(margin[2, 1]):.3f}"
    visit.watched.shot("explorer-overview")


def test_pointing_at_a_cell_tells_its_value_and_rank(visit: Visit, vig: xr.Dataset) -> None:
    visit.open("/overview?run=vig&measure=distance")
    place = np.unravel_index(np.argmax(vig["distance"].values), (4, 4))
    visit.cell(f"L{place[0]}H{place[1]}").hover()
    expect(visit.at("#readout")).to_contain_text("rank 1 of 16")


def test_the_published_value_is_shown(visit: Visit) -> None:
    visit.open("/overview?run=vig&measure=entropy")
    visit.choose("measure", "null_share")
    expect(visit.at("main")).to_contain_text("Published: 0.57")


def test_the_distribution_is_folded_and_leads_to_a_second_measure(visit: Visit) -> None:
    visit.open("/overview?run=vig&measure=entropy")
    expect(visit.at(".fold .bin").first).to_be_hidden()
    visit.at(".fold summary").click()
    expect(visit.at(".fold .bin").first).to_be_visible()
    visit.choose("measure", "distance")
    expect(visit.at(".fold .bin").first).to_be_visible()
    visit.page.get_by_role("link", name="Against another measure").click()
    expect(visit.at("#y")).to_have_value("distance")


def test_the_heatmap_is_walked_by_keyboard_and_opens_the_card(visit: Visit) -> None:
    visit.open("/overview?run=vig")
    visit.cell("L0H0").focus()
    for key in ("ArrowRight", "ArrowDown", "ArrowRight"):
        visit.page.keyboard.press(key)
    expect(visit.cell("L1H2")).to_be_focused()
    visit.page.keyboard.press("Enter")
    expect(visit.at(".title h1")).to_have_text("Head L1H2")


def test_card_to_exemplar_to_head_view_to_an_edited_text(visit: Visit, vig: xr.Dataset) -> None:
    visit.open("/overview?run=vig&measure=distance")
    visit.cell("L3H2").click()
    expect(visit.at(".title h1")).to_have_text("Head L3H2")
    row = (
        visit.at(
            "table tr",
        )
        .filter(has_text="Distance")
        .first
    )
    value = float(vig["distance"][3, 2])
    expect(row).to_contain_text(f"{value:.3f}")
    visit.at("#exemplar-0").click()
    expect(visit.at(".view .hs-token")).to_have_count(16)
    expect(visit.at(".view [aria-label='Layer']")).to_have_value("3")
    expect(visit.at(".view .hs-chip[aria-pressed=true]")).to_have_text("2")
    visit.watched.shot("explorer-head")
    visit.at("#text").fill("The old dog sat on the mat.")
    visit.at("#trace").click()
    expect(visit.at(".view [data-side=q] .hs-token").nth(2)).to_have_text("dog")
    assert "text=The+old+dog" in visit.address()
    visit.page.go_back()
    expect(visit.at("#exemplar-0")).to_be_focused()


def test_hostile_text_stays_text(visit: Visit) -> None:
    visit.open("/head?run=vig&head=L0H0")
    shown = visit.at(".exemplars text").filter(has_text="</script>")
    expect(shown.first).to_be_visible()
    expect(visit.at("main img")).to_have_count(0)
    hostile = HOSTILE.replace('"', "%22").replace("<", "%3C").replace(">", "%3E")
    visit.open(f"/text?text={hostile}")
    expect(visit.at("#text")).to_have_value(HOSTILE)
    expect(visit.at("#view .hs-token").first).to_be_visible()
    expect(visit.at("main img")).to_have_count(0)


def test_heads_that_are_alike_have_colours_and_names_and_lead_to_the_cards(
    visit: Visit, folder: Path
) -> None:
    visit.open("/clusters?run=clark")
    expect(visit.at(".dot")).to_have_count(16)
    visit.watched.shot("explorer-clusters")
    behaviours = set(load(folder / "clark")["behaviour"].values.ravel().tolist())
    expect(visit.at(".legend-item")).to_have_count(len(behaviours))
    boxes = visit.at(".scatter > text").evaluate_all(
        "texts => texts.map((text) => text.getBoundingClientRect().toJSON())"
    )
    assert boxes
    for i, one in enumerate(boxes):
        for other in boxes[:i]:  # no name hides another
            apart = one["left"] >= other["right"] or other["left"] >= one["right"]
            assert apart or abs(one["top"] - other["top"]) >= 11
    visit.at(".dot[data-head=L2H3] > :last-child").click()
    expect(visit.at(".title h1")).to_have_text("Head L2H3")


def test_layers_of_a_hybrid_model_go_by_their_own_numbers(visit: Visit) -> None:
    visit.open("/head?run=hybrid")
    expect(visit.at(".title h1")).to_have_text("Head L1H0")
    names = visit.at("#head option").all_inner_texts()
    assert names == [f"L{layer}H{head}" for layer in (1, 3, 5) for head in range(4)]
    visit.choose("head", "L1H3")
    visit.at("#next").click()
    expect(visit.at(".title h1")).to_have_text("Head L3H0")
    visit.follow("/finder?run=hybrid")
    legend = visit.at(".legend-item").all_inner_texts()
    assert legend == ["Layer 1", "Layer 3", "Layer 5"]
    fills = visit.at(".dot").evaluate_all(
        "all => all.map((one) => one.lastChild.getAttribute('fill'))"
    )
    assert len(set(fills)) == 3
    visit.at(".dot[data-head=L5H2] > :last-child").click()
    expect(visit.at(".title h1")).to_have_text("Head L5H2")
    visit.follow("/overview?run=hybrid&measure=entropy")
    visit.cell("L3H2").hover()
    expect(visit.at("#readout")).to_contain_text("L3H2")
    expect(visit.at("#readout")).to_contain_text("of 12")
    visit.cell("L5H1").click()
    expect(visit.at(".title h1")).to_have_text("Head L5H1")


def test_the_findings_are_the_stored_ones(visit: Visit, vig: xr.Dataset) -> None:
    visit.open("/findings?run=vig")
    said = read_statements(vig)
    rows = visit.at("table.claims tbody tr")
    expect(rows).to_have_count(len(said.findings))
    shown = [row.locator("td").all_inner_texts() for row in rows.all()]
    stored = [
        [claim.claim, claim.published, claim.measured, claim.holds] for claim in said.findings
    ]
    order = ["yes", "no", "unclear", "untrained too", "not measured", "for comparison"]
    assert shown == sorted(stored, key=lambda cells: order.index(cells[3]))
    expect(visit.at(".fold li").first).to_be_hidden()
    visit.at(".fold summary").click()
    expect(visit.at(".fold li").first).to_contain_text(said.findings[0].rule)
    [choice] = said.choices
    link = visit.at(".choices a")
    expect(link).to_have_text(f"L{choice.layer}H{choice.head}")
    expect(visit.at(".choices:has(a)").last).to_contain_text(choice.why)
    link.click()
    expect(visit.at(".title h1")).to_have_text(f"Head L{choice.layer}H{choice.head}")


def test_a_table_sorts_both_ways_and_keeps_it_in_the_address(visit: Visit) -> None:
    visit.open("/head?run=clark&head=L1H2")
    button = visit.at("th").get_by_role("button", name="value").first
    button.click()
    rows = "(all) => all.map((one) => Number.parseFloat(one.textContent.replace('−', '-')))"
    column = visit.at("section.grow table").first.locator("td:nth-child(2)")
    falling = column.evaluate_all(rows)
    assert falling == sorted(falling, reverse=True)
    button.click()
    assert column.evaluate_all(rows) == falling[::-1]
    assert "sort=value" in visit.address()
    visit.open(visit.address())
    assert column.evaluate_all(rows) == falling[::-1]


def test_a_typed_text_is_traced_in_every_view_and_the_link_restores_it(visit: Visit) -> None:
    visit.open("/text")
    visit.at("#text").fill("A cat saw the dog.")
    visit.at("#generate").fill("2")
    visit.at("#trace").click()
    expect(visit.at("#view [data-side=q] .hs-token")).to_have_count(8)
    visit.at("#view select[aria-label=Layer]").select_option("2")
    visit.page.wait_for_url("**#layer=2*")
    address = visit.address()
    visit.open(address)
    expect(visit.at("#text")).to_have_value("A cat saw the dog.")
    expect(visit.at("#view select[aria-label=Layer]")).to_have_value("2")
    visit.at("#kind-model").check()
    expect(visit.at("#view canvas").first).to_be_visible()
    visit.watched.shot("explorer-text")
    visit.at("#kind-neuron").check()
    expect(visit.at("#view")).to_contain_text("softmax")
    product = visit.at("#view canvas[data-strip=product]")
    product.click(position={"x": 4, "y": 4})  # in the first row, of which it covers a part
    expect(visit.at("#status")).to_contain_text("looks from")
    query, key = (visit.at("[data-weight]").first.get_attribute("data-weight") or "").split()
    why = tiny_model().trace("A cat saw the dog.", generate=2).why(2, 0, int(query), int(key))
    expect(visit.at("#status")).to_have_text(f"{why.sentence}.")


def test_a_head_is_switched_off_and_what_changes_stands_beside_another_head(visit: Visit) -> None:
    visit.open("/text?text=A+cat+saw+the+dog.&kind=model")
    visit.at("#without").fill("L0H1")
    visit.at("#trace").click()
    expected = tiny_model().trace("A cat saw the dog.", without=["L0H1"]).difference()
    expect(visit.at("#difference .lead")).to_have_text(expected.sentence)
    cell = visit.at(f"#d-cell-{expected.most}")
    row, head = [*expected.change].index(expected.most.layer), expected.most.head
    moved = float(cell.get_attribute("data-value") or "nan")
    assert moved == pytest.approx(float(expected.moved[row, head]), abs=1e-4)
    expect(visit.at("#difference .change-matrix")).to_have_count(2)
    visit.watched.shot("explorer-without")
    visit.at("#d-cell-L2H1").click()
    expect(visit.at("#difference")).to_contain_text("Weights of L2H1 that change most")
    shown = visit.at("#difference tbody").last.locator("tr").first.locator("td")
    assert float(shown.nth(1).inner_text()) == pytest.approx(
        expected.next_tokens[0].plain, abs=0.001
    )
    visit.at("#replacement-mean").check()
    mean = tiny_model().trace("A cat saw the dog.", without=["L0H1"], replacement="mean")
    expect(visit.at("#difference .lead")).to_have_text(mean.difference().sentence)
    visit.open(visit.address())
    expect(visit.at("#without")).to_have_value("L0H1")
    expect(visit.at("#difference .lead")).to_have_text(mean.difference().sentence)
    visit.at("#without").fill("L77H0")
    visit.at("#trace").click()
    expect(visit.at("#difference .note")).to_contain_text("has no head L77H0")
    visit.watched.console[:] = [line for line in visit.watched.console if "422" not in line]


def test_the_old_picture_is_dimmed_while_a_new_text_is_traced(visit: Visit) -> None:
    visit.open("/text?text=The+dog+ran.")
    expect(visit.at("#view .hs-token").first).to_be_visible()
    held: list[Route] = []
    visit.page.route("**/api/trace", lambda route: held.append(route))
    visit.at("#text").fill("A cat.")
    visit.at("#trace").click()
    expect(visit.at("#view .hs-root")).to_have_css("opacity", "0.4")
    held[0].continue_()
    expect(visit.at("#view .hs-root")).to_have_css("opacity", "1")
    expect(visit.at("#view [data-side=q] .hs-token").first).to_have_text("A")


def test_a_text_that_is_too_long_is_answered_in_a_sentence_and_the_next_is_traced(
    visit: Visit,
) -> None:
    visit.open("/text")
    visit.at("#text").fill("word " * 80)
    visit.at("#trace").click()
    expect(visit.at("#status.wrong")).to_contain_text("64")
    visit.at("#text").fill("Short again.")
    visit.page.keyboard.press("Control+Enter")
    count = len(tiny_model().encode("Short again.").ids)
    expect(visit.at("#view [data-side=q] .hs-token")).to_have_count(count)
    said = [line for line in visit.watched.console if "422" not in line]
    visit.watched.console[:] = said  # the browser notes every refused request


def test_the_comparison_shows_the_head_that_changed_first(visit: Visit) -> None:
    visit.open("/compare?a=vig&b=vig-later")
    first = visit.at("table tbody tr").first
    expect(first).to_contain_text("L1H2")
    expect(first).to_contain_text("+2.000")
    changed = visit.at("[id='difference-cell-L1H2']")
    assert float(changed.get_attribute("data-value") or "nan") == pytest.approx(2.0)
    expect(visit.at("[id='difference-cell-L0H0']")).to_have_attribute("data-value", "0")
    visit.watched.shot("explorer-compare")
    visit.choose("measure", "distance")
    assert "measure=distance" in visit.address()


@pytest.mark.parametrize(
    "address",
    [
        "/overview?run=vig&measure=pos_to%7EDET&more=1",
        "/head?run=clark&head=L3H1&sort=-value",
        "/clusters?run=clark",
        "/compare?a=vig&b=vig-later&measure=deprel_to%7Eroot",
    ],
)
def test_a_link_restores_what_was_seen(visit: Visit, address: str) -> None:
    visit.open(address)
    first = visit.at("main").inner_html()
    visit.open("/findings?run=vig")
    visit.page.go_back()
    visit.page.wait_for_function(
        "before => document.querySelector('main').innerHTML === before", arg=first
    )
    assert visit.address() == address


def test_every_figure_downloads_as_svg_and_csv(visit: Visit, vig: xr.Dataset) -> None:
    visit.open("/overview?run=vig&measure=distance&more=1")
    rows = list(
        csv.DictReader(io.StringIO(downloaded(visit, "Download the numbers of “Distance” as CSV")))
    )
    assert [float(row["value"]) for row in rows] == list(vig["distance"].values.ravel())
    drawing = downloaded(visit, "Download “Distance” as SVG")
    assert drawing.startswith("<svg xmlns=") and drawing.count("gridcell") == 16
    for page in ("overview", "head", "clusters", "compare"):
        visit.open(PAGES[page])
        figures = visit.at("figure")
        assert figures.count() > 0
        for i in range(figures.count()):
            assert_downloads(visit, figures.nth(i))


def test_unfinished_and_damaged_runs_say_what_to_do(visit: Visit) -> None:
    visit.open("/overview?run=stopped")
    expect(visit.at("main")).to_contain_text("3 of 5 shards are done")
    expect(visit.at("main code")).to_contain_text("headscope study vig2019 --model mini-gpt2")
    visit.choose("run", "damaged")
    expect(visit.at("main")).to_contain_text("delete it and run the study again")
    visit.choose("run", "vig")
    expect(visit.at(".heatmap .cell")).to_have_count(16)


def test_every_page_says_what_it_is_for_and_nobody_stumbles(visit: Visit) -> None:
    said = set()
    visit.open("/")
    for name, path in PAGES.items():
        visit.follow(path)
        if name == "text":
            expect(visit.at("#view .hs-token").first).to_be_visible()
        said.add(visit.at("main .help").inner_text())
        for theme, is_second in visit.lights():
            assert visit.faults() == [], f"{name}, {theme}"
            assert visit.watched.barriers(of_colours=is_second) == [], f"{name}, {theme}"
            visit.watched.shot(f"explorer-{name}-{theme}")
    assert len(said) == len(PAGES) and all(text.endswith(".") for text in said)


def test_the_theme_is_chosen_and_kept(visit: Visit) -> None:
    visit.open("/overview?run=vig")
    ground = "getComputedStyle(document.body).backgroundColor"
    light = visit.page.evaluate(ground)
    visit.choose("theme", "dark")
    dark = visit.page.evaluate(ground)
    visit.open("/findings?run=vig")
    assert dark != light
    assert visit.page.evaluate(ground) == dark


def test_a_view_opens_as_its_address_says_once_the_model_is_loaded(
    tab: Page, library: Library
) -> None:
    is_asked = Event()

    def load_slowly() -> Model:
        is_asked.wait(60)
        return tiny_model()

    with (
        live(create_app(library, Texts("tiny-gpt2", load_slowly))) as place,
        visiting(tab, place) as visit,
    ):
        visit.open("/text?text=The+old+cat+sat.#layer=2&heads=3&pinned=q1")
        expect(visit.at("#status")).to_contain_text("is loading")
        is_asked.set()
        expect(visit.at(".view [aria-label='Layer']")).to_have_value("2")
        expect(visit.at(".view .hs-token[aria-selected=true]")).to_have_count(1)
        assert "layer=2&heads=3&pinned=q1" in visit.address()


def test_without_a_model_an_exemplar_is_read_and_the_page_of_texts_says_why(
    tab: Page, library: Library
) -> None:
    with live(create_app(library, Texts(None, None))) as place, visiting(tab, place) as visit:
        visit.open("/head?run=vig&head=L2H2")
        expect(visit.at(".exemplar .arcs").first).to_be_visible()
        expect(visit.at("#exemplar-0")).to_have_count(0)
        visit.follow("/text")
        expect(visit.at("#status")).to_contain_text("--model")


def test_without_a_run_the_first_page_says_how_to_make_one(tab: Page) -> None:
    with (
        live(create_app(Library([]), Texts(None, None))) as place,
        visiting(tab, place) as visit,
    ):
        visit.open("/")
        expect(visit.at("main pre")).to_contain_text("headscope study vig2019")
