"""The neuron view on paper: vectors as strips, then the numbers that lead to each weight."""

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from headscope.theme import POSITIVE, PRINT_FAINT, SIGN_MAP
from headscope.views.figures.fonts import points
from headscope.views.labels import label, short
from headscope.views.neurons import (
    Neurons,
    Parts,
    neuron_order,
    neurons_of,
    pinned_query,
    require_neurons,
    take_apart,
)
from headscope.views.state import chosen_stack

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from headscope.model.trace import Trace
    from headscope.views.payload import Scores
    from headscope.views.state import ViewState

_PITCH = 0.19  # inches from row to row
_WORD, _STRIP, _FIGURE, _BAR, _GAP = 1.2, 1.5, 0.62, 0.7, 0.12
_COLORS = LinearSegmentedColormap.from_list("sign", SIGN_MAP)


def draw(trace: "Trace", state: "ViewState", _: "Scores | None") -> Figure:
    """From the query of one token to its weights, a row per key token."""
    require_neurons(trace)
    stack = chosen_stack(trace, state.stack)
    neurons = neurons_of(stack, state.layer, state.head)
    query = pinned_query(stack, state.pinned)
    parts = take_apart(neurons, query)
    order = neuron_order(parts, state.neurons)
    columns = _columns(neurons, parts, query)
    wide = _WORD + 2 * (_STRIP + _GAP) + len(columns) * _FIGURE + _FIGURE + _BAR + 0.2
    tall = (len(parts.dots) + 5) * _PITCH
    figure = Figure(figsize=(wide, tall))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, wide), ylim=(tall, 0))
    axes.axis("off")
    _draw_vectors(axes, neurons, parts, query, order)
    _draw_words(
        axes, [label(token) for token in stack.keys.tokens], label(stack.queries.tokens[query])
    )
    _draw_numbers(axes, columns, parts)
    title = f"{trace.model} · layer {state.layer} · head {state.head}"
    axes.text(0.1, 0.5 * _PITCH, title, color=PRINT_FAINT, va="center")
    return figure


def _columns(neurons: Neurons, parts: Parts, query: int) -> list[tuple[str, np.ndarray]]:
    """The steps this model has, by name."""
    columns = [("q·k", parts.dots), (f"× {neurons.scaling:.4g}", parts.scaled)]
    if neurons.softcap is not None:
        columns.append((f"cap {neurons.softcap:g}", parts.capped))
    if neurons.bias is not None:
        columns.append(("+ bias", neurons.bias[query]))
    return columns


def _draw_vectors(
    axes: "Axes", neurons: Neurons, parts: Parts, query: int, order: np.ndarray
) -> None:
    left, right = _WORD + _GAP, _WORD + _STRIP + 2 * _GAP
    _strip(axes, neurons.query[query][None, order], left, _row(-1))
    _strip(axes, neurons.key[:, order], left, _row(0))
    _strip(axes, parts.products[:, order], right, _row(0))
    axes.text(
        left, _row(-2), "query, then keys", color=PRINT_FAINT, fontsize=points(7), va="center"
    )
    axes.text(right, _row(-2), "query × key", color=PRINT_FAINT, fontsize=points(7), va="center")


def _strip(axes: "Axes", values: np.ndarray, left: float, top: float) -> None:
    """Vector cells, not an image, so that the figure scales; saturation as on screen."""
    most = np.abs(values).max(initial=0.0) or 1.0
    shade = np.sign(values) * np.sqrt(np.abs(values) / most)
    across = np.linspace(left, left + _STRIP, values.shape[1] + 1)
    for row, cells in enumerate(shade):
        edges = [top + row * _PITCH - 0.38 * _PITCH, top + row * _PITCH + 0.38 * _PITCH]
        axes.pcolormesh(across, edges, cells[None], cmap=_COLORS, vmin=-1, vmax=1, linewidth=0)


def _draw_words(axes: "Axes", keys: list[str], query: str) -> None:
    axes.text(_WORD, _row(-1), short(query, 18), ha="right", va="center", weight="bold")
    for row, text in enumerate(keys):
        axes.text(_WORD, _row(row), short(text, 18), ha="right", va="center")


def _draw_numbers(axes: "Axes", columns: list[tuple[str, np.ndarray]], parts: Parts) -> None:
    start = _WORD + 2 * (_STRIP + _GAP)
    named = [*columns, ("weight", parts.weights)]
    for column, (name, values) in enumerate(named):
        edge = start + (column + 1) * _FIGURE
        axes.text(
            edge, _row(-2), name, ha="right", va="center", color=PRINT_FAINT, fontsize=points(7)
        )
        for row, value in enumerate(values):
            text = "masked" if np.isneginf(value) else f"{value:.3f}".replace("-", "−")
            axes.text(edge, _row(row), text, ha="right", va="center", fontsize=points(7))
    left = start + len(named) * _FIGURE + 0.08
    rows = [_row(row) for row in range(len(parts.weights))]
    axes.barh(rows, _BAR * parts.weights, height=0.5 * _PITCH, left=left, color=POSITIVE)
    if parts.sink > 0:
        text = f"learned sink: {parts.sink:.3f}"
        axes.text(
            left,
            _row(len(rows)),
            text,
            ha="right",
            va="center",
            fontsize=points(7),
            color=PRINT_FAINT,
        )


def _row(index: int) -> float:
    return (index + 3.5) * _PITCH
