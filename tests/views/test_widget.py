"""The widget's traits are the view's state."""

import json
from dataclasses import asdict

import pytest

from headscope.errors import ViewError
from headscope.views import head_view, model_view
from headscope.views.model.state import ModelState
from headscope.views.state import settings_of
from tests.references.traces import encoder_decoder_trace, random_trace


def test_every_setting_is_a_trait_with_the_views_value() -> None:
    view = model_view(random_trace(), layers=[0, 2], order="entropy", hide="first")
    for name, value in asdict(view.state).items():
        shown = getattr(view.widget, name)
        assert shown == (list(value) if isinstance(value, tuple) else value)
        assert view.widget.trait_metadata(name, "sync")
    assert set(settings_of(ModelState)) == set(asdict(view.state))


def test_without_anywidget_the_widget_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headscope.views.view.find_spec", lambda name: None)
    with pytest.raises(ViewError, match=r"pip install 'headscope\[notebook\]'"):
        _ = head_view(random_trace()).widget


def test_the_payload_travels_when_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    view = head_view(random_trace())
    sent: list[tuple[object, object]] = []
    monkeypatch.setattr(view.widget, "send", lambda *said: sent.append(said))
    view.widget._send_blocks(None, {"blocks": [1, 0]}, None)
    assert sent == [({"blocks": [1, 0]}, [view.payload.blocks[1], view.payload.blocks[0]])]
    assert view.widget.header["blocks"] == len(view.payload.blocks)


def test_the_state_that_a_notebook_may_save_holds_no_weights() -> None:
    view = head_view(random_trace(layers=6))
    state = view.widget.get_state()
    code = len(state.pop("_esm")) + len(state.pop("_css"))
    assert len(json.dumps(state, default=str)) < 20_000 < code


def test_traits_are_set_from_python_and_observed() -> None:
    widget = head_view(random_trace()).widget
    seen: list[int] = []
    widget.observe(lambda change: seen.append(change["new"]), "layer")
    widget.layer = 2
    widget.heads = [1]
    assert (seen, widget.heads) == ([2], [1])


@pytest.mark.parametrize(("name", "value"), [("layer", 7), ("heads", [0, 8]), ("mass", 2.0)])
def test_a_trait_refuses_what_the_trace_does_not_have(name: str, value: object) -> None:
    widget = head_view(random_trace()).widget
    before = getattr(widget, name)
    with pytest.raises(ViewError):
        setattr(widget, name, value)
    assert getattr(widget, name) == before


def test_a_stack_is_checked_by_name() -> None:
    widget = head_view(encoder_decoder_trace()).widget
    widget.stack = "cross"
    with pytest.raises(ViewError, match="it has encoder, decoder, cross"):
        widget.stack = "self"
