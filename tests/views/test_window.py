"""Long inputs travel as tiles and are shown a window at a time."""

import numpy as np
import pytest

from headscope.errors import ViewError
from headscope.model.trace import Trace
from headscope.views import head_view, model_view, neuron_view, window
from headscope.views.figures import figure
from tests.references.decoding import dequantise_tile
from tests.references.traces import encoder_decoder_trace, random_trace, side

TILE = 4


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window, "TILE", TILE)


def long_trace(tokens: int = 14) -> Trace:
    return random_trace(tokens=side([f"t{i}" for i in range(tokens)]))


def test_the_tiles_of_a_layer_give_its_weights_back() -> None:
    trace = long_trace()
    payload = head_view(trace).payload
    assert payload.is_long and payload.header["tile"] == TILE
    for layer, entry in payload.header["stacks"][0]["sets"]["raw"]["layers"].items():
        rows = []
        for row, queries in zip(entry["tiles"], window.tiles(14), strict=True):
            shapes = [(4, queries.stop - queries.start, s.stop - s.start) for s in window.tiles(14)]
            pairs = zip(row, shapes, strict=True)
            rows.append(
                np.concatenate([dequantise_tile(payload.blocks[n], s) for n, s in pairs], 2)
            )
        back = np.concatenate(rows, 1)
        np.testing.assert_allclose(back, trace.weights[int(layer)], atol=7.7e-6)


def test_an_input_that_fits_one_window_is_not_cut() -> None:
    payload = head_view(long_trace(2 * TILE)).payload
    assert not payload.is_long
    assert "block" in payload.header["stacks"][0]["sets"]["raw"]["layers"]["0"]


def test_the_neuron_view_is_never_cut() -> None:
    assert not neuron_view(long_trace()).payload.is_long


def test_windows_overlap_by_a_tile_and_end_with_the_input() -> None:
    stack = long_trace().default
    assert window.last_window(14) == 2
    assert window.spans(stack, (0, 2)) == (slice(0, 8), slice(8, 14))
    assert window.spans(stack, (1, 1)) == (slice(4, 12), slice(4, 12))


@pytest.mark.parametrize(("pinned", "expected"), [(0, 0), (5, 1), (9, 2), (13, 2)])
def test_a_pinned_token_opens_the_window_that_has_it(pinned: int, expected: int) -> None:
    state = head_view(long_trace(), pinned=pinned).state
    assert state.window == (expected, expected)


def test_a_window_beyond_the_input_is_refused() -> None:
    with pytest.raises(ViewError, match=r"window is \(3, 0\); .* at most 2 and 2"):
        head_view(long_trace(), window=(3, 0))
    with pytest.raises(ViewError, match="at most 0 and 0"):
        head_view(long_trace(6), window=(1, 0))


def test_rollout_is_left_out_with_the_reason() -> None:
    missing = head_view(long_trace()).payload.header["stacks"][0]["missing"]
    assert "more than 8 tokens" in missing["rollout"]


def test_a_figure_shows_the_tokens_of_its_window() -> None:
    view = head_view(long_trace(), window=(1, 0), pinned=5)
    drawn = figure(view.trace, "head", view.state)
    texts = [text.get_text() for text in drawn.axes[0].texts]
    assert texts[:8] == [f"t{i}" for i in range(4, 12)]
    assert texts[8:16] == [f"t{i}" for i in range(8)]


def test_both_axes_of_cross_attention_have_their_own_windows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(window, "TILE", 2)
    trace = encoder_decoder_trace()
    cross = trace.stacks["cross"]
    lengths = (len(cross.queries), len(cross.keys))
    assert window.is_long(cross) and lengths[0] != lengths[1]
    payload = model_view(trace, stack="cross").payload
    tiles = payload.header["stacks"][2]["sets"]["raw"]["layers"]["0"]["tiles"]
    assert (len(tiles), len(tiles[0])) == tuple(-(-length // 2) for length in lengths)


def test_the_widget_sends_the_blocks_of_a_long_input_when_asked() -> None:
    view = head_view(long_trace())
    assert view.widget.header["blocks"] == len(view.payload.blocks)
    sent = []
    view.widget.send = lambda content, buffers=None: sent.append((content, buffers))
    view.widget._send_blocks(view.widget, {"blocks": [3, 1]}, [])
    assert sent == [({"blocks": [3, 1]}, [view.payload.blocks[3], view.payload.blocks[1]])]
