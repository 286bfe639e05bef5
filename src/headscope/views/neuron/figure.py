"""The neuron view on paper: queries, lines to the keys, vectors as strips, how they add up, and the
numbers that lead to each weight."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.colors import LinearSegmentedColormap, to_rgb
from matplotlib.figure import Figure

from headscope.theme import POSITIVE, PRINT_FAINT, PRINT_RULE, SIGN_MAP, head_color
from headscope.views.figures import points
from headscope.views.figures.curves import draw_curves
from headscope.views.labels import label, short
from headscope.views.lines import curves, opacity
from headscope.views.state import chosen_stack
from headscope.views.weights import (
    Neurons,
    Parts,
    key_order,
    neuron_order,
    neurons_of,
    pinned_query,
    require_neurons,
    take_apart,
)
from headscope.wording import model_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from headscope.model.trace import Trace
    from headscope.views.neuron.state import NeuronState
    from headscope.views.payload import Scores

_PITCH = 0.19  # inches from row to row
_QUERY, _OWN, _LINK = 1.0, 0.7, 0.75  # the tokens that look, their queries, the lines
_KEYS = _QUERY + _OWN + _LINK + 0.16  # where the tokens that are looked at begin
_WORD, _STRIP, _SUM, _FIGURE, _BAR, _GAP = 1.0, 1.3, 0.8, 0.62, 0.7, 0.12
_BODY = _KEYS + _WORD  # where the vectors begin
_STEPS = _BODY + 2 * (_STRIP + _GAP) + _GAP + _SUM  # where the numbers begin
_COLORS = LinearSegmentedColormap.from_list("sign", SIGN_MAP)


def draw(trace: "Trace", state: "NeuronState", _: "Scores | None") -> Figure:
    """From the query of one token to its weights, a row per key token."""
    require_neurons(trace)
    stack = chosen_stack(trace, state.stack)
    neurons = neurons_of(stack, state.layer, state.head)
    query = pinned_query(stack, state.pinned)
    parts = take_apart(neurons, query)
    order = neuron_order(parts, state.neurons)
    keys = key_order(parts, state.sort)
    neurons = replace(
        neurons,
        key=neurons.key[keys],
        bias=None if neurons.bias is None else neurons.bias[:, keys],
    )
    parts = take_apart(neurons, query)
    columns = _columns(neurons, parts, query)
    wide = _STEPS + len(columns) * _FIGURE + _FIGURE + _BAR + 0.2
    tall = (max(parts.dots.size, len(stack.queries)) + 5) * _PITCH
    figure = Figure(figsize=(wide, tall))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, wide), ylim=(tall, 0))
    axes.axis("off")
    _draw_queries(axes, neurons, stack.queries.labels, query, order)
    _draw_links(axes, parts, query, head_color(state.head))
    _draw_vectors(axes, neurons, parts, query, order)
    _draw_sums(axes, parts.products[:, order] * neurons.scaling, parts.scores)
    _draw_words(axes, [stack.keys.labels[key] for key in keys], stack.queries.labels[query])
    _draw_numbers(axes, columns, parts)
    title = f"{model_title(trace.model)} · layer {state.layer} · head {state.head}"
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


def _draw_queries(
    axes: "Axes", neurons: Neurons, tokens: Sequence[str], query: int, order: np.ndarray
) -> None:
    """Every token that looks, with its query; the chosen one bold."""
    _heading(axes, _QUERY + 0.06, "queries")
    _strip(axes, neurons.query[:, order], _QUERY + 0.06, _row(0), _most(neurons), _OWN)
    for row, token in enumerate(tokens):
        weight = "bold" if row == query else "normal"
        shown = short(label(token), 15)
        axes.text(_QUERY, _row(row), shown, ha="right", va="center", weight=weight)


def _draw_links(axes: "Axes", parts: Parts, query: int, color: str) -> None:
    """The weights as lines from the chosen token to the keys."""
    left, right = _QUERY + _OWN + 0.1, _KEYS - 0.04
    seen = np.flatnonzero(opacity(parts.weights) >= 1 / 255)
    starts = np.column_stack([np.full(len(seen), left), np.full(len(seen), _row(query))])
    ends = np.column_stack([np.full(len(seen), right), _row(seen)])
    draw_curves(axes, curves(starts, ends), to_rgb(color), parts.weights[seen])


def _draw_vectors(
    axes: "Axes", neurons: Neurons, parts: Parts, query: int, order: np.ndarray
) -> None:
    left, right = _BODY + _GAP, _BODY + _STRIP + 2 * _GAP
    vectors, products = _most(neurons), float(np.abs(parts.products).max(initial=0.0)) or 1.0
    _strip(axes, neurons.query[query][None, order], left, _row(-1), vectors)
    _strip(axes, neurons.key[:, order], left, _row(0), vectors)
    _strip(axes, parts.products[:, order], right, _row(0), products)
    _heading(axes, left, f"query, then keys: ±{vectors:.2g}")
    _heading(axes, right, f"query × key: ±{products:.2g}")


def _draw_sums(axes: "Axes", steps: np.ndarray, scores: np.ndarray) -> None:
    """The products added up from left to right; all rows share a scale."""
    sums = np.concatenate([np.zeros((len(steps), 1)), np.cumsum(steps, 1)], 1)  # key dim+1
    low, high = min(0.0, float(sums.min())), max(0.0, float(sums.max()))
    left = _BODY + 2 * (_STRIP + _GAP) + _GAP
    across = np.linspace(left, left + _SUM, sums.shape[1])
    tall = 0.7 * _PITCH / ((high - low) or 1.0)
    _heading(axes, left, "adding up")
    for key, sum_ in enumerate(sums):
        bottom = _row(key) + 0.35 * _PITCH
        zero = bottom - (0 - low) * tall
        axes.plot([left, left + _SUM], [zero, zero], color=PRINT_RULE, linewidth=0.4)
        color = PRINT_FAINT if np.isneginf(scores[key]) else POSITIVE
        axes.plot(across, bottom - (sum_ - low) * tall, color=color, linewidth=0.8)


def _most(neurons: Neurons) -> float:
    """The magnitude that is painted fully saturated."""
    return max(float(np.abs(part).max(initial=0.0)) for part in (neurons.query, neurons.key)) or 1.0


def _heading(axes: "Axes", left: float, text: str) -> None:
    axes.text(left, _row(-2), text, color=PRINT_FAINT, fontsize=points(7), va="center")


def _strip(
    axes: "Axes", values: np.ndarray, left: float, top: float, most: float, wide: float = _STRIP
) -> None:
    """Vector cells, not an image, so that the figure scales; saturation as on screen."""
    shade = np.sign(values) * np.sqrt(np.abs(values) / most)
    across = np.linspace(left, left + wide, values.shape[1] + 1)
    for row, cells in enumerate(shade):
        edges = [top + row * _PITCH - 0.38 * _PITCH, top + row * _PITCH + 0.38 * _PITCH]
        axes.pcolormesh(across, edges, cells[None], cmap=_COLORS, vmin=-1, vmax=1, linewidth=0)


def _draw_words(axes: "Axes", keys: Sequence[str], query: str) -> None:
    axes.text(_KEYS, _row(-1), short(label(query), 15), va="center", weight="bold")
    for row, token in enumerate(keys):
        axes.text(_KEYS, _row(row), short(label(token), 15), va="center")


def _draw_numbers(axes: "Axes", columns: list[tuple[str, np.ndarray]], parts: Parts) -> None:
    style: dict[str, Any] = {"ha": "right", "va": "center", "fontsize": points(7)}
    named = [*columns, ("weight", parts.weights)]
    for column, (name, values) in enumerate(named):
        edge = _STEPS + (column + 1) * _FIGURE
        axes.text(edge, _row(-2), name, **style, color=PRINT_FAINT)
        for row, value in enumerate(values):
            text = "masked" if np.isneginf(value) else f"{value:.3f}".replace("-", "−")
            axes.text(edge, _row(row), text, **style)
    left = _STEPS + len(named) * _FIGURE + 0.08
    rows = [_row(row) for row in range(len(parts.weights))]
    axes.barh(rows, _BAR * parts.weights, height=0.5 * _PITCH, left=left, color=POSITIVE)
    if parts.sink > 0:
        text = f"learned sink: {parts.sink:.3f}"
        axes.text(left, _row(len(rows)), text, **style, color=PRINT_FAINT)


def _row(index: Any) -> Any:
    """The middle of a row, or of several."""
    return (index + 3.5) * _PITCH
