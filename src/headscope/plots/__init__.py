"""Figures that know nothing of studies.

How every figure looks is said here: quiet, readable in print, safe for colour-blind readers. What a
reader has set in matplotlib's rcParams, by hand or in a matplotlibrc, stays as it is.
"""

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colorbar import Colorbar
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont
from matplotlib.image import imsave

from headscope.errors import RunError
from headscope.theme import DIVERGING, FAINT, INK, PAPER, SEQUENTIAL, UNKNOWN
from headscope.views.figures import drawing_with, dress, untouched

FORMATS = ("svg", "png", "pdf")
NARROWEST, WIDEST = 3.2, 40  # inches of a figure
NARROW = 4.5  # below this a legend has one entry on a line
_WIDTH: ContextVar[float | None] = ContextVar("width", default=None)
# The colours of the explorer's maps; unknown values have a grey of their own.
MAP = LinearSegmentedColormap.from_list("sequential", SEQUENTIAL.light).with_extremes(bad=UNKNOWN)
LAYERS = LinearSegmentedColormap.from_list("layers", SEQUENTIAL.light[2:])  # of points on paper
SIGNED = LinearSegmentedColormap.from_list("diverging", DIVERGING.light).with_extremes(bad=UNKNOWN)
DOTS = 200  # of a PNG per inch
_STYLE = {
    "font.family": ["sans-serif"],
    "font.sans-serif": ["Helvetica", "Arial", "DejaVu Sans"],
    "font.size": 9.0,
    "axes.titleweight": "regular",
    "axes.titlelocation": "left",
    "axes.edgecolor": FAINT,
    "axes.linewidth": 0.6,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "legend.frameon": False,
    "svg.fonttype": "none",  # text stays text: selectable, and in the page's own font
    "pdf.fonttype": 42,  # whole fonts, which journals ask for
    "figure.dpi": 100,
}
_FURTHER: dict[str, dict[str, Any]] = {
    "png": {"dpi": DOTS, "facecolor": PAPER},
    "pdf": {"metadata": {"CreationDate": None}},
}
_NOT_IN_XML = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff]")


@contextmanager
def style(name: str, font: str | None = None, width: float | None = None) -> Iterator[None]:
    """Draw in the house style, or with what rcParams say instead.

    The name makes the ids inside an SVG its own and reproducible. `font` is a family's name,
    `width` the inches that figures lay themselves out for, where it is not the width they choose.
    """
    settings = {**untouched(_STYLE), "svg.hashsalt": name}
    if font is not None:
        settings["font.family"] = [font]
    token = _WIDTH.set(width)
    try:
        with drawing_with(settings):
            yield
    finally:
        _WIDTH.reset(token)


def require_font(family: str) -> None:
    """Refuse a font that is not on this machine: matplotlib would say so for every word."""
    try:
        findfont(FontProperties(family=[family]), fallback_to_default=False)
    except ValueError:
        raise RunError(
            f"There is no font {family!r} on this machine; install it, or give another, such as "
            "DejaVu Serif."
        ) from None


def page_width(natural: float) -> float:
    """The inches that a figure lays itself out for: its natural ones if none are asked for."""
    width = _WIDTH.get()
    return natural if width is None else width


def fit_columns(most: int, natural: float, least: float) -> int:
    """How many panels stand side by side, given their largest number and least width in inches."""
    room = page_width(most * natural)
    return most if room >= most * natural else max(1, min(most, int(room / least)))


def add_axes(figure: Figure, left: float, bottom: float, wide: float, high: float) -> Axes:
    """Axes at a place given in inches."""
    whole = figure.get_size_inches()
    return figure.add_axes((left / whole[0], bottom / whole[1], wide / whole[0], high / whole[1]))


def add_bar(
    figure: Figure, image: ScalarMappable, place: tuple[float, float, float, float], label: str = ""
) -> Colorbar:
    """A bar that says what the colours mean; left, bottom, width and height are in inches."""
    bar = figure.colorbar(image, cax=add_axes(figure, *place), label=label)
    bar.outline.set_visible(False)  # pyright: ignore[reportCallIssue]
    bar.ax.tick_params(labelsize="small", length=2)
    return bar


def to_svg(figure: Figure) -> str:
    """The figure as an <svg> element."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    return _NOT_IN_XML.sub("\ufffd", text[text.index("<svg") :])


def render(
    figure: Figure, width: float | None = None, formats: Sequence[str] = FORMATS
) -> dict[str, bytes]:
    """The figure as an SVG file and in other formats.

    A figure that did not lay itself out for the `width` in inches is scaled to it.
    """
    wide, high = figure.get_size_inches()
    if width is not None and abs(wide - width) > 0.005:
        figure.set_size_inches(width, high * width / wide)
    files = {"svg": to_svg(figure).encode("utf-8")}
    further = [name for name in _FURTHER if name in formats]
    if further:
        dress(figure)  # unlike an SVG the others need the shapes of all letters
        figure.set_layout_engine("none")  # it is found: to find it again takes a third as long
    for name in further:
        buffer = io.BytesIO()
        figure.savefig(buffer, format=name, **_FURTHER[name])
        files[name] = buffer.getvalue()
    return files


def thumbnail(values: xr.DataArray) -> bytes:
    """A PNG with one pixel per head, layers downwards; unknown values are transparent."""
    cells = values.transpose("layer", "head").values.astype(float)
    known = cells[np.isfinite(cells)]
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
    low = min(low, 0.0)
    buffer = io.BytesIO()
    masked = np.ma.masked_invalid(cells)
    top = high if high > low else low + 1.0
    imsave(buffer, masked, cmap=MAP, vmin=low, vmax=top, format="png")
    return buffer.getvalue()
