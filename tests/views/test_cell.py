"""What a notebook cell keeps of a view."""

import base64
import io

import numpy as np
import pytest
from PIL import Image

from headscope.model.trace import Trace
from headscope.views import View, cell, head_view, model_view, neuron_view
from headscope.views.view import describe
from tests.references.traces import known_trace, random_trace

WIDGET = "application/vnd.jupyter.widget-view+json"
VIEWS = {
    "head": head_view(random_trace(), layer=0, heads=[0, 1]),
    "model": model_view(random_trace()),
    "neuron": neuron_view(random_trace(), layer=0, head=0, pinned=4),
}


@pytest.mark.parametrize("kind", VIEWS)
def test_a_cell_has_a_picture_a_page_and_a_widget(kind: str) -> None:
    view: View = VIEWS[kind]
    picture, page, live = cell.outputs(view)
    data = base64.b64decode(picture["image/png"])
    assert len(data) < 100_000
    image = Image.open(io.BytesIO(data))
    assert 200 < image.width < 1200 and len(image.convert("RGB").getcolors(1 << 24) or []) > 8
    assert picture["text/plain"].startswith(f"{kind.capitalize()} view of random-model")
    assert "<iframe" in page["text/html"] and "text/plain" in page
    assert live[WIDGET]["model_id"] == view.widget.model_id
    assert view.widget.picture and picture["image/png"].endswith(view.widget.picture)


def test_without_anywidget_there_is_no_widget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cell, "find_spec", lambda name: None)
    assert [sorted(bundle) for bundle in cell.outputs(VIEWS["head"])] == [
        ["image/png", "text/plain"],
        ["text/html", "text/plain"],
    ]


def test_a_large_page_is_cut_to_its_layer_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    view = head_view(random_trace(layers=40), layer=3, heads=[0])
    whole, part = cell._page_bytes(view), cell._page_bytes(cell._shown_layer(view) or view)
    assert part < whole
    monkeypatch.setattr(cell, "MOST_BYTES", (whole + part) / 2)
    _, page, _ = cell.outputs(view)
    assert "layer 3 alone is shown here" in page["text/html"]
    assert "&quot;layers&quot;:[3]" in page["text/html"]


def test_a_page_that_stays_too_large_is_left_out_and_says_how_to_keep_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cell, "MOST_BYTES", 100_000)
    for view in VIEWS.values():
        _, page, _ = cell.outputs(view)
        assert "<iframe" not in page["text/html"]
        assert "a cell keeps 0.1 MB" in page["text/html"]
        assert 'view.save("view.html")' in page["text/html"]
        assert len(page["text/html"]) < 2000


def test_a_long_text_keeps_a_matrix_as_its_picture() -> None:
    weights = np.tril(np.ones((1, 2, 60, 60)))
    trace = Trace.from_weights(weights / weights.sum(-1, keepdims=True), ["x"] * 60)
    picture, *_ = cell.outputs(head_view(trace, layer=0, heads=[0, 1], hide=()))
    image = np.asarray(Image.open(io.BytesIO(base64.b64decode(picture["image/png"]))).convert("L"))
    corners = image[int(0.25 * len(image)) :][: int(0.6 * len(image))]
    left, right = corners[:, : corners.shape[1] // 3].mean(), corners[:20, -60:-40].mean()
    assert left < right  # attended tokens lie before their queries


def test_a_view_is_described_in_words() -> None:
    view = head_view(known_trace(), heads=[0], hide=())
    assert describe(view).splitlines() == [
        "Head view of known · layer 0, head 0 · 3 tokens",
        "one two three",
        "Strongest: L0H0: two → two 0.75; L0H0: three → three 0.60; L0H0: three → two 0.30; "
        "L0H0: two → one 0.25; L0H0: three → one 0.10",
    ]


def test_a_terminal_gets_the_words(capsys: pytest.CaptureFixture[str]) -> None:
    VIEWS["neuron"]._ipython_display_()
    assert capsys.readouterr().out.startswith("Neuron view of random-model · L0H0 · 10 tokens")
