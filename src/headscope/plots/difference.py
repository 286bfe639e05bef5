"""What a text loses without some heads: whose attention changes, and what is predicted next.

without L4H2        without L4H5, control    probability of the next token
┌────────────┐      ┌────────────┐           ' the' ████ ██ ████
│ layer·head │      │            │           ' a'   ██ ███ ██
└────────────┘      └────────────┘
"""

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from headscope.plots import MAP, add_axes, add_bar, style
from headscope.theme import ACCENT, FAINT, SECOND

if TYPE_CHECKING:
    from headscope.model.difference import Difference

CELL, LARGEST = 0.28, 3.0  # inches of a head, and of a map
LEFT, TOP, BOTTOM, GAP, BAR = 0.5, 0.55, 0.45, 0.55, 0.08
BARS, ROW = 2.2, 0.3  # inches of the probabilities, and of a token's
HEIGHT = 0.26  # of one bar, of the height of a token's


def draw_difference(difference: "Difference") -> Figure:
    """Maps of the heads whose attention changes, beside the control, and the next tokens."""
    names = [" and ".join(map(str, heads)) for heads in (difference.without, difference.control)]
    maps = [(f"without {names[0]}", difference.moved)]
    if difference.control_moved is not None:
        maps.append((f"without {names[1]} (control)", difference.control_moved))
    layers, heads = difference.moved.shape
    cell = min(CELL, LARGEST / max(layers, heads))
    across, high = max(heads * cell, 1.4), layers * cell
    tall = max(high, ROW * len(difference.next_tokens))
    bars = LEFT + BARS + GAP if difference.next_tokens else 0
    wide = len(maps) * (LEFT + across + 0.15) + BAR + GAP + bars
    top = max(float(values.max()) for _, values in maps) or 1.0
    with style("difference"):
        figure = Figure(figsize=(wide, tall + TOP + BOTTOM))
        base = BOTTOM + tall - high
        left = LEFT
        for title, values in maps:
            axes = add_axes(figure, left, base, across, high)
            axes.imshow(values, cmap=MAP, vmin=0, vmax=top, aspect="auto")
            axes.set_title(title, fontsize="medium")
            axes.set(xlabel="head", ylabel="layer" if left == LEFT else "")
            axes.set_yticks(range(layers), [str(layer) for layer in difference.change])
            for axis in (axes.xaxis, axes.yaxis):
                axis.set_major_locator(MaxNLocator(8, integer=True))
            left += across + LEFT + 0.15
        left -= LEFT
        colors = ScalarMappable(Normalize(0, top), MAP)
        bar = add_bar(figure, colors, (left, base, BAR, high))
        bar.ax.set_title("moved", fontsize="small")
        if difference.next_tokens:
            box = (left + BAR + GAP + LEFT, BOTTOM, BARS, tall)
            _draw_next(add_axes(figure, *box), difference, names)
    return figure


def _draw_next(axes: Axes, difference: "Difference", names: list[str]) -> None:
    """Three bars for every token: with all heads, without some, and in the control."""
    tokens = difference.next_tokens
    places = np.arange(len(tokens))
    series = [
        ("all heads", FAINT, [token.plain for token in tokens]),
        (f"without {names[0]}", ACCENT, [token.without for token in tokens]),
        (f"without {names[1]}", SECOND, [token.control for token in tokens]),
    ]
    for number, (name, color, values) in enumerate(series):
        if None not in values:
            axes.barh(places + (number - 1) * HEIGHT, values, HEIGHT, color=color, label=name)
    axes.set_yticks(places, [repr(token.token) for token in tokens])
    axes.invert_yaxis()
    axes.set_title("probability of the next token", fontsize="medium")
    axes.legend(fontsize="small", loc="lower right")
