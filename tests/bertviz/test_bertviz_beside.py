"""The calls that BertViz documents, made to BertViz and to Headscope in the same notebook cell."""

import json
import re
from collections.abc import Iterator
from typing import Any

import bertviz as original
import pytest
import torch
from bertviz.neuron_view import show as theirs
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from headscope import bertviz as ours
from headscope.bertviz.neuron_view import show
from headscope.errors import HeadscopeError

TOKENS = ["[CLS]", "Ġthe", "cat", "[SEP]", "▁sat", "[SEP]"]
TARGET = ["x", "y"]
RANDOM = torch.Generator().manual_seed(0)


def layers(*shape: int) -> tuple[torch.Tensor, ...]:
    return tuple(torch.rand(1, 3, *shape, generator=RANDOM).softmax(-1) for _ in range(7))


ATTENTION = layers(6, 6)
# As BertViz's own page shows them, and what its parameters allow besides.
CALLS = {
    "model_view(attention, tokens)": "model",
    'model_view(attention, tokens, display_mode="light")': "model",
    "model_view(attention, tokens, include_layers=[5, 6])": "model",
    "model_view(attention, tokens, include_layers=[5], include_heads=[0, 2])": "model",
    "model_view(encoder_attention=attention, decoder_attention=decoder, cross_attention=cross, "
    "encoder_tokens=tokens, decoder_tokens=target)": "model",
    "head_view(attention, tokens)": "head",
    "head_view(attention, tokens, layer=2, heads=[1, 2])": "head",
    "head_view(attention, tokens, 4)": "head",
    "head_view(attention, tokens, sentence_b_start=-2)": "head",
    "head_view(attention, tokens, include_layers=[-1])": "head",
    "head_view(torch.stack(attention), tokens)": "head",
    "head_view(attention, tokens, prettify_tokens=False)": "head",
    "head_view(cross_attention=cross, encoder_tokens=tokens, decoder_tokens=target)": "head",
}
NAMES = {
    "torch": torch,
    "tokens": TOKENS,
    "target": TARGET,
    "attention": ATTENTION,
    "decoder": layers(2, 2),
    "cross": layers(2, 6),
}
# What BertViz ends in IndexError, TypeError, AttributeError or an empty page for.
REFUSED = [
    "head_view((), tokens)",
    "head_view([None] * 7, tokens)",
    "head_view(attention, tokens, 99)",
    "head_view(attention, tokens, 0)",
    "head_view(attention, tokens, include_layers=[9])",
    "head_view(attention, tokens[:-1])",
    "head_view(attention)",
    "head_view(attention, tokens, encoder_tokens=tokens)",
    "head_view()",
]


@pytest.fixture
def shell() -> Iterator[InteractiveShell]:
    """An IPython like that of a notebook."""
    made = InteractiveShell.instance()
    yield made
    InteractiveShell.clear_instance()


def returned(package: Any, call: str) -> Any:
    asked = f"{call[:-1]}, html_action='return')"
    functions = {"head_view": package.head_view, "model_view": package.model_view}
    return eval(asked, {**NAMES, **functions})


def parameters(page: Any) -> dict[str, Any]:
    """What BertViz hands to its page."""
    found = re.search(r"params = (\{.*\});", page.data)
    assert found is not None
    return json.loads(found[1])


@pytest.mark.parametrize("call", CALLS)
def test_both_show_the_same_tokens_layers_and_weights(call: str) -> None:
    theirs, view = parameters(returned(original, call)), returned(ours, call)
    assert view.kind == CALLS[call]
    known = [number % len(ATTENTION) for number in theirs["include_layers"]]
    for shown, stack in zip(theirs["attention"], view.trace.stacks.values(), strict=False):
        assert list(stack.layers) == sorted(known)
        assert list(stack.queries.labels) == shown["left_text"]
        assert list(stack.keys.labels) == shown["right_text"]
        for layer, weights in zip(known, shown["attn"], strict=True):
            torch.testing.assert_close(stack.weights[layer], torch.tensor(weights))


@pytest.mark.parametrize("package", [original, ours], ids=["BertViz", "Headscope"])
@pytest.mark.parametrize("call", ["head_view(attention, tokens)", "model_view(attention, tokens)"])
def test_both_show_a_view_in_the_middle_of_a_cell(
    call: str, package: Any, shell: InteractiveShell
) -> None:
    functions = {"head_view": package.head_view, "model_view": package.model_view}
    shell.push({**NAMES, **functions})
    with capture_output() as captured:
        done = shell.run_cell(f"for _ in range(1):\n    said = {call}\nafter = 1")
    assert done.success
    assert shell.user_ns["said"] is None
    assert captured.outputs


@pytest.mark.parametrize("call", REFUSED)
def test_what_bertviz_cannot_show_is_refused_in_a_sentence(call: str) -> None:
    with pytest.raises((ValueError, IndexError, AttributeError, RuntimeError)):
        returned(original, call.replace("head_view()", "head_view(None)"))
    with pytest.raises(HeadscopeError, match=r"[.:;]"):
        returned(ours, call.replace("head_view()", "head_view(None)"))


def test_the_neuron_view_is_imported_as_in_bertviz() -> None:
    assert (
        show.__code__.co_varnames[: show.__code__.co_argcount]
        == (theirs.__code__.co_varnames[: theirs.__code__.co_argcount])
    )
