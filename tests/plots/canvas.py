"""What a figure shows and where: every text in pixels, as it is drawn."""

from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import Any
from unittest.mock import patch

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

SLACK = 1.0  # pixels


def draw(figure: Figure) -> Figure:
    """Lay the figure out."""
    FigureCanvasAgg(figure).draw()
    return figure


def texts(figure: Figure) -> list[Text]:
    """Every text that is drawn and can be read."""
    drawn: list[Text] = []
    original = Text.draw

    def record(text: Text, renderer: Any) -> None:
        if text.get_visible() and text.get_text().strip():
            drawn.append(text)
        original(text, renderer)

    with patch.object(Text, "draw", record):
        draw(figure)
    return list(dict.fromkeys(drawn))


def box(artist: Any) -> Bbox:
    """The pixels of an artist."""
    return artist.get_window_extent()


def outside(figure: Figure) -> list[str]:
    """Texts that leave the canvas."""
    canvas = figure.bbox
    return [
        text.get_text()
        for text, own in ((text, box(text)) for text in texts(figure))
        if own.x0 < canvas.x0 - SLACK
        or own.y0 < canvas.y0 - SLACK
        or own.x1 > canvas.x1 + SLACK
        or own.y1 > canvas.y1 + SLACK
    ]


def overlapping(artists: Iterable[Text]) -> Iterator[tuple[str, str]]:
    """Pairs of texts of which one covers a part of the other."""
    for one, other in combinations(artists, 2):
        if _meet(box(one), box(other)):
            yield one.get_text(), other.get_text()


def _meet(one: Bbox, other: Bbox) -> bool:
    wide = min(one.x1, other.x1) - max(one.x0, other.x0)
    high = min(one.y1, other.y1) - max(one.y0, other.y0)
    return wide > SLACK and high > SLACK


def ends_of(panel: Axes) -> list[Text]:
    """The labels below a profile: zero at its left end, and a round number."""
    below = [text for text in panel.texts if text.get_verticalalignment() == "top"]
    return [text for text in below if text.get_horizontalalignment() != "center"]


def read_off(panel: Axes, x: float) -> float:
    """The value at a place of a profile, as a reader finds it by the labels below."""
    zero, number = ends_of(panel)
    begin, end = zero.get_position()[0], number.get_position()[0]
    return float(number.get_text()) * (x - begin) / (end - begin)
