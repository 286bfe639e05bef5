"""Values of all heads as a grid, layers downwards and heads to the right, with a layer profile.

title
┌────────────┐ ███▏      ▌ colour
│ head       │ █████▏    ▌ scale
│      layer │ ██▏       ▌
└────────────┘ by layer
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import xarray as xr
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import Bbox

from headscope.plots import MAP, add_axes, fit_columns, page_width
from headscope.theme import ACCENT, FAINT, SECOND

TICK = 0.16  # inches that the label of a tick needs

# Inches around and between the parts of a panel.
LEFT, GAP, PROFILE, BAR, RIGHT = 0.52, 0.14, 0.85, 0.07, 0.5
TOP, BOTTOM = 0.34, 0.46

# A figure narrower than this share of its own width has small panels, if these are not few.
SMALL, FEW = 0.6, 4
LEAST, LEAST_SMALL = 3.2, 1.6  # inches of a panel and of a small one

# Inches from the edge of a grid, a profile or a scale.
MARK = 2.5 / 72  # how long a tick is
TICK_PAD, PAD = 3.5 / 72, 6 / 72  # to the label of a tick, and to a title
BELOW = 0.29  # to the middle of what an axis is called
ASIDE, DIGIT = 0.17, 0.066  # the same beside labels, and for every digit of them


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


@dataclass(frozen=True)
class Layout:
    """Where the parts of every panel are, in inches; a small one has no profile of the layers."""

    columns: int
    grid: tuple[float, float]
    left: float = LEFT
    right: float = RIGHT
    profile: float = PROFILE

    @classmethod
    def of(cls, panel: Panel, count: int, columns: int) -> "Layout":
        """The layout that a figure chooses, or the one that fits the width that is asked for."""
        grid = _grid_size(panel, columns)
        chosen = cls(columns, grid)
        natural = columns * chosen.wide
        room = page_width(natural)
        if room == natural:
            return chosen
        columns = fit_columns(columns, chosen.wide, LEAST)
        layout = cls(columns, grid)
        if room < SMALL * natural and count > FEW:
            columns = max(2, int(room / LEAST_SMALL))
            layout = cls(columns, grid, left=0.36, right=0.48, profile=0.0)
        wide = room / columns - (layout.wide - grid[0])
        return replace(layout, grid=_within(panel, wide))

    @property
    def wide(self) -> float:
        """Inches of a panel."""
        profile = self.profile + GAP if self.profile else 0.0
        return self.left + self.grid[0] + GAP + profile + BAR + self.right


def draw_panels(panels: Sequence[Panel], columns: int, unit: str) -> Figure:
    """Grids side by side, `columns` to a row or as many as fit."""
    layout = Layout.of(panels[0], len(panels), min(columns, len(panels)))
    rows = -(-len(panels) // layout.columns)
    wide, high = layout.wide, layout.grid[1] + TOP + BOTTOM
    figure = Figure(figsize=(layout.columns * wide, rows * high))
    figure.suppressComposite = True  # grid and scale stay two images, of as many pixels as cells
    for number, panel in enumerate(panels):
        row, column = divmod(number, layout.columns)
        sheet = add_axes(figure, column * wide, (rows - 1 - row) * high, wide, high)
        sheet.set(xlim=(0, wide), ylim=(0, high))  # inches
        sheet.set_axis_off()
        _draw_panel(sheet, panel, unit, layout)
    return figure


def _draw_panel(sheet: Axes, panel: Panel, unit: str, layout: Layout) -> None:
    """One panel in one pair of axes, its ticks by hand: three with ticks of their own take longer.

    The first image is the grid, the first line the baseline.
    """
    size = layout.grid
    image = _draw_grid(sheet, panel, _box(layout.left, *size))
    left = layout.left + size[0] + GAP
    if layout.profile:
        _draw_profile(sheet, panel, unit, _box(left, layout.profile, size[1]))
        left += layout.profile + GAP
    _draw_scale(sheet, panel, image, _box(left, BAR, size[1]))


def _box(left: float, wide: float, high: float) -> Bbox:
    return Bbox.from_bounds(left, BOTTOM, wide, high)


def _draw_grid(sheet: Axes, panel: Panel, box: Bbox) -> AxesImage:
    values = panel.values.transpose("layer", "head").values
    known = values[np.isfinite(values)]
    low = 0.0 if panel.from_zero or not known.size else float(known.min())
    top = float(known.max()) if known.size and known.max() > low else low + 1.0
    image = _add_image(sheet, values, box)
    image.set_clim(low, top)
    sheet.text(box.x0, box.y1 + PAD, panel.title, **_look("axes.title"))
    places, names = _ticks(range(values.shape[1]), box.width)
    for place, name in zip(places, names, strict=True):
        x = box.x0 + (place + 0.5) / values.shape[1] * box.width
        sheet.text(x, box.y0 - TICK_PAD, name, ha="center", va="top", **_look("xtick"))
    places, names = _ticks(panel.values["layer"].values.tolist(), box.height)
    for place, name in zip(places, names, strict=True):
        y = box.y1 - (place + 0.5) / values.shape[0] * box.height
        sheet.text(box.x0 - TICK_PAD, y, name, ha="right", va="center_baseline", **_look("ytick"))
    middle = {"ha": "center", "va": "center", **_look("axes.label")}
    sheet.text((box.x0 + box.x1) / 2, box.y0 - BELOW, "head", **middle)
    aside = ASIDE + DIGIT * max(map(len, names))
    sheet.text(box.x0 - aside, (box.y0 + box.y1) / 2, "layer", rotation=90, **middle)
    return image


def _add_image(sheet: Axes, values: np.ndarray, box: Bbox) -> AxesImage:
    image = AxesImage(sheet, cmap=MAP, interpolation="none", origin="upper",
                      extent=(box.x0, box.x1, box.y0, box.y1))  # fmt: skip
    image.set_data(np.ma.masked_invalid(values))
    sheet.add_image(image)
    return image


def _look(part: str) -> dict[str, Any]:
    """Size and colour of a text as rcParams have them; ticks are small, for they stand close."""
    settings: Any = rcParams
    if part.startswith("axes"):
        color = settings["axes.labelcolor" if part == "axes.label" else "text.color"]
        return {"fontsize": settings[f"{part}size"], "color": color}
    return {"fontsize": "small", "color": settings[f"{part}.color"]}


def _ticks(labels: Sequence[int], inches: float) -> tuple[list[int], list[str]]:
    """As many ticks as can be read along an axis of that length."""
    room = max(1, int(inches / TICK))
    step = next((s for s in (1, 2, 4, 5, 10, 20) if len(labels) <= s * room), len(labels))
    places = list(range(0, len(labels), step))
    return places, [str(labels[place]) for place in places]


def _draw_profile(sheet: Axes, panel: Panel, unit: str, box: Bbox) -> None:
    """The value of every layer, two standard errors to each side, and the baseline."""
    values = np.nan_to_num(panel.by_layer.values.astype(float))
    noise = 0.0 if panel.errors is None else 2 * np.nan_to_num(panel.errors.values)
    baseline = [each for each in (panel.baseline,) if each is not None and np.isfinite(each)]
    high = 1.05 * max(0.0, *(values + noise), *baseline) or 1.0

    def across(value: Any) -> Any:
        return box.x0 + np.clip(value, 0, high) / high * box.width

    places = box.y1 - (np.arange(len(values)) + 0.5) / len(values) * box.height
    _draw_bars(sheet, across(values), box.x0, places, 0.35 * box.height / len(values))
    if panel.errors is not None:
        ends = np.stack([across(values - noise), across(values + noise)], 1)
        _draw_lines(sheet, np.stack([ends, places[:, None].repeat(2, 1)], 2), FAINT, 0.9)
    for value in baseline:
        sheet.plot([across(value)] * 2, [box.y0, box.y1], color=SECOND, linewidth=1.1,
                   linestyle=(0, (3, 2)))  # fmt: skip
    _draw_foot(sheet, {tick: float(across(tick)) for tick in _end_ticks(high)}, unit, box)


def _draw_foot(sheet: Axes, ticks: Mapping[float, float], unit: str, box: Bbox) -> None:
    """The axis below a profile; the labels of its ends stay within it."""
    below = box.y0 - MARK
    _draw_lines(sheet, [[(box.x0, box.y0), (box.x1, box.y0)]], rcParams["axes.edgecolor"],
                rcParams["axes.linewidth"])  # fmt: skip
    _draw_lines(sheet, [[(x, box.y0), (x, below)] for x in ticks.values()],
                rcParams["xtick.color"], rcParams["xtick.major.width"])  # fmt: skip
    for (tick, x), side in zip(ticks.items(), ("left", "right"), strict=False):
        sheet.text(x, below - TICK_PAD, say_tick(tick), ha=side, va="top", **_look("xtick"))
    middle = {"ha": "center", "va": "center", **_look("axes.label")}
    sheet.text((box.x0 + box.x1) / 2, box.y0 - BELOW, unit, **middle)


def _draw_bars(
    sheet: Axes, ends: np.ndarray, begin: float, places: np.ndarray, half: float
) -> None:
    corners = [
        [(begin, y - half), (end, y - half), (end, y + half), (begin, y + half)]
        for end, y in zip(ends, places, strict=True)
    ]
    sheet.add_collection(
        PolyCollection(corners, facecolor=ACCENT, alpha=0.8, linewidth=0), autolim=False
    )


def _draw_lines(sheet: Axes, lines: Any, color: str, width: float) -> None:
    sheet.add_collection(LineCollection(lines, colors=color, linewidths=width), autolim=False)


def _end_ticks(high: float) -> list[float]:
    """Zero and one round number."""
    rounds = [tick for tick in MaxNLocator(2).tick_values(0, high) if 0 < tick <= high]
    return [0.0, *rounds[-1:]]


def _draw_scale(sheet: Axes, panel: Panel, image: AxesImage, box: Bbox) -> None:
    """What the colours mean, and where among them the baseline is."""
    low, high = image.get_clim()
    _add_image(sheet, np.linspace(high, low, 256)[:, None], box).set_clim(low, high)

    def up(value: float) -> float:
        return box.y0 + (value - low) / (high - low) * box.height

    ticks = [tick for tick in MaxNLocator(4).tick_values(low, high) if low <= tick <= high]
    named = {say_tick(tick): up(tick) for tick in reversed(ticks)}
    mark = 0.8 * MARK
    _draw_lines(sheet, [[(box.x1, y), (box.x1 + mark, y)] for y in named.values()],
                rcParams["ytick.color"], 0.5)  # fmt: skip
    for name, y in named.items():
        sheet.text(box.x1 + mark + TICK_PAD, y, name, va="center_baseline", **_look("ytick"))
    if panel.baseline is not None and low <= panel.baseline <= high:
        level = up(panel.baseline)
        _draw_lines(sheet, [[(box.x0, level), (box.x1, level)]], SECOND, 1.4)


def say_tick(value: float) -> str:
    """A round number in few letters."""
    if 0 < abs(value) < 0.001:
        number, power = f"{value:.1e}".split("e")
        return f"{number.removesuffix('.0')}e{int(power)}"
    return f"{value:g}".replace("e+0", "e")


def _grid_size(panel: Panel, columns: int) -> tuple[float, float]:
    """Inches of one grid: square cells unless that makes it a thin strip."""
    layers, heads = panel.values.sizes["layer"], panel.values.sizes["head"]
    whole = {1: 4.0, 2: 2.6}.get(columns, 1.9)
    cell = min(whole / max(layers, heads), 0.45)
    shortest = 0.6 * cell * max(layers, heads)
    return max(cell * heads, shortest), max(cell * layers, shortest)


def _within(panel: Panel, wide: float) -> tuple[float, float]:
    """Inches of a grid of that width: square cells unless that makes it too high or too low."""
    layers, heads = panel.values.sizes["layer"], panel.values.sizes["head"]
    return wide, min(max(wide / heads * layers, 0.6 * wide), 1.4 * wide)
