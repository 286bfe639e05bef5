"""Syntax or position: two claims and a figure from shares that are known."""

from dataclasses import dataclass

import numpy as np
import pytest
import xarray as xr

from headscope.metrics.metric import Axis, Grid
from headscope.plots import style
from headscope.portrait.score import SHARES
from headscope.results.claims import Replicates, judge
from headscope.results.replicates import GROUPS
from headscope.studies.shared.syntax import (
    FIGURE,
    SYNTAX,
    classes_predict_most_of_it,
    draw_syntax,
    some_head_follows_syntax,
)
from tests.plots.canvas import outside, overlapping, texts

GRID = Grid((0, 1), 2)


@dataclass(frozen=True)
class Shares:
    """What position explains of four heads, syntax after it, and syntax alone."""

    position: tuple[float, ...] = (0.5, 0.4, 0.3, 0.2)
    after: tuple[float, ...] = (0.12, 0.02, 0.01, 0.0)
    only: tuple[float, ...] = (0.02, 0.01, 0.0, 0.0)


def result_of(shares: Shares) -> xr.Dataset:
    """A result with these shares in every group of documents, a little apart."""
    noise = 1 + np.random.default_rng(0).normal(0, 0.02, (GROUPS, 4))
    weight = np.full((GROUPS, *GRID.shape), 100.0)
    variables: dict[str, xr.DataArray] = {}
    place = {name: number for number, name in enumerate(SHARES)}
    for name, of_groups in (
        ("explained_by", {"position": shares.position, "syntax": shares.only}),
        ("explained_only", {"syntax": shares.only}),
        (SYNTAX, {"": shares.after}),
    ):
        values = np.zeros((GROUPS, 4, len(SHARES)))
        for group, of_heads in of_groups.items():
            values[..., place.get(group, 0)] = np.array(of_heads) * noise
        shaped = values.reshape(GROUPS, *GRID.shape, -1)
        axes = (Axis("explained_with", SHARES),) if name != SYNTAX else ()
        sums = shaped if axes else shaped[..., 0]
        dims = ("group", "layer", "head", *(axis.name for axis in axes))
        variables[f"{name}_numerator"] = xr.DataArray(sums * 100, dims=dims)
        variables[f"{name}_denominator"] = xr.DataArray(weight, dims=dims[:3])
        variables[name] = GRID.array(sums.mean(0), *axes)
    return xr.Dataset(variables)


def test_a_head_that_relations_explain_beyond_position_is_found_on_other_documents() -> None:
    judged = judge(some_head_follows_syntax, Replicates(result_of(Shares())))
    assert judged.holds == "yes"
    assert judged.value == pytest.approx(0.12, abs=0.005)
    assert "0.12" in judged.measured and "in L0H0" in judged.measured
    without = result_of(Shares(after=(0.02, 0.02, 0.01, 0.0)))
    assert judge(some_head_follows_syntax, Replicates(without)).holds == "no"


def test_what_only_syntax_has_is_a_share_of_what_it_adds_to_position() -> None:
    judged = judge(classes_predict_most_of_it, Replicates(result_of(Shares())))
    assert (judged.holds, judged.value) == ("yes", pytest.approx(0.03 / 0.15, abs=0.02))
    alone = result_of(Shares(only=(0.11, 0.02, 0.0, 0.0)))
    assert judge(classes_predict_most_of_it, Replicates(alone)).holds == "no"


def test_a_bar_has_three_shares_and_heads_are_in_the_order_of_syntax() -> None:
    result = result_of(Shares())
    assert all(name in result for name in FIGURE.needs)
    (axes,) = draw_syntax(result).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        "L0H0",
        "L0H1",
        "L1H0",
        "L1H1",
    ]
    parts = len(axes.containers)
    widths = np.array([bar.get_extents().width for bar in axes.patches]).reshape(parts, -1)
    widths /= axes.get_window_extent().width  # of an axis from 0 to 1
    np.testing.assert_allclose(widths[:, 0], (0.5, 0.1, 0.02), atol=0.01)
    np.testing.assert_allclose(widths[:, 3], (0.2, 0.0, 0.0), atol=0.01)


def test_words_stay_inside_and_apart_in_a_figure_of_a_column() -> None:
    with style("syntax", width=3.3):
        drawing = draw_syntax(result_of(Shares()))
        assert outside(drawing) == []
        assert list(overlapping(texts(drawing))) == []
