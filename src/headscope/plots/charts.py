"""Charts: layer profiles, shares by layer and label, scatter plots."""

from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib as mpl
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import Normalize, PowerNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, MaxNLocator

from headscope.plots import LAYERS, MAP, SIGNED, add_axes, add_bar, fit_columns, page_width
from headscope.theme import FAINT, SECOND, SERIES

MARKS = ("o", "s", "^", "D")  # series are told apart without colour, too
DASHED = (0, (3, 2))

# Inches of a plot, of the narrowest one, and of a scatter plot.
PLOT, PLOT_LEAST, SCATTER = (4.1, 3.3), 2.6, 3.6

# Inches of the grids by layer and label.
CELL, ROW, WIDEST = 0.32, 0.17, 3.2
MARGIN, TITLE, FOOT, GAP, BAR, BAR_TEXT = 0.1, 0.28, 0.45, 0.12, 0.08, 0.5
TICK = 0.15  # inches that the number of a layer needs
WIDE_TITLE, SHORT_TITLES = 1.1, ("share", "relative")  # inches from which a title fits
FARTHEST = 3  # doublings: beyond an eighth and eight times colours stay the same


@dataclass(frozen=True)
class Series:
    """One quantity: its value per head (or none of them), per layer, and the layers' errors.

    A series without a label is alone in its plot and needs no legend.
    """

    label: str
    by_layer: xr.DataArray
    errors: xr.DataArray | None = None  # standard errors of by_layer
    values: xr.DataArray | None = None
    level: float | None = None  # what it would be by chance; a dashed line of its colour
    number: int | None = None  # of its colour and mark, where these are not by its place


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
    """Plots side by side or, where they do not fit, below each other; legends below them."""
    columns = fit_columns(len(plots), PLOT[0], PLOT_LEAST)
    wide, rows = page_width(PLOT[0] * len(plots)), -(-len(plots) // columns)
    high = min(PLOT[1], 0.9 * wide / columns)
    figure = Figure(figsize=(wide, rows * high), layout="constrained")
    grid = np.atleast_1d(figure.subplots(rows, columns, squeeze=False).ravel())
    for axes, plot in zip(grid, plots, strict=True):
        _draw_plot(axes, plot)
    return figure


def _draw_plot(axes: Axes, plot: Plot) -> None:
    for place, series in enumerate(plot.series):
        number = (place if series.number is None else series.number) % len(MARKS)
        _draw_series(axes, series, SERIES[number], MARKS[number])
    if plot.level is not None:
        axes.axhline(plot.level, color=FAINT, linewidth=1, linestyle=DASHED)
    axes.set(title=plot.title, xlabel="layer", ylabel=plot.y, ylim=(0, plot.top))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=12))
    entries = [handle for handle in axes.get_lines() if handle.get_label()[:1] != "_"]  # pyright: ignore[reportIndexIssue]
    if plot.level is not None or any(series.level is not None for series in plot.series):
        entries.append(Line2D([], [], color=FAINT, linestyle=DASHED, label=plot.level_label))
    if entries:
        axes.legend(handles=entries, fontsize="small", loc="upper center", ncols=2,
                    bbox_to_anchor=(0.5, -0.2), borderaxespad=0)  # fmt: skip


def _draw_series(axes: Axes, series: Series, colour: str, mark: str) -> None:
    layers = series.by_layer["layer"].values
    if series.values is not None:
        heads = series.values.transpose("layer", "head").values
        axes.scatter(np.repeat(layers, heads.shape[1]), heads.ravel(), s=9, color=colour,
                     marker=mark, alpha=0.35, linewidths=0)  # fmt: skip
    if series.errors is not None:
        low, high = (series.by_layer + sign * 2 * series.errors for sign in (-1, 1))
        axes.fill_between(layers, low, high, color=colour, alpha=0.18, linewidth=0)
    if series.level is not None and np.isfinite(series.level):
        axes.axhline(series.level, color=colour, linewidth=1, linestyle=DASHED)
    axes.plot(layers, series.by_layer, color=colour, marker=mark, markersize=3.2, linewidth=1.4,
              label=series.label or "_")  # fmt: skip


def draw_shares(
    shares: xr.DataArray, even: xr.DataArray, frequency: xr.DataArray, axis: str
) -> Figure:
    """Share of each label in each layer, and its ratio to what even attention would give it.

    The ratio has a scale of doublings around 1: half as much is as far from it as twice as much.
    """
    labels = _with_frequency(frequency, axis)
    layers = shares["layer"].values.tolist()
    wide, high = max(min(CELL * len(layers), WIDEST), 1.2), ROW * len(labels)
    text = mpl.rcParams["font.size"] * 0.833 * 0.6 / 72 * max(map(len, labels)) + 0.1
    natural = MARGIN + text + 2 * (wide + GAP + BAR + BAR_TEXT)
    wide += (page_width(natural) - natural) / 2
    panel = wide + GAP + BAR + BAR_TEXT
    figure = Figure(figsize=(MARGIN + text + 2 * panel, FOOT + high + TITLE))
    values = shares.transpose(axis, "layer").values
    with np.errstate(divide="ignore", invalid="ignore"):
        doublings = np.log2(values / even.values[:, None])
    doublings[~np.isfinite(doublings)] = np.nan
    reach = _reach(doublings)
    scales = (PowerNorm(0.5, vmin=0), Normalize(-reach, reach))
    titles = ("share of attention", "relative to even attention")
    for place, (each, title, scale) in enumerate(
        zip((values, doublings), titles, scales, strict=True)
    ):
        left = MARGIN + text + place * panel
        axes = add_axes(figure, left, FOOT, wide, high)
        image = axes.imshow(each, cmap=SIGNED if place else MAP, norm=scale, aspect="auto",
                            interpolation="none")  # fmt: skip
        axes.set_facecolor(FAINT)  # where there is no ratio
        _finish_grid(axes, title if wide > WIDE_TITLE else SHORT_TITLES[place], layers, wide)
        axes.set_yticks(range(len(labels)), labels if not place else [""] * len(labels),
                        fontsize="small")  # fmt: skip
        bar_axes = add_bar(figure, image, (left + wide + GAP, FOOT, BAR, high)).ax
        if place:
            _label_doublings(bar_axes, reach)
        else:
            bar_axes.yaxis.set_major_locator(MaxNLocator(max(1, min(4, int(high / TICK / 3)))))
    return figure


def _with_frequency(frequency: xr.DataArray, axis: str) -> list[str]:
    names, shares = frequency[axis].values.tolist(), frequency.values
    return [
        f"{name} {share:.1%}" if share >= 0.001 else f"{name} < 0.1%"
        for name, share in zip(names, shares, strict=True)
    ]


def _reach(doublings: np.ndarray) -> float:
    """Doublings from 1 to the ends of the scale: the few largest ratios may lie beyond them."""
    known = np.abs(doublings[np.isfinite(doublings)])
    return float(np.clip(np.percentile(known, 95), 1, FARTHEST)) if known.size else 1.0


def _label_doublings(axes: Axes, reach: float) -> None:
    ticks = range(-int(reach), int(reach) + 1)
    axes.yaxis.set_major_locator(FixedLocator(list(ticks)))
    axes.set_yticklabels([f"{2**tick}" if tick >= 0 else f"1/{2**-tick}" for tick in ticks])


def _finish_grid(axes: Axes, title: str, layers: list[int], wide: float) -> None:
    axes.set(title=title, xlabel="layer")
    step = max(1, -(-len(layers) // min(12, int(wide / TICK))))
    axes.set_xticks(range(0, len(layers), step), [str(layer) for layer in layers[::step]],
                    fontsize="small")  # fmt: skip
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def draw_scatters(panels: list[tuple[str, xr.DataArray, xr.DataArray, float]], x: str) -> Figure:
    """One dot per head, coloured by layer; r above each panel, where no dot can be."""
    columns = fit_columns(len(panels), SCATTER, PLOT_LEAST)
    wide, rows = page_width(SCATTER * len(panels) + 0.6), -(-len(panels) // columns)
    high = min(3.3, 0.9 * wide / columns)
    figure = Figure(figsize=(wide, rows * high), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    image = None
    for axes, (name, left, right, r) in zip(grid, panels, strict=True):
        layers = np.broadcast_to(left["layer"].values[:, None], left.shape)
        image = axes.scatter(
            left.values.ravel(), right.values.ravel(), c=layers.ravel(), cmap=LAYERS, s=14,
            linewidths=0.3, edgecolors=FAINT,
        )  # fmt: skip
        axes.set(xlabel=x, ylabel=name, ylim=(0, None))
        text = f"r = {r:.2f}".replace("-", "−") if np.isfinite(r) else "r undefined"
        axes.set_title(text, color=SECOND, fontsize="medium")
    if image is not None:
        bar = figure.colorbar(image, ax=list(grid), label="layer", fraction=0.04, pad=0.02)
        bar.outline.set_visible(False)  # pyright: ignore[reportCallIssue]
        bar.locator = MaxNLocator(integer=True, nbins=6)
        bar.update_ticks()
    return figure
