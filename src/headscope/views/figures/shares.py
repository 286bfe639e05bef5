"""What one span looks at, on paper: layer × head for each other span, and means by layer."""

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from headscope.theme import DIVERGING, GROUPS, PRINT_FAINT, PRINT_RULE
from headscope.views.figures.fonts import points
from headscope.views.labels import label, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh

    from headscope.views.shares import Shares

_MOST_ACROSS = 5  # maps side by side
_MAP = (1.35, 2.1)  # inches of one map
_CHART = 1.6  # inches of the chart below
_LEFT, _RIGHT, _TOP, _BOTTOM, _GAP = 0.5, 0.75, 0.85, 0.45, 0.62
_COLORS = LinearSegmentedColormap.from_list("above", DIVERGING.light)


def draw(shares: "Shares", source: str) -> Figure:
    """A map for every span that is looked at: what it gets above its length's worth."""
    targets = shares.targets(source)
    across = min(len(targets), _MOST_ACROSS)
    down = -(-len(targets) // across)
    wide = max(4.2, _LEFT + across * (_MAP[0] + 0.2) + _RIGHT)
    tall = _TOP + down * (_MAP[1] + _GAP) + _CHART + _BOTTOM
    figure = Figure(figsize=(wide, tall))
    above = (shares.share - shares.expected).sel({"from": source})
    most = float(np.nanmax(np.abs(above.sel(to=targets).values), initial=1e-9))
    shown = None
    for number, to in enumerate(targets):
        row, column = divmod(number, across)
        place = (_LEFT + column * (_MAP[0] + 0.2), _TOP + row * (_MAP[1] + _GAP), *_MAP)
        axes = _axes(figure, place)
        shown = _map(axes, above.sel(to=to).values, most)
        mean = (float(part.sel({"from": source, "to": to}).mean())
                for part in (shares.share, shares.expected))  # fmt: skip
        _name(axes, to, *mean)
        if column == 0:
            axes.set_ylabel("layer", fontsize=points(7), color=PRINT_FAINT)
    edge = _LEFT + across * (_MAP[0] + 0.2)
    if shown is not None:
        bar = figure.colorbar(shown, cax=_axes(figure, (edge, _TOP, 0.1, _MAP[1])))
        bar.ax.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        bar.ax.tick_params(length=2, labelsize=points(6.5), colors=PRINT_FAINT)
        bar.outline.set_visible(False)  # pyright: ignore[reportCallIssue]
    chart = _axes(figure, (_LEFT, tall - _BOTTOM - _CHART, edge - 0.2 - _LEFT, _CHART))
    _by_layer(chart, shares, source, targets)
    _title(figure, shares, source)
    return figure


def _axes(figure: Figure, place: tuple[float, float, float, float]) -> "Axes":
    """Axes by inches from the left and from the top."""
    wide, tall = figure.get_size_inches()
    left, top, across, down = place
    return figure.add_axes((left / wide, 1 - (top + down) / tall, across / wide, down / tall))


def _map(axes: "Axes", values: np.ndarray, most: float) -> "QuadMesh":
    shown = axes.pcolormesh(values, cmap=_COLORS, vmin=-most, vmax=most, linewidth=0)
    axes.invert_yaxis()
    layers, heads = values.shape
    for axis, count in ((axes.yaxis, layers), (axes.xaxis, heads)):
        step = max(1, -(-count // 8))
        axis.set_ticks([n + 0.5 for n in range(0, count, step)])
        axis.set_ticklabels([str(n) for n in range(0, count, step)])
    axes.tick_params(length=0, labelsize=points(6), colors=PRINT_FAINT, pad=2)
    for spine in axes.spines.values():
        spine.set(color=PRINT_RULE, linewidth=0.6)
    return shown


def _name(axes: "Axes", to: str, share: float, expected: float) -> None:
    axes.set_title(short(label(to), 20), fontsize=points(8), pad=13)
    said = f"{share:.1%}, by length {expected:.1%}"
    axes.text(
        0.5, 1.02, said, transform=axes.transAxes, ha="center", va="bottom", color=PRINT_FAINT,
        fontsize=points(6.5),
    )  # fmt: skip
    axes.set_xlabel("head", fontsize=points(7), color=PRINT_FAINT, labelpad=1)


def _by_layer(axes: "Axes", shares: "Shares", source: str, targets: list[str]) -> None:
    """Means over heads; dotted what length alone would give."""
    layers = shares.data["layer"].values
    for number, to in enumerate(targets):
        color = GROUPS.light[number % len(GROUPS.light)]
        where = {"from": source, "to": to}
        axes.plot(
            layers, shares.share.sel(where).mean("head"), color=color, linewidth=1.2,
            label=short(label(to), 20),
        )  # fmt: skip
        even = shares.expected.sel(where).mean("head")
        axes.plot(layers, even, color=color, linewidth=0.8, linestyle=(0, (1, 1.5)))
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_ylim(bottom=0)
    axes.set_xlim(layers[0], layers[-1] if len(layers) > 1 else layers[0] + 1)
    said = "layer; mean of its heads, dotted: by length alone"
    axes.set_xlabel(said, fontsize=points(7), color=PRINT_FAINT)
    axes.tick_params(length=2, labelsize=points(6.5), colors=PRINT_FAINT)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.legend(
        frameon=False, fontsize=points(6.5), loc="lower left", bbox_to_anchor=(-0.01, 1.0),
        ncols=min(5, len(targets)), borderaxespad=0.2,
    )  # fmt: skip


def _title(figure: Figure, shares: "Shares", source: str) -> None:
    wide, tall = figure.get_size_inches()
    hidden = shares.data.attrs["hide"]
    note = f" · {hidden} left out" if hidden else ""
    said = f"What “{short(label(source), 30)}” looks at · {shares.trace.model}{note}"
    figure.text(_LEFT / wide, 1 - 0.18 / tall, said, va="center", fontsize=points(9))
    figure.text(
        _LEFT / wide, 1 - 0.36 / tall, "share of its attention above or below what length alone "
        "would give", va="center", color=PRINT_FAINT, fontsize=points(7),
    )  # fmt: skip
