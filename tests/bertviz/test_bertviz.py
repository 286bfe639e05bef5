"""BertViz's calls, word for word, over Headscope's views."""

import inspect
from importlib import import_module
from typing import Any

import numpy as np
import pytest
import torch

from headscope import bertviz
from headscope.bertviz.attention import Page
from headscope.errors import CaptureError, ViewError


def head_view(*arguments: Any, **named: Any) -> Page:
    """The head view that comes back instead of being shown."""
    page = bertviz.head_view(*arguments, html_action="return", **named)
    assert page is not None
    return page


TOKENS = ["[CLS]", "Ġthe", "cat", "[SEP]", "▁sat", "[SEP]"]
ATTENTION = tuple(torch.rand(1, 3, 6, 6).softmax(-1) for _ in range(4))

GIVEN = {"attention": ATTENTION, "tokens": TOKENS}

# The parameters of bertviz 1.4.1, in order.
PARAMETERS = {
    "head_view": "attention tokens sentence_b_start prettify_tokens layer heads encoder_attention "
    "decoder_attention cross_attention encoder_tokens decoder_tokens include_layers html_action",
    "model_view": "attention tokens sentence_b_start prettify_tokens display_mode "
    "encoder_attention decoder_attention cross_attention encoder_tokens decoder_tokens "
    "include_layers include_heads html_action",
    "show": "model model_type tokenizer sentence_a sentence_b display_mode layer head html_action",
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_names_and_order_of_the_parameters_are_bertvizs(name: str) -> None:
    signature = inspect.signature(getattr(bertviz, name))
    assert " ".join(signature.parameters) == PARAMETERS[name]


def test_head_view_of_a_sentence_pair() -> None:
    view = head_view(ATTENTION, TOKENS, 4, layer=2, heads=[0, 2])
    assert (view.state.layer, view.state.heads) == (2, (0, 2))
    side = view.trace.default.queries
    assert side.labels == ("[CLS]", " the", "cat", "[SEP]", " sat", "[SEP]")
    assert side.segments == (0, 0, 0, 0, 1, 1)
    assert side.special == (True, False, False, True, False, True)
    np.testing.assert_allclose(view.trace.weights[2], ATTENTION[2][0])


def test_numbers_below_zero_count_from_the_end_as_in_bertviz() -> None:
    assert head_view(ATTENTION, TOKENS, include_layers=[-1]).trace.layers == (3,)
    side = head_view(ATTENTION, TOKENS, -2).trace.default.queries
    assert side.segments == (0, 0, 0, 0, 1, 1)


def test_layers_may_be_stacked_with_and_without_a_batch_axis() -> None:
    for stacked in (torch.stack(ATTENTION), torch.cat(ATTENTION), torch.stack(ATTENTION).numpy()):
        view = head_view(stacked, TOKENS)
        assert view.trace.layers == (0, 1, 2, 3)
        np.testing.assert_allclose(view.trace.weights[3], ATTENTION[3][0])


@pytest.mark.parametrize("name", ["head_view", "model_view"])
def test_a_view_shows_itself_wherever_the_call_stands(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[Page] = []
    monkeypatch.setattr("IPython.display.display", shown.append)
    assert getattr(bertviz, name)(ATTENTION, TOKENS) is None
    assert [f"{page.kind}_view" for page in shown] == [name]
    assert getattr(bertviz, name)(ATTENTION, TOKENS, html_action="return").data
    assert len(shown) == 1


def test_the_modules_have_bertvizs_names() -> None:
    for module, name in [("head_view",) * 2, ("model_view",) * 2, ("neuron_view", "show")]:
        found = getattr(import_module(f"headscope.bertviz.{module}"), name)
        assert found is getattr(bertviz, name)
    classes = import_module("headscope.bertviz.transformers_neuron_view")
    assert classes.BertModel.__name__ == "BertModel"


def test_tokens_stay_raw_on_request() -> None:
    view = head_view(ATTENTION, TOKENS, prettify_tokens=False)
    assert view.trace.tokens == tuple(TOKENS)


def test_included_layers_and_heads_keep_their_numbers() -> None:
    view = bertviz.model_view(
        ATTENTION, TOKENS, include_layers=[3, 1], include_heads=[2], html_action="return"
    )
    assert view is not None
    assert (view.trace.layers, view.trace.heads) == ((1, 3), (2,))
    np.testing.assert_allclose(view.trace.weights[3][0], ATTENTION[3][0, 2])
    assert view.state.theme == "dark"


def test_encoder_decoder_and_cross_attention() -> None:
    target = ["x", "y"]
    view = head_view(
        encoder_attention=ATTENTION,
        decoder_attention=[torch.full((1, 3, 2, 2), 0.5)] * 4,
        cross_attention=[torch.full((1, 3, 2, 6), 1 / 6)] * 4,
        encoder_tokens=TOKENS,
        decoder_tokens=target,
    )
    stacks = view.trace.stacks
    assert list(stacks) == ["encoder", "decoder", "cross"]
    assert stacks["cross"].queries.labels == ("x", "y")
    assert len(stacks["cross"].keys.labels) == 6


def test_what_comes_back_shows_itself_and_holds_its_page() -> None:
    view = head_view(ATTENTION, TOKENS)
    assert view.data.startswith("<!doctype html>")
    assert "<iframe" in view._repr_html_()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ({}, "There is nothing to show"),
        ({"attention": (), "tokens": TOKENS}, 'is empty: .* attn_implementation="eager"'),
        ({"attention": (), "tokens": TOKENS}, r"outputs\[-1\] may be an empty tuple of cross"),
        ({"attention": None, "tokens": TOKENS}, 'is None: .* attn_implementation="eager"'),
        ({"attention": [None] * 4, "tokens": TOKENS}, 'None in some layers: .*"eager"'),
        *(
            ({**GIVEN, "sentence_b_start": start}, f"is {start}; .* at 1 to 5")
            for start in (0, 6, 99, -6)
        ),
        ({**GIVEN, "heads": 0}, r"heads is 0; give a list, such as \[0\]"),
        ({**GIVEN, "heads": []}, "heads is empty; name at least one"),
        ({**GIVEN, "heads": [-1]}, "Head -1 is not in this trace"),
        ({**GIVEN, "layer": -9}, "Layer -9 is not in this trace"),
        ({**GIVEN, "include_layers": []}, "asks for no layer; there are 0 to 3"),
        ({**GIVEN, "include_layers": [-5]}, "asks for layer -5; there are 0 to 3"),
        ({**GIVEN, "include_layers": 2}, r"include_layers is 2; give a list, such as \[2\]"),
        ({**GIVEN, "encoder_tokens": TOKENS}, "Give either"),
        ({"attention": ATTENTION}, "comes without tokens; give tokens"),
        (
            {"cross_attention": ATTENTION, "encoder_tokens": TOKENS},
            "give encoder_tokens and decoder_tokens",
        ),
        ({"attention": ATTENTION, "tokens": TOKENS, "encoder_attention": ATTENTION}, "Give either"),
        (
            {"attention": ATTENTION, "tokens": TOKENS, "include_layers": [9]},
            "asks for layer 9; there are 0 to 3",
        ),
        ({"attention": ATTENTION, "tokens": TOKENS, "layer": 4}, "Layer 4 is not in this trace"),
        (
            {"attention": ATTENTION, "tokens": TOKENS, "html_action": "file"},
            "choose 'view' or 'return'",
        ),
    ],
)
def test_mistakes_are_named(call: dict[str, Any], message: str) -> None:
    with pytest.raises(ViewError, match=message):
        bertviz.head_view(**call)


def test_weights_that_do_not_fit_the_tokens_are_refused() -> None:
    with pytest.raises(CaptureError, match="need"):
        bertviz.head_view(ATTENTION, TOKENS[:-1])
