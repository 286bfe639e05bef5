"""Attention of single heads over a short text: queries left, keys right, a line for each weight."""

from collections.abc import Sequence

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

from headscope.theme import ACCENT, INK

WEAK = 0.02  # lines fainter than this cannot be seen
LINE = 1.1
TOKEN = "x-small"


def draw_ribbons(panels: Sequence[tuple[str, xr.DataArray]], columns: int = 4) -> Figure:
    """One small drawing per head; every panel has the same tokens."""
    columns = min(columns, len(panels))
    rows = -(-len(panels) // columns)
    tokens = [str(text).partition(" ")[2] for text in panels[0][1]["query"].values]
    lines = max(title.count("\n") for title, _ in panels)
    high = 0.155 * len(tokens) + 0.15 * lines + 0.5
    figure = Figure(figsize=(2.5 * columns, high * rows), layout="constrained")
    grid = np.atleast_1d(figure.subplots(rows, columns)).ravel()
    for axes in grid:
        axes.axis("off")
    for axes, (title, weights) in zip(grid, panels, strict=False):
        _draw(axes, title, weights.transpose("query", "key").values, tokens)
    return figure


def _draw(axes: Axes, title: str, weights: np.ndarray, tokens: Sequence[str]) -> None:
    draw_lines(axes, weights, ACCENT)
    write_tokens(axes, title, tokens)


def draw_lines(axes: Axes, weights: np.ndarray, colour: str) -> None:
    """A line from every query to every key, the darker the larger the weight."""
    pairs = np.argwhere(weights > WEAK)
    lines = [np.array([(0, query), (1, key)]) for query, key in pairs]
    colours = [to_rgba(colour, float(min(1, weights[query, key]))) for query, key in pairs]
    axes.add_collection(LineCollection(lines, colors=colours, linewidths=LINE))


def write_tokens(axes: Axes, title: str, tokens: Sequence[str]) -> None:
    """The tokens on both sides, and the title above."""
    for place, token in enumerate(tokens):
        text = token.strip()
        axes.text(-0.04, place, text, ha="right", va="center", fontsize=TOKEN, color=INK)
        axes.text(1.04, place, text, ha="left", va="center", fontsize=TOKEN, color=INK)
    axes.set_xlim(-0.75, 1.75)
    axes.set_ylim(len(tokens) - 0.4, -0.6)
    axes.set_title(title, fontsize="medium", loc="center")
