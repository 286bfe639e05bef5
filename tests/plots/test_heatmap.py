"""Grids of heads: what is drawn where, as a reader finds it by the labels."""

# matplotlib declares colours, offsets and paths as anything that can be read as such.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false
# pyright: reportIndexIssue=false, reportOperatorIssue=false

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

from headscope.plots import style
from headscope.plots.heatmap import Panel, draw_panels
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
