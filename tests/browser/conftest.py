"""A real Chromium for all browser tests, and pages that report what they must not do."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import (
    Browser,
    BrowserContext,
    Page,
    ViewportSize,
    expect,
    sync_playwright,
)

from headscope.views import View

# Reading a copy: a canvas that is read becomes slow, and Chromium says so.
PIXELS = """([selector, points]) => {
  const canvas = document.querySelector(selector);
  const copy = document.createElement("canvas");
  [copy.width, copy.height] = [canvas.width, canvas.height];
  const pen = copy.getContext("2d", { willReadFrequently: true });
  pen.drawImage(canvas, 0, 0);
  const scale = canvas.width / canvas.clientWidth;
  return points.map(([x, y]) => Array.from(pen.getImageData(x * scale, y * scale, 1, 1).data));
}"""
DESK: ViewportSize = {"width": 1200, "height": 800}
PATIENCE = 30_000  # milliseconds; a busy machine is slow, not wrong
expect.set_options(timeout=PATIENCE)
COLOURS = ["color-contrast", "link-in-text-block"]  # the rules of axe-core that look at colours
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser")  # the fastest first
ARTEFACTS = Path(__file__).parents[1] / "artefacts"


@dataclass
class Watched:
    """A page, and everything it said or asked for."""

    page: Page
    console: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def listen(self) -> None:
        """Hear everything from now on."""
        for event, hear in self._ears.items():
            self.page.on(event, hear)  # pyright: ignore[reportArgumentType, reportCallIssue]

    def leave(self) -> None:
        """Hear nothing more: the tab is for the next visitor."""
        for event, hear in self._ears.items():
            self.page.remove_listener(event, hear)

    @cached_property
    def _ears(self) -> dict[str, Callable[[Any], None]]:
        return {
            "console": lambda message: self.console.append(message.text),
            "pageerror": lambda error: self.console.append(str(error)),
            "request": lambda request: self.requests.append(request.url),
        }

    def evaluate(self, script: str, argument: Any = None) -> Any:
        """The value of a script that runs, and is followed by, when nothing is left to draw."""
        self.settle()
        value = self.page.evaluate(script, argument)
        self.settle()
        return value

    def settle(self) -> None:
        """Wait until what is shown is what the state says."""
        self.page.evaluate("window.headscope.idle()")

    def state(self) -> dict[str, Any]:
        """What the view shows now."""
        return self.page.evaluate("window.headscope.state()")

    def set(self, **settings: Any) -> None:
        """Change the state as a script on the page would."""
        self.evaluate("settings => window.headscope.set(settings)", settings)

    def resize(self, width: int, height: int) -> None:
        """Make the window another size, and wait until the view is drawn in it."""
        resize(self.page, width, height)
        self.settle()

    def address(self) -> str:
        """Where the page says that it is: Playwright is told of changes only later."""
        return self.page.evaluate("location.href")

    def lines(self) -> list[dict[str, Any]]:
        """The lines that are drawn now."""
        self.settle()
        return self.page.evaluate("window.headscope.lines()")

    def pixels(self, selector: str, points: list[list[float]]) -> list[list[int]]:
        """Red, green, blue and opacity of a canvas at some places."""
        return self.page.evaluate(PIXELS, [selector, points])

    def shot(self, name: str) -> None:
        """Keep a picture for people to look at, where one is wanted: HEADSCOPE_PICTURES=1."""
        if os.environ.get("HEADSCOPE_PICTURES"):
            ARTEFACTS.mkdir(exist_ok=True)
            self.page.screenshot(path=ARTEFACTS / f"{name}.png", full_page=True)

    def barriers(self, *, of_colours: bool = False) -> list[str]:
        """Serious and critical faults that axe-core finds, with the first element of each and why.

        Only the faults of colours are asked for where nothing but the theme is another.
        """
        options = {"resultTypes": ["violations"]} | ({"runOnly": COLOURS} if of_colours else {})
        script = "0" if self.page.evaluate("'axe' in window") else AXE_SCRIPT
        faults = Axe(script).run(self.page, options=options).response["violations"]
        return [
            f"{fault['id']}: {fault['help']} ({len(fault['nodes'])}): "
            f"{fault['nodes'][0]['html'][:160]}: {fault['nodes'][0]['failureSummary']}"
            for fault in faults
            if fault["impact"] in ("serious", "critical")
        ]

    def chip(self, group: str, number: int) -> Any:
        """One numbered button of a row."""
        return self.page.get_by_role("group", name=group).locator(f"[data-number='{number}']")

    def token(self, side: str, index: int) -> Any:
        """A token on the attending (q) or attended (k) side."""
        return self.page.locator(f"[data-side='{side}'] .hs-token").nth(index)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """One browser for the whole session."""
    with sync_playwright() as playwright:
        path = next(filter(None, map(shutil.which, BROWSERS)), None)
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def fresh_context(chromium: Browser) -> Iterator[BrowserContext]:
    context = chromium.new_context(viewport=DESK, accept_downloads=True)
    context.set_default_timeout(PATIENCE)
    yield context
    context.close()


@pytest.fixture
def context(chromium: Browser) -> Iterator[BrowserContext]:
    """A fresh context, so that nothing is carried from test to test."""
    with fresh_context(chromium) as context:
        yield context


@pytest.fixture(scope="session")
def kept_tab(chromium: Browser) -> Iterator[Page]:
    """A tab that stays: another one is another process, which reads every script anew."""
    with fresh_context(chromium) as context:
        yield context.new_page()


@pytest.fixture
def tab(kept_tab: Page) -> Iterator[Page]:
    """The tab that stays, as if it were new: nothing is carried from test to test."""
    yield kept_tab
    for other in kept_tab.context.pages:
        if other != kept_tab:
            other.close()
    kept_tab.unroute_all()
    kept_tab.evaluate("try { localStorage.clear() } catch {}")
    kept_tab.set_viewport_size(DESK)
    kept_tab.emulate_media(
        media="null", color_scheme="light", forced_colors="none", reduced_motion="no-preference"
    )


@pytest.fixture
def watched(tab: Page) -> Iterator[Watched]:
    """The tab, heard until the test ends."""
    watched = watch(tab)
    yield watched
    watched.leave()


@pytest.fixture
def open_page(tab: Page, tmp_path: Path) -> Iterator[Callable[..., Watched]]:
    """Open a view's page from a file; it must not complain about or fetch anything."""
    opened: list[Watched] = []

    def open_view(view: View | str, hash: str = "", *, more: bool = True) -> Watched:
        watched = watch(tab.context.new_page() if opened else tab)
        opened.append(watched)
        path = tmp_path / f"view-{len(opened)}.html"
        path.write_text(view if isinstance(view, str) else view.html(), encoding="utf-8")
        watched.page.goto(f"file://{path}{'#' + hash if hash else ''}")
        watched.page.evaluate("window.headscope.ready")
        watched.settle()
        if more:  # the second step of the controls
            watched.page.evaluate("document.querySelector('.hs-more').click()")
            watched.settle()
        return watched

    yield open_view
    for watched in opened:
        watched.leave()
        assert watched.console == []
        assert [url for url in watched.requests if not url.startswith(f"file://{tmp_path}")] == []


def resize(page: Page, width: int, height: int) -> None:
    """Make the window another size; when this returns, the page has been told."""
    page.set_viewport_size({"width": width, "height": height})
    page.wait_for_function("([x, y]) => innerWidth === x && innerHeight === y", arg=[width, height])
    page.evaluate("() => new Promise(requestAnimationFrame)")  # after the event


def watch(page: Page) -> Watched:
    """Listen to a page before anything is loaded."""
    watched = Watched(page)
    watched.listen()
    return watched
