"""Figures that are not grids of heads: shares by layer and label, curves, scatter plots."""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from headscope.plots.style import ACCENT, FAINT, MAP, SECOND

WIDEST = 6.4  # inches for the cells of two grids side by side


def draw_shares(shares: xr.DataArray, frequency: xr.DataArray, axis: str) -> Figure:
    """Share of each label in each layer, and its ratio to how often the label occurs."""
    labels = shares[axis].values.tolist()
    layers = shares["layer"].values.tolist()
    cell = min(0.32, WIDEST / 2 / len(layers))
    size = (2.6 + 2 * cell * len(layers), 1.0 + 0.2 * len(labels))
    figure = Figure(figsize=size, layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    values = shares.transpose(axis, "layer").values
    _draw_share(left, "share of attention", values, layers)
    _draw_share(right, "relative to frequency", values / frequency.values[:, None], layers)
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
    bar.ax.tick_params(labelsize=7, length=2)


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
