"""BertViz's calls, word for word, over Headscope's views."""

import inspect
from typing import Any

import numpy as np
import pytest
import torch

from headscope import bertviz
from headscope.errors import CaptureError, ViewError

TOKENS = ["[CLS]", "Ġthe", "cat", "[SEP]", "▁sat", "[SEP]"]
ATTENTION = tuple(torch.rand(1, 3, 6, 6).softmax(-1) for _ in range(4))

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
    view = bertviz.head_view(ATTENTION, TOKENS, 4, layer=2, heads=[0, 2])
    assert (view.state.layer, view.state.heads) == (2, (0, 2))
    side = view.trace.default.queries
    assert side.tokens == ("[CLS]", " the", "cat", "[SEP]", " sat", "[SEP]")
    assert side.segments == (0, 0, 0, 0, 1, 1)
    assert side.special == (True, False, False, True, False, True)
    np.testing.assert_allclose(view.trace.weights[2], ATTENTION[2][0])


def test_tokens_stay_raw_on_request() -> None:
    view = bertviz.head_view(ATTENTION, TOKENS, prettify_tokens=False)
    assert view.trace.tokens == tuple(TOKENS)


def test_included_layers_and_heads_keep_their_numbers() -> None:
    view = bertviz.model_view(ATTENTION, TOKENS, include_layers=[3, 1], include_heads=[2])
    assert (view.trace.layers, view.trace.heads) == ((1, 3), (2,))
    np.testing.assert_allclose(view.trace.weights[3][0], ATTENTION[3][0, 2])
    assert view.state.theme == "dark"


def test_encoder_decoder_and_cross_attention() -> None:
    target = ["x", "y"]
    view = bertviz.head_view(
        encoder_attention=ATTENTION,
        decoder_attention=[torch.full((1, 3, 2, 2), 0.5)] * 4,
        cross_attention=[torch.full((1, 3, 2, 6), 1 / 6)] * 4,
        encoder_tokens=TOKENS,
        decoder_tokens=target,
    )
    stacks = view.trace.stacks
    assert list(stacks) == ["encoder", "decoder", "cross"]
    assert stacks["cross"].queries.tokens == ("x", "y")
    assert len(stacks["cross"].keys.tokens) == 6


def test_what_comes_back_shows_itself_and_holds_its_page() -> None:
    view = bertviz.head_view(ATTENTION, TOKENS, html_action="return")
    assert view.data.startswith("<!doctype html>")
    assert "application/vnd.jupyter.widget-view+json" in view._repr_mimebundle_()[0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ({}, "There is nothing to show"),
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
