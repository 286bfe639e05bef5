"""Maps of heads: names, points, legend and labels do not cover one another, however many heads."""

# matplotlib declares colours, offsets and paths as anything that can be read as such.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false
# pyright: reportIndexIssue=false, reportOptionalMemberAccess=false, reportOperatorIssue=false

import re
from typing import cast

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

from headscope.plots import style
from headscope.plots.headmap import draw_head_map
from headscope.results.measure import Behaviour, RoleGroup
from headscope.theme import ROLES
from tests.plots.canvas import box, draw, outside, overlapping, texts

SIZES = pytest.mark.parametrize(("layers", "heads"), [(8, 8), (6, 12), (30, 9)])
NAME = re.compile(r"L\d+H\d+")


def units(layers: int, heads: int) -> np.ndarray:
    return np.array([f"L{layer}H{head}" for layer in range(layers) for head in range(heads)])


def make_map(layers: int, heads: int, kinds: int, clear: float) -> Figure:
    rng = np.random.default_rng(layers)
    count = layers * heads
    names = np.array(["other", *[f"behaviour {n}" for n in range(kinds)]])
    chosen = np.where(rng.random(count) < clear, rng.integers(1, kinds + 1, count), 0)
    chosen[:kinds] = np.arange(1, kinds + 1)
    behaviour = xr.DataArray(
        names[chosen].reshape(layers, heads),
        dims=("layer", "head"),
        coords={"layer": np.arange(layers)},
    )
    groups = [*ROLES][:-1]  # all but "unnamed", round and round
    behaviours = [Behaviour("other", "unnamed", 0)]
    for n in range(kinds):
        number, group = divmod(n, len(groups))
        behaviours.append(Behaviour(f"behaviour {n}", cast(RoleGroup, groups[group]), number))
    points = rng.normal(size=(count, 2)) * (1, 0.6)
    positions = xr.DataArray(
        points, dims=("unit", "axis"), coords={"unit": units(layers, heads), "axis": ["x", "y"]}
    )
    with style("map"):
        return draw(draw_head_map(positions, behaviour, behaviours))


def names_of(figure: Figure) -> list:
    return [text for text in texts(figure) if NAME.fullmatch(text.get_text())]


@SIZES
def test_no_name_covers_another_or_a_head_with_a_behaviour(layers: int, heads: int) -> None:
    figure = make_map(layers, heads, 9, clear=0.5)
    assert not outside(figure)
    names = names_of(figure)
    assert not list(overlapping(names))
    left = figure.axes[0]
    clear = np.concatenate([each.get_offsets() for each in left.collections[1:]])
    pixels = left.transData.transform(clear)
    for name in names:
        own = box(name)
        inside = (pixels > (own.x0, own.y0)).all(1) & (pixels < (own.x1, own.y1)).all(1)
        assert not inside.any(), name.get_text()


@SIZES
def test_every_behaviour_has_a_head_with_a_name_and_an_entry_of_its_own(
    layers: int, heads: int
) -> None:
    figure = make_map(layers, heads, 9, clear=0.7)  # far more than 40 clear heads
    drawn = {str(each.get_label()).split(" (")[0]: each for each in figure.axes[0].collections}
    shown = {name.get_text() for name in names_of(figure)}
    places = dict(
        zip(units(layers, heads), figure.axes[1].collections[0].get_offsets(), strict=True)
    )
    for label, points in drawn.items():
        if label != "other":
            own = {name for name, at in places.items() if (points.get_offsets() == at).all(1).any()}
            assert own & shown, label
    looks = {(tuple(each.get_facecolor()[0]), each.get_paths()[0].vertices.tobytes())
             for each in drawn.values()}  # fmt: skip
    assert len(looks) == len(drawn) == 10


@SIZES
def test_the_legend_lies_on_no_point(layers: int, heads: int) -> None:
    figure = make_map(layers, heads, 12, clear=0.4)
    (legend,) = figure.legends
    own = legend.get_window_extent()
    assert own.x0 >= 0 and own.y0 >= -1 and own.x1 <= figure.bbox.x1
    for axes in figure.axes[:2]:
        for points in axes.collections:
            pixels = axes.transData.transform(points.get_offsets())
            assert (pixels[:, 1] > own.y1).all()
    counts = [int(text.get_text().split("(")[1][:-1]) for text in legend.get_texts()]
    assert sum(counts) == layers * heads
