"""What a figure shows and where: every text and box in pixels, as it is drawn."""

from collections.abc import Iterable, Iterator
from itertools import combinations

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
    """Every text that can be read."""
    shown = []
    for text in figure.findobj(Text):
        hidden = not text.get_visible() or not text.get_text().strip()
        if not hidden and _is_shown(text):
            shown.append(text)
    return shown


def _is_shown(text: Text) -> bool:
    """Tick labels of axes that are off, or out of the view, are not drawn."""
    axes = text.axes
    if not isinstance(axes, Axes):
        return True
    ticks = [*axes.get_xticklabels(), *axes.get_yticklabels()]
    if axes.axison and text in ticks:
        return _in_view(axes, text)
    is_part = text in ticks or text in (axes.xaxis.label, axes.yaxis.label)
    return axes.axison or not is_part


def _in_view(axes: Axes, text: Text) -> bool:
    along, limits = (0, axes.get_xlim()) if text in axes.get_xticklabels() else (1, axes.get_ylim())
    return min(limits) - 1e-9 <= text.get_position()[along] <= max(limits) + 1e-9


def box(artist: object) -> Bbox:
    """The pixels of an artist."""
    return artist.get_window_extent()  # type: ignore[attr-defined]


def outside(figure: Figure) -> list[str]:
    """Texts that leave the canvas."""
    draw(figure)
    canvas = figure.bbox
    found = []
    for text in texts(figure):
        own = box(text)
        if (
            own.x0 < canvas.x0 - SLACK or own.y0 < canvas.y0 - SLACK
            or own.x1 > canvas.x1 + SLACK or own.y1 > canvas.y1 + SLACK
        ):  # fmt: skip
            found.append(text.get_text())
    return found


def overlapping(artists: Iterable[Text]) -> Iterator[tuple[str, str]]:
    """Pairs of texts of which one covers a part of the other."""
    for one, other in combinations(artists, 2):
        if _meet(box(one), box(other)):
            yield one.get_text(), other.get_text()


def _meet(one: Bbox, other: Bbox) -> bool:
    wide = min(one.x1, other.x1) - max(one.x0, other.x0)
    high = min(one.y1, other.y1) - max(one.y0, other.y0)
    return wide > SLACK and high > SLACK
