"""A line of attention is the same on screen and on paper: opacity, width and curve."""

import re
from collections.abc import Callable, Iterator
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.collections import PathCollection
from playwright.sync_api import BrowserContext

from headscope.model.trace import Trace
from headscope.views import View, head_view, model_view, neuron_view
from headscope.views.bundle import static
from headscope.views.figures import figure
from headscope.views.lines import THUMBNAIL, opacity, width
from tests.browser.conftest import Watched
from tests.references.traces import random_trace

pytestmark = pytest.mark.browser
SVG = "{http://www.w3.org/2000/svg}"
VISIBLE = 1 / 255  # fainter lines are not drawn on screen

VIEWS: dict[str, View] = {
    "head": head_view(random_trace(), layer=1, heads=[2], mass=1.0),
    "heads that lie over each other": head_view(random_trace(), layer=1, mass=1.0),
    "thumbnails": model_view(random_trace(), thumbnail="lines", enlarged=False, hide=(), mass=1.0),
    "neuron": neuron_view(random_trace(), layer=2, head=1, pinned=7),
}


def test_the_laws_are_equal(context: BrowserContext) -> None:
    law = context.new_page().evaluate(
        """async ([text, weights]) => {
          const law = await import("data:text/javascript," + encodeURIComponent(text));
          return {
            opacity: [1, 2, 5].map((heads) => weights.map((one) => law.opacity(one, heads))),
            width: weights.map(law.lineWidth),
            thumbnail: law.THUMBNAIL,
          };
        }""",
        [static("draw/line.js"), weights := [-0.1, 0.0, 0.2, 0.64, 1.0, 1.5]],
    )
    for heads, values in zip((1, 2, 5), law["opacity"], strict=True):
        assert values == pytest.approx(opacity(np.array(weights), heads))
    assert law["width"] == pytest.approx(width(np.array(weights)))
    assert law["thumbnail"] == THUMBNAIL


@pytest.mark.parametrize("name", VIEWS)
def test_printed_and_drawn_lines_look_alike(open_page: Callable[..., Watched], name: str) -> None:
    drawn = sorted(drawn_lines(open_page(VIEWS[name]).evaluate("window.headscope.printPage()")))
    printed = sorted(printed_lines(VIEWS[name]))
    assert len(drawn) == len(printed) > 5
    assert np.array(drawn) == pytest.approx(np.array(printed), abs=2e-3)


def blank_trace() -> Trace:
    """Three heads of noise, and one that looks at nothing but the first token."""
    weights = random_trace().weights[0].numpy().copy()
    weights[2] = 0
    weights[2, :, 0] = 1
    return Trace.from_weights(weights[None], random_trace().tokens)


CAVEATS = {
    "head": (head_view(blank_trace(), layer=0, hide="first"), "First token hidden: "),
    "a text": (head_view(blank_trace(), layer=0, hide="first", layout="text"), "First token"),
    "model": (model_view(blank_trace(), hide="first", enlarged=False), "First token hidden: "),
    "matrices": (model_view(blank_trace(), hide="first", thumbnail="matrix"), "First token"),
    "spans": (
        head_view(blank_trace(), layer=0, spans=["2-4 the, animal"], attended="the, animal"),
        "Only what looks at “the, animal”.",
    ),
}


@pytest.mark.parametrize("name", CAVEATS)
def test_screen_and_paper_say_alike_what_they_leave_out(
    open_page: Callable[..., Watched], name: str
) -> None:
    view, beginning = CAVEATS[name]
    page = open_page(view)
    drawn = [shape.get("text", "") for shape in page.evaluate("window.headscope.scene().shapes")]
    caption = " ".join(drawn[next(i for i, text in enumerate(drawn) if beginning in text) :])
    printed = figure(view.trace, view.kind, view.state)
    words = " ".join(text.get_text() for text in printed.texts)
    assert words.endswith(caption) and caption.endswith(".")
    if name in ("model", "matrices"):
        assert {"100 %", "hidden"} <= set(drawn)
        reasons = [text.get_text() for axes in printed.axes for text in axes.texts]
        assert reasons == ["100 %\nhidden"]


def drawn_lines(page: str) -> Iterator[tuple[float, ...]]:
    """Form, opacity and width of every line in the picture that a page prints."""
    root = ElementTree.fromstring(page[page.index("<svg") :])
    for node in root.iter(f"{SVG}path"):
        alpha = node.get("stroke-opacity")
        if alpha:
            numbers = [float(one) for one in re.findall(r"-?[\d.]+", node.get("d") or "")]
            points = np.array(numbers).reshape(4, 2)
            yield *form(points), float(alpha), float(node.get("stroke-width") or 0)


def printed_lines(view: View) -> Iterator[tuple[float, ...]]:
    """The same of a figure."""
    for axes in figure(view.trace, view.kind, view.state).axes:
        for collection in axes.collections:
            if isinstance(collection, PathCollection):
                yield from lines_of(collection)


def lines_of(collection: PathCollection) -> Iterator[tuple[float, ...]]:
    """The lines that are strong enough to be on screen."""
    colors = np.asarray(collection.get_edgecolor())
    widths = np.atleast_1d(collection.get_linewidth())
    for path, color, wide in zip(collection.get_paths(), colors, widths, strict=True):
        if color[3] >= VISIBLE:
            yield *form(np.asarray(path.vertices)), float(color[3]), float(wide)


def form(points: np.ndarray) -> list[float]:
    """Both control points as shares of the way from end to end, the same at any size.

    A line that goes nowhere on one axis has its control points there, too.
    """
    way = points[3] - points[0]
    shares = [np.where(np.abs(way) > 1e-6, (one - points[0]) / np.where(way, way, 1), 0.0)
              for one in points[1:3]]  # fmt: skip
    return [round(float(share), 2) for share in np.ravel(shares)]
