"""Values of all heads over the layers: a dot for every head, a line through the layer means."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from headscope.plots.style import ACCENT, FAINT, SECOND

COLOURS = (ACCENT, SECOND, "#6a8f3c", "#8a5ea8")
MARKS = ("o", "s", "^", "D")  # told apart without colour, too


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
        _draw(axes, plot)
    return figure


def _draw(axes: Axes, plot: Plot) -> None:
    for place, series in enumerate(plot.series):
        _draw_series(axes, series, COLOURS[place % len(COLOURS)], MARKS[place % len(MARKS)])
    if plot.level is not None:
        axes.axhline(plot.level, color=FAINT, linewidth=1, linestyle=(0, (3, 2)))
        at_right = {"transform": axes.get_yaxis_transform(), "ha": "right", "va": "bottom"}
        axes.text(0.99, plot.level, plot.level_label, fontsize=7, color=FAINT, **at_right)
    axes.set_title(plot.title)
    axes.set_xlabel("layer")
    axes.set_ylabel(plot.y)
    axes.set_ylim(bottom=0, top=plot.top)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=12))
    if any(series.label for series in plot.series):
        axes.legend(fontsize=8)


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
