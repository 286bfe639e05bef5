"""Firefox shows the map of heads, its cards and the pages behind it, from a server and a disk."""

from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from headscope.explorer.site import site
from tests.hosts.conftest import ARTEFACTS, free_port
from tests.hosts.firefox import FIREFOX, Firefox
from tests.references.runs import write_run

pytestmark = pytest.mark.skipif(FIREFOX is None, reason="there is no Firefox")
ARROW_RIGHT, ARROW_DOWN, ENTER = "\ue014", "\ue015", "\ue007"


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    for name, shift in (("told", 0.0), ("later", 2.0)):
        write_run(folder / name, "clark2019", described=True, shift=shift)
    return site([folder / "told", folder / "later"], folder / "pages")


@pytest.fixture(scope="module", params=["disk", "server"])
def place(request: pytest.FixtureRequest, pages: Path) -> Iterator[str]:
    if request.param == "disk":
        yield pages.as_uri()
        return
    handler = partial(SimpleHTTPRequestHandler, directory=str(pages))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@pytest.fixture(scope="module")
def firefox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Firefox]:
    browser = Firefox(tmp_path_factory.mktemp("firefox"), free_port())
    yield browser
    browser.close()


def show(firefox: Firefox, address: str, selector: str) -> None:
    firefox.open(address)
    firefox.wait(selector)


def test_the_map_names_heads_and_a_chip_leaves_only_its_own(firefox: Firefox, place: str) -> None:
    show(firefox, f"{place}/index.html", "#card .say")
    assert firefox.text("h1") == "What does each attention head look at?"
    assert firefox.count(".map-cell") == 16
    assert firefox.text("#map-L0H0 .name") == "previous token"
    firefox.click(".role-chip[data-group='unnamed']")
    assert firefox.count(".map-cell:not(.off)") == 2
    firefox.shot(ARTEFACTS / f"firefox-map-{place[:4]}.png")


def test_a_click_opens_the_card_with_examples(firefox: Firefox, place: str) -> None:
    show(firefox, f"{place}/index.html", "#card .say")
    firefox.click("#map-L0H3")
    firefox.wait("#card .surprises .value")
    assert firefox.text("#card h2") == "L0H3"
    assert "Looks from a verb to its object" in firefox.text("#card .say")
    assert firefox.count("#card .arcs path[stroke-width]") > 0
    firefox.click("#card .card-more a")
    firefox.wait(".evidence .matrix")
    assert firefox.text(".title h1") == "Head L0H3"


def test_arrows_walk_the_map_and_enter_opens(firefox: Firefox, place: str) -> None:
    show(firefox, f"{place}/index.html", "#card .say")
    firefox.run("document.querySelector('#map-L0H0').focus()")
    firefox.press(ARROW_RIGHT, ARROW_DOWN, ARROW_DOWN)
    assert firefox.run("return document.activeElement.id") == "map-L2H1"
    firefox.press(ENTER)
    firefox.wait("#card-next")
    assert firefox.text("#card h2") == "L2H1"


def test_pointing_shows_a_sentence_and_an_example(firefox: Firefox, place: str) -> None:
    show(firefox, f"{place}/index.html", "#card .say")
    firefox.hover("#map-L1H3")
    firefox.wait(".map-hint.on .arcs")
    assert "L1H3 Rests on the first token" in firefox.text(".map-hint.on p")


@pytest.mark.parametrize(
    ("page", "selector"),
    [
        ("finder.html", "td a"),
        ("overview.html?run=told", ".heatmap .cell"),
        ("clusters.html?run=told", ".scatter .dot"),
        ("findings.html?run=told", ".claims td"),
        ("compare.html?a=told&b=later", ".heatmap .cell"),
    ],
)
def test_every_page_behind_the_map_fits(
    firefox: Firefox, place: str, page: str, selector: str
) -> None:
    show(firefox, f"{place}/{page}", selector)
    assert firefox.run("return document.documentElement.scrollWidth <= innerWidth")
    firefox.shot(ARTEFACTS / f"firefox-{page.split('.')[0]}-{place[:4]}.png")
