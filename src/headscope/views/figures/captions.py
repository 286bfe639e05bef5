"""Sentences below a figure, which grows by the room that they take."""

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from headscope.theme import PRINT_FAINT
from headscope.views.figures import points

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MARGIN, _LINE = 0.1, 0.14  # inches
_LETTERS = 19  # of an inch, at the size of the sentences
_SIZE = 7  # points


def add_caption(figure: "Figure", sentences: Sequence[str]) -> None:
    """Write the sentences below everything that the figure has."""
    if not sentences:
        return
    wide, tall = figure.get_size_inches()
    lines = textwrap.wrap(" ".join(sentences), int((wide - 2 * _MARGIN) * _LETTERS))
    below = len(lines) * _LINE + _MARGIN
    whole = tall + below
    for axes in figure.axes:
        box = axes.get_position()
        bottom = (box.y0 * tall + below) / whole
        axes.set_position((box.x0, bottom, box.width, box.height * tall / whole))
    for text in figure.texts:
        across, up = text.get_position()
        text.set_position((across, (up * tall + below) / whole))
    figure.set_size_inches(wide, whole)
    for number, line in enumerate(lines):
        up = (below - (number + 0.5) * _LINE) / whole
        style = {"color": PRINT_FAINT, "size": points(_SIZE)}
        figure.text(_MARGIN / wide, up, line, style, va="center")
