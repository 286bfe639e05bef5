"""The explorer in a real browser: where it runs, what it must never do, and how it is looked at."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from playwright.sync_api import BrowserContext, Locator, Page, expect

from tests.browser.conftest import PATIENCE, Watched, resize, watch

FAULTS = Path(__file__).with_name("faults.js").read_text(encoding="utf-8")
SHOWN = "main:not([aria-busy]) > *"
SETTLED = "body:not(:has([aria-busy='true']))"  # a picture that is being made is dimmed
# The page tells when it changes; Playwright asks twice a second once it has waited a little.
CHANGES = """([selector, patience]) => new Promise((done) => {
  const isThere = () => document.querySelector(selector) !== null;
  if (isThere()) return done();
  const watcher = new MutationObserver(() => { if (isThere()) end(); });
  const end = () => { watcher.disconnect(); done(); };
  watcher.observe(document, { attributes: true, childList: true, subtree: true });
  setTimeout(end, patience);
})"""

# As by a link or the button that goes forward: the page hears of both in the same way.
FOLLOW = """address => {
  history.pushState(null, "", address);
  dispatchEvent(new PopStateEvent("popstate"));
}"""


@dataclass
class Visit:
    """A visitor's tab."""

    place: str
    watched: Watched

    @property
    def page(self) -> Any:
        """The tab itself."""
        return self.watched.page

    def open(self, path: str) -> "Visit":
        """Go to an address and wait for the page."""
        self.page.goto(f"{self.place}{path}")
        return self.wait()

    def follow(self, path: str) -> "Visit":
        """Go on to an address within the document, which draws the page anew."""
        self.page.evaluate(FOLLOW, f"{self.place}{path}")
        return self.wait()

    def wait(self) -> "Visit":
        """Until the page that the address names is shown."""
        self._until(SHOWN)
        self.page.wait_for_selector(SHOWN)
        return self

    def _until(self, selector: str) -> None:
        """Something is there, or it is time to say that it is not."""
        self.page.evaluate(CHANGES, [selector, PATIENCE])

    def at(self, selector: str) -> Locator:
        """Elements of the page."""
        return self.page.locator(selector)

    def cell(self, name: str) -> Locator:
        """One head of the heatmap."""
        return self.page.locator(f"[id='cell-{name}']")

    def choose(self, control: str, value: str) -> None:
        """Pick from a menu."""
        self.page.select_option(f"[id='{control}']", value)
        self.wait()

    def light(self, theme: Literal["light", "dark"]) -> None:
        """Day or night on the visitor's machine: the page is drawn again."""
        self.page.emulate_media(color_scheme=theme)
        self._until(f"html[data-theme={theme}]")
        expect(self.at("html")).to_have_attribute("data-theme", theme)
        self.wait()

    def lights(self) -> Iterator[tuple[str, bool]]:
        """As the page is now lit and the other way, and whether it is the second: only that one
        is drawn again.
        """
        now = self.page.evaluate("document.documentElement.dataset.theme")
        self._until(SETTLED)
        yield now, False
        other = "light" if now == "dark" else "dark"
        self.light(other)
        self._until(SETTLED)
        yield other, True

    def resize(self, width: int) -> "Visit":
        """Make the window as wide as this, and wait for the page that is drawn in it."""
        resize(self.page, width, 900)
        return self.wait()

    def address(self) -> str:
        """Path, settings and state of the view."""
        return str(self.page.evaluate("location.href")).removeprefix(self.place)

    def faults(self) -> list[str]:
        """What somebody who cannot see or point would stumble over."""
        return self.page.evaluate(FAULTS)


@contextmanager
def visiting(tab: BrowserContext | Page, place: str) -> Iterator[Visit]:
    """A tab that must not complain, and must not ask anybody else for anything."""
    watched = watch(tab if isinstance(tab, Page) else tab.new_page())
    yield Visit(place, watched)
    watched.leave()
    assert watched.console == []
    outside = [url for url in watched.requests if not url.startswith((place, "blob:", "data:"))]
    assert outside == []
