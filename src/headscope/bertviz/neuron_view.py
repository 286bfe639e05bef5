"""BertViz's neuron view."""

from typing import TYPE_CHECKING, Literal

from headscope.bertviz.attention import Action, Page, act, check_action
from headscope.views import neuron_view

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


def show(
    model: "PreTrainedModel",
    model_type: str | None,
    tokenizer: "PreTrainedTokenizerBase",
    sentence_a: str,
    sentence_b: str | None = None,
    display_mode: Literal["light", "dark"] = "dark",
    layer: int | None = None,
    head: int | None = None,
    html_action: Action = "view",
) -> Page | None:
    """The neuron view of a text or a pair, for any model whose queries and keys can be captured.

    `model_type` told BertViz which of its bundled models this is; it is not needed any more.
    """
    from headscope.model.loading.load import load

    check_action(html_action)
    trace = load(model, tokenizer=tokenizer).trace(sentence_a, sentence_b or None)
    stack = trace.default  # as BertViz: nothing is chosen
    layer = stack.layers[0] if layer is None else layer
    head = stack.heads[0] if head is None else head
    return act(neuron_view(trace, layer=layer, head=head, theme=display_mode), html_action)
