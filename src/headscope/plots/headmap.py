"""Heads as points of a plane: near where they behave alike, coloured by behaviour and by layer."""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from headscope.plots.style import ACCENT, FAINT, INK, MAP, SECOND

COLOURS = (SECOND, ACCENT, "#6a8f3c", "#8a5ea8", "#c9a227", "#4aa3a2", "#a05252", "#5b6abf")
NAMED = 40  # points with a name; more would cover one another


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
        _scatter(axes, points[labels == label], COLOURS[place % len(COLOURS)], label)
    clear = np.flatnonzero(labels != plain)
    for unit in clear if len(clear) <= NAMED else ():
        axes.annotate(names[unit], points[unit], xytext=(3, 2), textcoords="offset points",
                      fontsize=6, color=INK)  # fmt: skip
    axes.legend(fontsize=8, loc="best", handletextpad=0.2)


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
    axes.set_xticks(range(0, len(names), step), names[::step], rotation=90, fontsize=6)
    axes.set_yticks(range(0, len(names), step), names[::step], fontsize=6)
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    bar = figure.colorbar(image, ax=axes, fraction=0.045, pad=0.02, label=unit)
    bar.outline.set_visible(False)  # pyright: ignore[reportCallIssue]
    return figure
