"""The widget's traits are the view's state."""

from dataclasses import asdict

import pytest

from headscope.errors import ViewError
from headscope.views import head_view, model_view
from headscope.views.state import SETTINGS
from tests.views.traces import encoder_decoder_trace, random_trace


def test_every_setting_is_a_trait_with_the_views_value() -> None:
    view = model_view(random_trace(), layers=[0, 2], order="entropy", hide="first")
    for name, value in asdict(view.state).items():
        shown = getattr(view.widget, name)
        assert shown == (list(value) if isinstance(value, tuple) else value)
        assert view.widget.trait_metadata(name, "sync")
    assert set(SETTINGS) == set(asdict(view.state))


def test_the_payload_travels_once_as_bytes() -> None:
    view = head_view(random_trace())
    assert view.widget.blocks == b"".join(view.payload.blocks)
    assert sum(view.widget.header["sizes"]) == len(view.widget.blocks)


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
