"""The explorer's pages at every width: nothing cut off, and closed pages say why."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from headscope.explorer.answers.runs import Library
from headscope.explorer.api import create_app
from headscope.explorer.texts import Texts
from headscope.model.model import Model
from tests.browser.conftest import resize
from tests.browser.explorer import Visit, visiting
from tests.explorer.live import live
from tests.references.explorer_models import tiny_model
from tests.references.runs import write_run

pytestmark = pytest.mark.browser

PAGES = {
    "overview": "/overview?run=vig",
    "finder": "/finder?run=clark",
    "head": "/head?run=clark&head=L1H2",
    "clusters": "/clusters?run=clark",
    "findings": "/findings?run=vig",
    "text": "/text?run=clark",
    "compare": "/compare?a=vig&b=later",
}
WIDTHS = (375, 390, 768, 1280, 1920)
OUTSIDE = """() => [...document.querySelectorAll('main *, header *')].filter(node => {
  const box = node.getBoundingClientRect();
  if (box.width === 0 || (box.right <= innerWidth + 1 && box.left >= -1)) return false;
  for (let at = node.parentElement; at; at = at.parentElement) {
    if (at !== document.body && getComputedStyle(at).overflowX !== 'visible') return false;
  }
  return true;
}).map(node => `${node.tagName}.${node.className}: ${node.textContent.slice(0, 40)}`)"""
CUT = """() => [...document.querySelectorAll('.figure-body svg text')].filter(node => {
  const [own, all] = [node.getBoundingClientRect(), node.ownerSVGElement.getBoundingClientRect()];
  return own.left < all.left - 1 || own.right > all.right + 1;
}).map(node => node.textContent)"""
SCROLLS = """() => [...document.querySelectorAll('.scroll')]
  .filter(node => node.checkVisibility()).map(node => [
   node.scrollWidth > node.clientWidth + 1 || node.scrollHeight > node.clientHeight + 1,
   node.parentElement.querySelector('.scroll-hint').textContent !== ''])"""


def named_model() -> Model:
    """A model that goes by the name of that of the run of clark2019."""
    return Model(tiny_model().network, tiny_model().tokenizer, name="mini-bert")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("runs")
    write_run(folder / "vig", "vig2019")  # of mini-gpt2
    write_run(folder / "later", "vig2019", shift=2.0)
    write_run(folder / "clark", "clark2019")  # of mini-bert
    library = Library([folder / name for name in ("vig", "later", "clark")])
    with live(create_app(library, Texts("mini-bert", named_model))) as place:
        yield place


@pytest.fixture
def visit(tab: Page, place: str) -> Iterator[Visit]:
    with visiting(tab, place) as visit:
        yield visit


@pytest.mark.parametrize("name", PAGES)
def test_every_page_fits_every_width(visit: Visit, name: str) -> None:
    resize(visit.page, WIDTHS[0], 900)
    visit.open(PAGES[name])
    assert_fits(visit, WIDTHS[0])
    visit.watched.shot(f"explorer-{name}-phone")
    for width in WIDTHS[1:]:
        visit.resize(width)
        assert_fits(visit, width)


def assert_fits(visit: Visit, width: int) -> None:
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= width
    assert visit.page.evaluate(OUTSIDE) == []
    assert visit.page.evaluate(CUT) == []
    assert all(hint == more for more, hint in visit.page.evaluate(SCROLLS))


def test_a_page_without_content_is_closed_and_says_why(visit: Visit) -> None:
    visit.open("/overview?run=vig")
    link = visit.at("#nav-clusters")
    why = "This study does not compare how alike heads attend, so that it has no map of them."
    expect(link).to_have_attribute("title", why)
    link.click(force=True)
    assert visit.address() == "/overview?run=vig"
    visit.follow("/overview?run=clark")
    expect(visit.at("#nav-clusters")).to_have_attribute("href", "/clusters?run=clark")


def test_without_a_model_no_text_can_be_tried(tab: Page, tmp_path: Path) -> None:
    app = create_app(Library([write_run(tmp_path / "vig", "vig2019")]), Texts(None, None))
    with live(app) as place, visiting(tab, place) as visit:
        visit.open("/overview")
        for page, why in (("text", "No model is loaded"), ("compare", "Comparing needs two")):
            expect(visit.at(f"#nav-{page}")).to_have_attribute("title", re.compile(why))


def test_a_run_of_another_model_is_opened_with_a_warning(visit: Visit) -> None:
    visit.open("/overview")
    expect(visit.at("#run")).to_have_value("clark")  # the only run of the loaded model
    expect(visit.at("#other-model")).to_have_count(0)
    for page in ("overview", "head", "text"):
        visit.follow(f"/{page}?run=vig")
        expect(visit.at("#other-model")).to_have_text(
            "The run vig is of mini-gpt2; the model that is loaded, and that reads a text, is "
            "mini-bert."
        )


def test_heads_without_a_behaviour_are_hollow(visit: Visit) -> None:
    visit.open("/clusters?run=clark")
    fills = visit.page.eval_on_selector_all(
        ".scatter .dot", "dots => dots.map(dot => dot.lastElementChild.getAttribute('fill'))"
    )
    kinds = visit.at(".legend-item").all_inner_texts()
    marks = visit.page.eval_on_selector_all(
        ".legend-item svg > *", "marks => marks.map(mark => mark.getAttribute('fill'))"
    )
    assert len(set(marks)) == len(kinds) - 1  # next and previous are both positions
    assert set(fills) == set(marks)
    assert marks[kinds.index("other")] == "#ffffff"


def test_heads_are_counted_in_whole_numbers(visit: Visit) -> None:
    visit.open("/overview?run=vig")
    for measure in ("entropy", "distance", "variability"):
        visit.choose("measure", measure)
        axis = visit.at("figure").filter(has_text="Distribution").locator("svg g").first
        counts = [float(text) for text in axis.locator("text").all_text_contents()[:-1]]
        assert counts and all(count == int(count) for count in counts)
