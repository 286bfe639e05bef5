"""How every figure looks, in one place: quiet, readable in print, safe for colour-blind readers."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from headscope.files import write_atomically

INK = "#24292f"  # replaced by the page's text colour when a figure is set into a page
FAINT = "#8b949e"
ACCENT = "#2f6f9f"
SECOND = "#c2571a"
MAP = "cividis"  # perceptually even, the same to readers with and without colour vision

_STYLE = {
    "font.family": "sans-serif",
    "font.sans-serif": ["Helvetica", "Arial", "DejaVu Sans"],
    "font.size": 9.0,
    "axes.titlesize": 10.0,
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
    "figure.dpi": 100,
}


@contextmanager
def style(name: str) -> Iterator[None]:
    """Draw in the house style; the name makes the ids inside an SVG its own and reproducible."""
    settings: dict[Any, Any] = {**_STYLE, "svg.hashsalt": name}
    with mpl.rc_context(settings):
        yield


def to_svg(figure: Figure) -> str:
    """The figure as an <svg> element."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]


def save(figure: Figure, folder: Path, name: str) -> str:
    """Write NAME.svg and NAME.png; return the SVG."""
    svg = to_svg(figure)
    with write_atomically(folder / f"{name}.svg") as temporary:
        temporary.write_text(svg, encoding="utf-8")
    figure.set_layout_engine("none")  # the layout is found: finding it again takes a third as long
    with write_atomically(folder / f"{name}.png") as temporary:
        figure.savefig(temporary, format="png", dpi=200, facecolor="white")
    return svg
