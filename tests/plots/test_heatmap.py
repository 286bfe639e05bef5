"""Grids of heads: what is drawn where, as a reader finds it by the labels."""

# matplotlib declares colours, offsets and paths as anything that can be read as such.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false
# pyright: reportIndexIssue=false, reportOperatorIssue=false, reportOptionalMemberAccess=false

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.collections import LineCollection
from matplotlib.colors import same_color

from headscope.plots import style
from headscope.plots.heatmap import Panel, draw_panels
from headscope.theme import SECOND
from tests.plots.canvas import draw, ends_of, outside, overlapping, read_off, texts


def panel_of(values: np.ndarray, **further: object) -> Panel:
    layers, heads = values.shape
    coords = {"layer": range(layers), "head": range(heads)}
    found = xr.DataArray(values, coords=coords, dims=list(coords))
    return Panel("X", found, found.mean("head"), **further)


@pytest.mark.parametrize(("layers", "heads"), [(8, 8), (6, 12), (30, 9), (130, 4)])
def test_the_ticks_of_neighbouring_axes_do_not_meet(layers: int, heads: int) -> None:
    values = np.random.default_rng(0).random((layers, heads)) / 1000  # labels such as 5e-4
    panel = panel_of(values, baseline=0.0003)
    panel = replace(panel, errors=panel.by_layer)
    with style("panels"):
        figure = draw(draw_panels([panel] * 5, 3, "pooled share"))
    assert not outside(figure)
    assert not list(overlapping(texts(figure)))
    for axes in figure.axes:
        zero, number = ends_of(axes)
        assert zero.get_text() == "0" and zero.get_position() < number.get_position()


@settings(max_examples=25)
@given(st.data())
def test_a_panel_shows_every_value_where_its_ticks_say(data: st.DataObject) -> None:
    layers, heads = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 5))
    number = st.floats(1e-6, 1e4)
    values = np.array([[data.draw(number) for _ in range(heads)] for _ in range(layers)])
    baseline = float(values.mean())
    panel = panel_of(values, baseline=baseline, from_zero=data.draw(st.booleans()))
    (axes,) = draw_panels([panel], 1, "mean").axes
    np.testing.assert_array_equal(axes.images[0].get_array(), values)
    assert read_off(axes, axes.get_lines()[0].get_xdata()[0]) == pytest.approx(baseline, rel=1e-3)
    bars = [shape.vertices[:, 0].max() for shape in axes.collections[0].get_paths()]
    assert [read_off(axes, end) for end in bars] == pytest.approx(values.mean(1), rel=1e-3)
    scale = axes.images[1]
    assert scale.get_clim() == axes.images[0].get_clim()
    low, high = scale.get_clim()
    bottom, top = scale.get_extent()[2:]
    beside = [text for text in axes.texts if text.get_position()[0] > scale.get_extent()[1]]
    for text in beside:
        place = bottom + (float(text.get_text()) - low) / (high - low) * (top - bottom)
        assert text.get_position()[1] == pytest.approx(place, abs=0.02)
    assert len({text.get_text() for text in beside}) == len(beside) >= 1


@settings(max_examples=25)
@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 100))
def test_labels_errors_and_bars_stand_beside_their_cells(
    layers: int, heads: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    values = rng.random((layers, heads))
    values[0, 0] = np.nan
    first = 10 * seed  # layers of a hybrid model go by their own numbers
    panel = panel_of(values, baseline=0.5, from_zero=True)
    panel = replace(
        panel,
        values=panel.values.assign_coords(layer=first + np.arange(layers)),
        by_layer=panel.by_layer.fillna(0.3),
        errors=0.02 * panel.by_layer.fillna(0.3),
    )
    (axes,) = draw_panels([panel], 1, "mean").axes
    image = axes.images[0]
    left, right, bottom, top = image.get_extent()
    assert image.origin == "upper" and image.get_array().mask[0, 0]
    columns = [text for text in axes.texts if text.get_position()[1] < bottom]
    named = {text.get_text(): text.get_position()[0] for text in columns[:heads]}
    wide, high = (right - left) / heads, (top - bottom) / layers
    assert named == pytest.approx({str(n): left + (n + 0.5) * wide for n in range(heads)})
    rows = {f"{first + n}": top - (n + 0.5) * high for n in range(layers)}
    beside = [text for text in axes.texts if text.get_horizontalalignment() == "right"]
    places = {text.get_text(): text.get_position()[1] for text in beside}
    assert {name: places[name] for name in rows} == pytest.approx(rows)
    bars, errors = axes.collections[:2]
    middles = [shape.vertices[:4, 1].mean() for shape in bars.get_paths()]
    assert middles == pytest.approx(list(rows.values()))
    for segment, y, mean in zip(errors.get_segments(), rows.values(), panel.by_layer, strict=True):
        assert segment[:, 1] == pytest.approx([y, y])
        ends = [read_off(axes, x) for x in segment[:, 0]]
        assert ends == pytest.approx([float(mean) * 0.96, float(mean) * 1.04], rel=1e-3)


@pytest.mark.parametrize(("baseline", "is_marked"), [(0.25, True), (0.75, True), (1.5, False)])
def test_the_baseline_is_marked_among_the_colours_that_it_lies_between(
    baseline: float, is_marked: bool
) -> None:
    (axes,) = draw_panels([panel_of(np.array([[0.5, 1.0]]), baseline=baseline)], 1, "mean").axes
    lines = [each for each in axes.collections if isinstance(each, LineCollection)]
    marks = [each for each in lines if same_color(each.get_color(), SECOND)]
    assert len(marks) == is_marked
    for mark in marks:
        bottom, top = axes.images[1].get_extent()[2:]
        heights = mark.get_segments()[0][:, 1]
        assert heights == pytest.approx([bottom + baseline * (top - bottom)] * 2)
