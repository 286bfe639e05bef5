"""Values of all heads as a grid, layers downwards and heads to the right, with a layer profile.

title
┌────────────┐ ███▏      ▌ colour
│ head       │ █████▏    ▌ scale
│      layer │ ██▏       ▌
└────────────┘ by layer

Or a distribution for every head: a strip each, layer after layer downwards.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.ticker import MaxNLocator

from headscope.plots import add_axes, add_bar
from headscope.theme import ACCENT, FAINT, MAP, SECOND

TICK = 0.16  # inches that the label of a tick needs
STRIP, STRIPS = 0.055, (2.2, 7.0)  # inches of a head's strip, and of all of them at least and most
STRIPS_WIDE, STRIPS_RIGHT = 2.6, 0.75

# Inches around and between the parts of a panel.
LEFT, GAP, PROFILE, BAR, RIGHT = 0.52, 0.14, 0.85, 0.07, 0.5
TOP, BOTTOM = 0.34, 0.46


@dataclass(frozen=True)
class Panel:
    """One grid: values by layer and head, values by layer, and a value to compare with."""

    title: str
    values: xr.DataArray
    by_layer: xr.DataArray
    errors: xr.DataArray | None = None  # standard errors of by_layer
    baseline: float | None = None
    from_zero: bool = True  # or from the smallest value, where all are far from zero

    @classmethod
    def of(
        cls,
        result: xr.Dataset,
        variable: str,
        title: str,
        at: Mapping[str, Any] | None = None,
        *,
        baseline: float | None = None,
        from_zero: bool = True,
    ) -> "Panel":
        """A measure at some labels; layers have its mean over heads where nothing is pooled."""
        names = (variable, f"{variable}_by_layer", f"{variable}_by_layer_se")
        chosen = result[[name for name in names if name in result]].sel(at or {})
        by_layer = chosen[names[1]] if names[1] in chosen else chosen[variable].mean("head")
        return cls(title, chosen[variable], by_layer, chosen.get(names[2]), baseline, from_zero)


def draw_panels(panels: Sequence[Panel], columns: int, unit: str) -> Figure:
    """Grids side by side, `columns` to a row."""
    columns = min(columns, len(panels))
    rows = -(-len(panels) // columns)
    wide, high = _grid_size(panels[0], columns)
    size = (wide + LEFT + GAP + PROFILE + GAP + BAR + RIGHT, high + TOP + BOTTOM)
    figure = Figure(figsize=(columns * size[0], rows * size[1]))
    for place, panel in enumerate(panels):
        row, column = divmod(place, columns)
        corner = (column * size[0], (rows - 1 - row) * size[1])
        _draw_panel(figure, panel, unit, corner, (wide, high))
    return figure


def _draw_panel(
    figure: Figure, panel: Panel, unit: str, corner: tuple[float, float], size: tuple[float, float]
) -> None:
    left, bottom = corner[0] + LEFT, corner[1] + BOTTOM
    grid = add_axes(figure, left, bottom, *size)
    image = _draw_grid(grid, panel, size)
    left += size[0] + GAP
    _draw_profile(add_axes(figure, left, bottom, PROFILE, size[1]), panel, unit)
    left += PROFILE + GAP
    bar = add_bar(figure, image, (left, bottom, BAR, size[1]))
    bar.ax.tick_params(width=0.5)
    bar.locator = MaxNLocator(4)
    bar.update_ticks()
    low, high = image.get_clim()
    if panel.baseline is not None and low <= panel.baseline <= high:
        bar.ax.axhline(panel.baseline, color=SECOND, linewidth=1.4)


def _draw_grid(axes: Axes, panel: Panel, size: tuple[float, float]) -> AxesImage:
    values = panel.values.transpose("layer", "head").values
    known = values[np.isfinite(values)]
    low = 0.0 if panel.from_zero or not known.size else float(known.min())
    top = float(known.max()) if known.size and known.max() > low else low + 1.0
    image = axes.imshow(values, cmap=MAP, vmin=low, vmax=top, aspect="auto", interpolation="none")
    axes.set(title=panel.title, xlabel="head", ylabel="layer")
    axes.set_xticks(*_ticks(range(values.shape[1]), size[0]))
    axes.set_yticks(*_ticks(panel.values["layer"].values.tolist(), size[1]))
    axes.tick_params(length=0, labelsize="small")
    axes.spines[:].set_visible(False)
    return image


def _ticks(labels: Sequence[int], inches: float) -> tuple[list[int], list[str]]:
    """As many ticks as can be read along an axis of that length."""
    room = max(1, int(inches / TICK))
    step = next((s for s in (1, 2, 4, 5, 10, 20) if len(labels) <= s * room), len(labels))
    places = list(range(0, len(labels), step))
    return places, [str(labels[place]) for place in places]


def _draw_profile(axes: Axes, panel: Panel, unit: str) -> None:
    """The value of every layer, two standard errors to each side, and the baseline."""
    values = panel.by_layer.values
    places = np.arange(len(values))
    axes.barh(places, values, height=0.7, color=ACCENT, alpha=0.8, linewidth=0)
    if panel.errors is not None:
        noise = 2 * np.nan_to_num(panel.errors.values)
        axes.errorbar(values, places, xerr=noise, fmt="none", ecolor=FAINT, elinewidth=0.9)
    if panel.baseline is not None and np.isfinite(panel.baseline):
        axes.axvline(panel.baseline, color=SECOND, linewidth=1.1, linestyle=(0, (3, 2)))
    axes.set(ylim=(len(values) - 0.5, -0.5), yticks=[], xlabel=unit, xlim=(0, None))
    axes.tick_params(labelsize="small")
    _end_ticks(axes)
    axes.spines["left"].set_visible(False)


def _end_ticks(axes: Axes) -> None:
    """Zero and one round number, their labels kept within the axes: grids stand close to them."""
    high = axes.get_xlim()[1]
    rounds = [tick for tick in MaxNLocator(2).tick_values(0, high) if 0 < tick <= high]
    ticks = [0.0, *rounds[-1:]]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    for text, side in zip(axes.get_xticklabels(), ("left", "right"), strict=False):
        text.set_horizontalalignment(side)


def _grid_size(panel: Panel, columns: int) -> tuple[float, float]:
    """Inches of one grid: square cells unless that makes it a thin strip."""
    layers, heads = panel.values.sizes["layer"], panel.values.sizes["head"]
    whole = {1: 4.0, 2: 2.6}.get(columns, 1.9)
    cell = min(whole / max(layers, heads), 0.45)
    shortest = 0.6 * cell * max(layers, heads)
    return max(cell * heads, shortest), max(cell * layers, shortest)


@dataclass(frozen=True)
class Strips:
    """A distribution for every head, and what its places are."""

    title: str
    values: xr.DataArray  # layer, head and one more dimension
    x: str
    ticks: Sequence[str]  # one for every place; empty ones are not drawn


def draw_strips(panels: Sequence[Strips], unit: str) -> Figure:
    """Distributions side by side: a line for every head, layer after layer downwards."""
    first = panels[0].values
    count = first.sizes["layer"] * first.sizes["head"]
    high = float(np.clip(STRIP * count, *STRIPS))
    wide = LEFT + STRIPS_WIDE + GAP + BAR + STRIPS_RIGHT
    figure = Figure(figsize=(len(panels) * wide, TOP + high + BOTTOM))
    for place, panel in enumerate(panels):
        left = place * wide + LEFT
        axes = add_axes(figure, left, BOTTOM, STRIPS_WIDE, high)
        image = _draw_strips(axes, panel, high)
        left += STRIPS_WIDE + GAP
        add_bar(figure, image, (left, BOTTOM, BAR, high), unit).ax.tick_params(width=0.5)
    return figure


def _draw_strips(axes: Axes, panel: Strips, high: float) -> AxesImage:
    values = panel.values.transpose("layer", "head", ...)
    layers, heads, places = values.shape
    flat = values.values.reshape(layers * heads, places)
    # Few places hold most of the weight; the square root keeps the others to be seen.
    image = axes.imshow(flat, cmap=MAP, norm=PowerNorm(0.5, vmin=0), aspect="auto",
                        interpolation="none")  # fmt: skip
    axes.set(title=panel.title, xlabel=panel.x, ylabel="layer")
    shown = [place for place, tick in enumerate(panel.ticks) if tick]
    axes.set_xticks(shown, [panel.ticks[place] for place in shown])
    numbers, names = _ticks(values["layer"].values.tolist(), high)
    axes.set_yticks([number * heads + (heads - 1) / 2 for number in numbers], names)
    for layer in range(1, layers):
        axes.axhline(layer * heads - 0.5, color=FAINT, linewidth=0.3)
    axes.tick_params(length=0, labelsize="small")
    axes.spines[:].set_visible(False)
    return image
