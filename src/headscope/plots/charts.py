"""Charts: layer profiles, shares by layer and label, curves, scatter plots, maps of heads.

Attention of single heads over a short text: queries left, keys right, a line for each weight.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from headscope.theme import ACCENT, FAINT, INK, MAP, SECOND, SERIES

WIDEST = 6.4  # inches for the cells of two grids side by side
MARKS = ("o", "s", "^", "D")  # series are told apart without colour, too
BEHAVIOURS = (SECOND, ACCENT, *SERIES[2:])
NAMED = 40  # points of a map with a name; more would cover one another
WEAK = 0.02  # lines fainter than this cannot be seen
LINE = 1.1
TOKEN = "x-small"


@dataclass(frozen=True)
class Series:
    """One quantity: its value per head (or none of them), per layer, and the layers' errors.

    A series without a label is alone in its plot and needs no legend.
    """

    label: str
    by_layer: xr.DataArray
    errors: xr.DataArray | None = None  # standard errors of by_layer
    values: xr.DataArray | None = None


@dataclass(frozen=True)
class Plot:
    """Several series in one frame, with a level to compare with."""

    title: str
    y: str
    series: Sequence[Series]
    level: float | None = None
    level_label: str = ""
    top: float | None = None


def draw_plots(plots: Sequence[Plot]) -> Figure:
    """Plots side by side."""
    figure = Figure(figsize=(4.1 * len(plots), 3.1), layout="constrained")
    for axes, plot in zip(np.atleast_1d(figure.subplots(1, len(plots))), plots, strict=True):
        _draw_plot(axes, plot)
    return figure


def _draw_plot(axes: Axes, plot: Plot) -> None:
    for place, series in enumerate(plot.series):
        _draw_series(axes, series, SERIES[place % len(MARKS)], MARKS[place % len(MARKS)])
    if plot.level is not None:
        axes.axhline(plot.level, color=FAINT, linewidth=1, linestyle=(0, (3, 2)))
        at_right = {"transform": axes.get_yaxis_transform(), "ha": "right", "va": "bottom"}
        axes.text(0.99, plot.level, plot.level_label, fontsize="small", color=FAINT, **at_right)
    axes.set_title(plot.title)
    axes.set_xlabel("layer")
    axes.set_ylabel(plot.y)
    axes.set_ylim(bottom=0, top=plot.top)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=12))
    if any(series.label for series in plot.series):
        axes.legend(fontsize="small")


def _draw_series(axes: Axes, series: Series, colour: str, mark: str) -> None:
    layers = series.by_layer["layer"].values
    if series.values is not None:
        heads = series.values.transpose("layer", "head").values
        axes.scatter(np.repeat(layers, heads.shape[1]), heads.ravel(), s=9, color=colour,
                     marker=mark, alpha=0.35, linewidths=0)  # fmt: skip
    if series.errors is not None:
        low, high = (series.by_layer + sign * 2 * series.errors for sign in (-1, 1))
        axes.fill_between(layers, low, high, color=colour, alpha=0.18, linewidth=0)
    axes.plot(layers, series.by_layer, color=colour, marker=mark, markersize=3.2, linewidth=1.4,
              label=series.label)  # fmt: skip


def draw_shares(shares: xr.DataArray, even: xr.DataArray, axis: str) -> Figure:
    """Share of each label in each layer, and its ratio to what even attention would give."""
    labels = shares[axis].values.tolist()
    layers = shares["layer"].values.tolist()
    cell = min(0.32, WIDEST / 2 / len(layers))
    size = (2.6 + 2 * cell * len(layers), 1.0 + 0.2 * len(labels))
    figure = Figure(figsize=size, layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    values = shares.transpose(axis, "layer").values
    _draw_share(left, "share of attention", values, layers)
    _draw_share(right, "relative to even attention", values / even.values[:, None], layers)
    left.set_yticks(range(len(labels)), labels)
    return figure


def _draw_share(axes: Axes, title: str, values: np.ndarray, layers: list[int]) -> None:
    image = axes.imshow(values, cmap=MAP, vmin=0, aspect="auto", interpolation="none")
    axes.set_title(title)
    axes.set_xlabel("layer")
    step = max(1, -(-len(layers) // 12))
    axes.set_xticks(range(0, len(layers), step), [str(layer) for layer in layers[::step]])
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    bar = axes.get_figure(root=True).colorbar(image, ax=axes, fraction=0.06, pad=0.03)  # pyright: ignore[reportOptionalMemberAccess]
    bar.outline.set_visible(False)  # pyright: ignore[reportCallIssue]
    bar.ax.tick_params(labelsize="small", length=2)


def draw_curve(values: xr.DataArray, errors: xr.DataArray, x: str, y: str) -> Figure:
    """A quantity over separation with two standard errors to each side."""
    figure = Figure(figsize=(5.6, 2.9), layout="constrained")
    axes = figure.subplots()
    places = values[values.dims[0]].values
    axes.fill_between(
        places, values - 2 * errors, values + 2 * errors, color=ACCENT, alpha=0.2, linewidth=0
    )
    axes.plot(places, values, color=ACCENT, linewidth=1.4, marker="o", markersize=2.6)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_locator(MaxNLocator(10, integer=True))
    return figure


def draw_scatters(panels: list[tuple[str, xr.DataArray, xr.DataArray, float]], x: str) -> Figure:
    """One dot per head, coloured by layer; r in the corner."""
    figure = Figure(figsize=(3.6 * len(panels) + 0.6, 3.1), layout="constrained")
    grid = np.atleast_1d(figure.subplots(1, len(panels)))
    image = None
    for axes, (name, left, right, r) in zip(grid, panels, strict=True):
        layers = np.broadcast_to(left["layer"].values[:, None], left.shape)
        image = axes.scatter(
            left.values.ravel(), right.values.ravel(), c=layers.ravel(), cmap=MAP, s=14,
            linewidths=0.3, edgecolors=FAINT,
        )  # fmt: skip
        _finish_scatter(axes, x, name, r)
    if image is not None:
        bar = figure.colorbar(image, ax=list(grid), label="layer", fraction=0.04, pad=0.02)
        bar.outline.set_visible(False)
        bar.locator = MaxNLocator(integer=True, nbins=6)
        bar.update_ticks()
    return figure


def _finish_scatter(axes: Axes, x: str, y: str, r: float) -> None:
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_ylim(bottom=0)
    text = f"r = {r:.2f}" if np.isfinite(r) else "r undefined"
    axes.text(0.97, 0.97, text, transform=axes.transAxes, ha="right", va="top", color=SECOND)


def draw_head_map(positions: xr.DataArray, behaviour: xr.DataArray, plain: str) -> Figure:
    """Two maps of the same heads; `plain` is the label of heads without a clear behaviour."""
    figure = Figure(figsize=(9.2, 4.3), layout="constrained")
    left, right = figure.subplots(1, 2)
    points = positions.transpose("unit", "axis").values
    _by_behaviour(left, points, behaviour.values.ravel(), plain, positions["unit"].values)
    _by_layer(figure, right, points, behaviour)
    for axes, title in ((left, "by behaviour"), (right, "by layer")):
        axes.set_title(title)
        axes.set_aspect("equal", adjustable="datalim")
        axes.set_xticks([])
        axes.set_yticks([])
        axes.spines[["left", "bottom"]].set_visible(False)
    return figure


def _by_behaviour(
    axes: Axes, points: np.ndarray, labels: np.ndarray, plain: str, names: np.ndarray
) -> None:
    _scatter(axes, points[labels == plain], FAINT, plain)
    for place, label in enumerate(sorted(set(labels.tolist()) - {plain})):
        _scatter(axes, points[labels == label], BEHAVIOURS[place % len(BEHAVIOURS)], label)
    clear = np.flatnonzero(labels != plain)
    for unit in clear if len(clear) <= NAMED else ():
        axes.annotate(names[unit], points[unit], xytext=(3, 2), textcoords="offset points",
                      fontsize="x-small", color=INK)  # fmt: skip
    axes.legend(fontsize="small", loc="best", handletextpad=0.2)


def _scatter(axes: Axes, points: np.ndarray, colour: str, label: str) -> None:
    if len(points):
        axes.scatter(*points.T, s=18, color=colour, label=label, linewidths=0)


def _by_layer(figure: Figure, axes: Axes, points: np.ndarray, behaviour: xr.DataArray) -> None:
    layers = np.broadcast_to(behaviour["layer"].values[:, None], behaviour.shape).ravel()
    image = axes.scatter(*points.T, s=18, c=layers, cmap=MAP, linewidths=0)
    bar = figure.colorbar(image, ax=axes, fraction=0.04, pad=0.02, label="layer")
    bar.outline.set_visible(False)  # pyright: ignore[reportCallIssue]


def draw_matrix(matrix: xr.DataArray, order: xr.DataArray, unit: str) -> Figure:
    """A matrix of heads by heads, rows and columns put into the given order."""
    figure = Figure(figsize=(5.4, 4.6), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.15)  # pyright: ignore[reportOptionalMemberAccess, reportCallIssue]
    axes = figure.subplots()
    places = np.argsort(order.values)
    names = matrix["unit"].values[places]
    image = axes.imshow(matrix.values[np.ix_(places, places)], cmap=MAP, interpolation="none")
    step = max(1, -(-len(names) // 36))
    axes.set_xticks(range(0, len(names), step), names[::step], rotation=90, fontsize="x-small")
    axes.set_yticks(range(0, len(names), step), names[::step], fontsize="x-small")
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    bar = figure.colorbar(image, ax=axes, fraction=0.045, pad=0.02, label=unit)
    bar.outline.set_visible(False)  # pyright: ignore[reportCallIssue]
    return figure


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
