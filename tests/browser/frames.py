"""Pages that show a view in a frame, as hosts do, and the drawing inside read through the frame."""

import html
from dataclasses import dataclass
from functools import partial
from typing import Any

from playwright.sync_api import Frame, Page, Route

from tests.browser.conftest import PIXELS, Watched

HOME = "https://headscope.test/"


@dataclass
class Framed:
    """A view inside a frame of a host's page, and all that either said."""

    host: Page
    frame: Frame
    console: list[str]

    def settle(self) -> None:
        self.frame.evaluate("window.headscope.idle()")

    def lines(self) -> list[dict[str, Any]]:
        """The lines that are drawn now."""
        self.settle()
        return self.frame.evaluate("window.headscope.lines()")

    def scene(self) -> dict[str, Any]:
        """Everything that is drawn now, as shapes."""
        self.settle()
        return self.frame.evaluate("window.headscope.scene()")

    def pixels(self, selector: str, points: list[list[float]]) -> list[list[int]]:
        """Red, green, blue and opacity of a canvas at some places."""
        return self.frame.evaluate(PIXELS, [selector, points])

    def ground(self) -> str:
        """The colour behind the view, as it is computed."""
        self.settle()
        return self.frame.locator(".hs-root").evaluate(
            "root => getComputedStyle(root).backgroundColor"
        )

    def button(self, name: str) -> Any:
        return self.frame.get_by_role("button", name=name, exact=True)


def framed(source: str, attributes: str = "", style: str = "height:600px") -> str:
    """A host's page that holds `source` in a frame made from text."""
    return (
        "<!doctype html><meta charset=utf-8><body>"
        f'<iframe id=view style="width:100%;{style}" {attributes} srcdoc="{html.escape(source)}">'
        "</iframe></body>"
    )


def open_host(watched: Watched, page: str) -> Framed:
    """Open a host's page; its only frame is the view's."""
    watched.page.route(HOME, partial(_answer, page))
    watched.page.goto(HOME)
    element = watched.page.wait_for_selector("iframe")
    assert element is not None
    frame = element.content_frame()
    assert frame is not None
    frame.wait_for_function("window.headscope")
    frame.evaluate("window.headscope.ready")
    return Framed(watched.page, frame, watched.console)


def _answer(page: str, route: Route) -> None:
    route.fulfill(body=page, content_type="text/html")
