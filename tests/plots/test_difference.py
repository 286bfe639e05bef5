"""The figure of a text without some heads shows the numbers of the difference."""

from typing import Any

import numpy as np
import pytest

from tests.references.tiny_models import bidirectional_model, causal_model

TEXT = "the old cat sees a quiet gardener ."


def test_maps_share_their_colours_and_bars_are_the_probabilities() -> None:
    difference = causal_model().trace(TEXT, without=["L1H0"]).difference()
    figure = difference.figure()
    maps = [axes for axes in figure.axes if axes.images]
    assert [axes.get_title(loc="left") or axes.get_title() for axes in maps] == [
        "without L1H0", "without L1H1 (control)",
    ]  # fmt: skip
    assert difference.control_moved is not None
    for axes, values in zip(maps, (difference.moved, difference.control_moved), strict=True):
        np.testing.assert_allclose(np.asarray(axes.images[0].get_array()), values)
    assert maps[0].images[0].get_clim() == maps[1].images[0].get_clim()
    patches: list[Any] = list(figure.axes[-1].patches)
    bars = [bar.get_width() for bar in patches]
    tokens = difference.next_tokens
    of_passes = [[token.plain, token.without, token.control] for token in tokens]
    assert bars == pytest.approx(np.transpose(np.array(of_passes, float)).ravel().tolist())


def test_a_masked_model_has_maps_alone() -> None:
    figure = bidirectional_model().trace(TEXT, without=["L0H0"]).difference().figure()
    assert [bool(axes.patches) for axes in figure.axes] == [False, False, False]
