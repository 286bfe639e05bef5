"""Figures of the second part in the width of a column."""

import numpy as np
import pytest
import xarray as xr

from headscope.plots import style
from headscope.studies.clark2019.probes.figures import PROBE_NAMES, draw_learning
from tests.plots.canvas import outside, overlapping, texts


@pytest.mark.parametrize("width", [3.2, 3.3, 6.0])
def test_the_legend_of_the_learning_curve_stays_below_its_axis(width: float) -> None:
    shares = [0.25, 0.5, 0.75, 1.0]
    values = np.linspace(0.2, 0.8, 4 * len(PROBE_NAMES)).reshape(-1, 4)
    curves = {"probe": list(PROBE_NAMES), "share": shares}
    result = xr.Dataset({"parsing_curve": (("probe", "share"), values)}, curves)
    with style("learning", width=width):
        drawing = draw_learning(result)
        assert drawing.get_figwidth() == pytest.approx(width)
        assert outside(drawing) == []
        assert list(overlapping(texts(drawing))) == []
