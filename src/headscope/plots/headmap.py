"""Heads as points in a plane, by behaviour and by layer.

Everything is placed in inches, so that names, points, legend and margins are known not to meet:

┌ by behaviour ─┐ ┌ by layer ─────┐
│   ·  L4H2 ·   │ │   ·      ·    │ ▌ layer
│     ·   ·     │ │     ·   ·     │ ▌
└───────────────┘ └───────────────┘
  · other   ■ next token   ▲ [SEP]
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product, zip_longest

import matplotlib as mpl
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from headscope.head import name_head
from headscope.plots import LAYERS, add_axes, add_bar, fit_columns, page_width
from headscope.results.measure import Behaviour
from headscope.theme import FAINT, INK, ROLES

UNNAMED = "unnamed"  # the group of heads without a behaviour of their own
MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")  # within a group

# Inches.
SIDE = 3.9  # of a map
MARGIN, TITLE, GAP, BAR, BAR_TEXT = 0.12, 0.3, 0.25, 0.12, 0.5
LOWEST = 2.2
INSIDE = 0.4  # kept free around the outermost points, for their names
LINE = 0.2  # of the legend
ENTRIES, ENTRY = 4, 1.4  # of the legend on a line, and inches of one
DOT = 0.05  # radius of a point
NEAR, FAR = 0.045, (0.2, 0.35, 0.5)  # from a point to its name, without and with a line to it
WIDE, AXIS_TEXT = 6.4, 0.55  # of a scatter and of the text along its axes


def draw_head_map(
    positions: xr.DataArray,
    behaviour: xr.DataArray,
    behaviours: Sequence[Behaviour],
) -> Figure:
    """Two maps of the same heads: by their behaviour, and by their layer."""
    natural = 2 * MARGIN + 2 * SIDE + 2 * GAP + BAR + BAR_TEXT
    wide = page_width(natural)
    columns = fit_columns(2, natural / 2, 3.0)
    side = (wide - 2 * MARGIN - columns * GAP - BAR - BAR_TEXT) / columns
    labels, legend, entries = _labels(behaviour, behaviours, wide)
    place, high = _fit(positions.transpose("unit", "axis").values, side)
    figure = Figure(figsize=(wide, (3 - columns) * (TITLE + high) + legend + 2 * MARGIN))
    bottom = MARGIN + legend
    shift, rise = (side + GAP, 0.0) if columns == 2 else (0.0, TITLE + high)
    left = add_axes(figure, MARGIN, bottom + rise, side, high)
    right = add_axes(figure, MARGIN + shift, bottom, side, high)
    named = Names(place, _clear(labels, behaviours), high, side)
    _by_behaviour(left, named, labels, behaviours, positions["unit"].values)
    _add_legend(figure, left, entries)
    layers = np.broadcast_to(behaviour["layer"].values[:, None], behaviour.shape).ravel()
    image = right.scatter(*place.T, s=18, c=layers, cmap=LAYERS, linewidths=0)
    _add_bar(figure, image, (MARGIN + shift + side + GAP, bottom, high), "layer")
    for axes, title in ((left, "by behaviour"), (right, "by layer")):
        axes.set(title=title, xlim=(0, side), ylim=(0, high), xticks=[], yticks=[])
        axes.spines[:].set_visible(False)
    return figure


def _labels(
    behaviour: xr.DataArray, behaviours: Sequence[Behaviour], wide: float
) -> tuple[np.ndarray, float, int]:
    """The label of every head, the inches that the legend needs, and its entries on a line."""
    labels = behaviour.transpose("layer", "head").values.ravel()
    entries = max(1, min(ENTRIES, int(wide / ENTRY)))
    return labels, LINE * -(-len(behaviours) // entries), entries


def _clear(labels: np.ndarray, behaviours: Sequence[Behaviour]) -> np.ndarray:
    """The heads with a behaviour of their own."""
    unnamed = [each.name for each in behaviours if each.group == UNNAMED]
    return np.flatnonzero(~np.isin(labels, unnamed))


def draw_head_scatter(
    x: xr.DataArray,
    y: xr.DataArray,
    behaviour: xr.DataArray,
    behaviours: Sequence[Behaviour],
    names: tuple[str, str],
) -> Figure:
    """Heads by two of their measures, and by their behaviour."""
    values = [each.transpose("layer", "head").values.ravel() for each in (x, y)]
    wide = page_width(AXIS_TEXT + WIDE + MARGIN)
    across = wide - AXIS_TEXT - MARGIN
    high = min(SIDE, 0.9 * across)
    labels, legend, entries = _labels(behaviour, behaviours, wide)
    units = [name_head(*each) for each in product(x["layer"].values, x["head"].values)]
    bottom = MARGIN + legend + AXIS_TEXT
    figure = Figure(figsize=(wide, bottom + high + MARGIN))
    axes = add_axes(figure, AXIS_TEXT, bottom, across, high)
    scales = [_Scale.of(each, size) for each, size in zip(values, (across, high), strict=True)]
    place = np.stack([scale.inches(each) for scale, each in zip(scales, values, strict=True)], 1)
    named = Names(place, _clear(labels, behaviours), high, across)
    _by_behaviour(axes, named, labels, behaviours, np.array(units))
    axes.set(xlim=(0, across), ylim=(0, high), xlabel=names[0], ylabel=names[1])
    axes.set_xticks(*scales[0].ticks, fontsize="small")
    axes.set_yticks(*scales[1].ticks, fontsize="small")
    _add_legend(figure, axes, entries)
    return figure


@dataclass(frozen=True)
class _Scale:
    """Values along an axis of some inches."""

    low: float
    high: float
    size: float

    @classmethod
    def of(cls, values: np.ndarray, size: float) -> "_Scale":
        known = values[np.isfinite(values)]
        low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
        return cls(low, high if high > low else low + 1, size)

    def inches(self, values: np.ndarray) -> np.ndarray:
        """Where values lie, some room left at both ends."""
        share = (np.nan_to_num(values, nan=self.low) - self.low) / (self.high - self.low)
        return INSIDE + share * (self.size - 2 * INSIDE)

    @property
    def ticks(self) -> tuple[list[float], list[str]]:
        """Round numbers, and where they lie."""
        found = [
            tick for tick in MaxNLocator(6).tick_values(self.low, self.high)
            if self.low <= tick <= self.high
        ]  # fmt: skip
        return self.inches(np.array(found)).tolist(), [f"{tick:g}" for tick in found]


def _add_legend(figure: Figure, axes: Axes, entries: int) -> None:
    figure.legend(
        *axes.get_legend_handles_labels(), loc="lower left", ncols=entries, fontsize="small",
        bbox_to_anchor=(MARGIN / figure.get_figwidth(), 0), borderaxespad=0.3, handletextpad=0.2,
    )  # fmt: skip


def _add_bar(
    figure: Figure, image: ScalarMappable, at: tuple[float, float, float], label: str
) -> None:
    left, bottom, high = at
    bar = add_bar(figure, image, (left, bottom + 0.08 * high, BAR, 0.84 * high), label)
    bar.locator = MaxNLocator(6, integer=True)
    bar.update_ticks()


def _fit(points: np.ndarray, side: float) -> tuple[np.ndarray, float]:
    """The points in inches from the lower left corner of their map, and the map's height.

    Both axes have one scale: the longer one fills the map.
    """
    low, high = points.min(0), points.max(0)
    scale = (side - 2 * INSIDE) / max(float((high - low).max()), 1e-12)
    tall = float(np.clip((high - low)[1] * scale + 2 * INSIDE, min(LOWEST, side), side))
    return (points - (low + high) / 2) * scale + (side / 2, tall / 2), tall


def _by_behaviour(
    axes: Axes,
    named: "Names",
    labels: np.ndarray,
    behaviours: Sequence[Behaviour],
    names: np.ndarray,
) -> None:
    place = named.points
    members: list[list[int]] = []
    for each in sorted(behaviours, key=lambda each: each.group != UNNAMED):
        heads = np.flatnonzero(labels == each.name)
        axes.scatter(*place[heads].T, s=18, color=ROLES[each.group].light, linewidths=0,
                     marker=MARKS[each.number % len(MARKS)],
                     label=f"{each.name} ({len(heads)})")  # fmt: skip
        if each.group != UNNAMED:
            members.append(_apart_first(heads, place))
    for place, round_of_heads in enumerate(zip_longest(*members)):
        for unit in round_of_heads:
            if unit is not None:
                _write_name(axes, named, int(unit), str(names[unit]), must=place == 0)


def _apart_first(units: np.ndarray, place: np.ndarray) -> list[int]:
    """The heads of a behaviour, those farthest from any other point first."""
    away = np.linalg.norm(place[units, None] - place[None], axis=-1)
    away[np.arange(len(units)), units] = np.inf
    return units[np.argsort(-away.min(1), kind="stable")].tolist()


def _write_name(axes: Axes, named: "Names", unit: int, text: str, *, must: bool) -> None:
    found = named.find(unit, text, FAR if must else ())
    if found is None:
        return
    corner, is_far = found
    middle = (corner[0] + named.width(text) / 2, corner[1] + named.height / 2)
    if is_far:
        axes.plot(*zip(named.points[unit], middle, strict=True), color=FAINT, linewidth=0.5,
                  zorder=0.5)  # fmt: skip
    axes.text(*middle, text, fontsize="x-small", color=INK, ha="center", va="center")


@dataclass
class Names:
    """Finds room for the names of points: on no other name, on no point that has one.

    Every behaviour comes first once, then a second time and so on; a head without room has no name.
    """

    points: np.ndarray  # in inches
    clear: np.ndarray  # heads with a behaviour
    high: float  # inches of the map
    wide: float
    taken: list[tuple[float, float, float, float]] = field(default_factory=list)

    @property
    def height(self) -> float:
        """Of a name in inches."""
        return mpl.rcParams["font.size"] * 0.7 * 1.15 / 72

    def width(self, text: str) -> float:
        """Of a name in inches, of any common font."""
        return mpl.rcParams["font.size"] * 0.7 * 0.66 / 72 * len(text)

    def find(
        self, unit: int, text: str, far: Sequence[float] = ()
    ) -> tuple[tuple[float, float], bool] | None:
        """The lower left corner of a name, and whether a line must lead to it.

        Next to the point if there is room, else at one of the distances `far`.
        """
        others = self.points[self.clear[self.clear != unit]]
        everyone = np.delete(self.points, unit, axis=0)
        for points, distances in ((everyone, (NEAR,)), (others, (NEAR,)), (everyone, far)):
            for distance in distances:
                for corner in self._corners(unit, text, distance):
                    if self._is_free(corner, text, points):
                        self.taken.append((*corner, self.width(text), self.height))
                        return corner, distance > NEAR
        return None

    def _corners(self, unit: int, text: str, distance: float) -> Iterator[tuple[float, float]]:
        x, y = self.points[unit]
        wide, high = self.width(text), self.height
        for right, up in ((1, 1), (-1, 1), (1, -1), (-1, -1), (0, 1), (0, -1), (1, 0), (-1, 0)):
            shift = distance if right and up else distance + DOT / 2
            left = x + right * shift - wide * (1 - right) / 2
            yield float(left), float(y + up * shift - high * (1 - up) / 2)

    def _is_free(self, corner: tuple[float, float], text: str, points: np.ndarray) -> bool:
        x, y, wide, high = *corner, self.width(text), self.height
        if min(x, y) < 0 or x + wide > self.wide or y + high > self.high:
            return False
        covers = (points[:, 0] > x - DOT) & (points[:, 0] < x + wide + DOT)
        covers &= (points[:, 1] > y - DOT) & (points[:, 1] < y + high + DOT)
        on_names = any(
            x < a + w and a < x + wide and y < b + h and b < y + high for a, b, w, h in self.taken
        )
        return not covers.any() and not on_names
