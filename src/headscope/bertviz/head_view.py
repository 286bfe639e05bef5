"""BertViz's head view."""

from collections.abc import Sequence

from headscope import views
from headscope.bertviz.attention import (
    Action,
    Attention,
    Page,
    Tokens,
    act,
    check_action,
    restricted,
    trace_of,
)
from headscope.errors import ViewError


def head_view(
    attention: Attention | None = None,
    tokens: Tokens | None = None,
    sentence_b_start: int | None = None,
    prettify_tokens: bool = True,
    layer: int | None = None,
    heads: Sequence[int] | None = None,
    encoder_attention: Attention | None = None,
    decoder_attention: Attention | None = None,
    cross_attention: Attention | None = None,
    encoder_tokens: Tokens | None = None,
    decoder_tokens: Tokens | None = None,
    include_layers: Sequence[int] | None = None,
    html_action: Action = "view",
) -> Page | None:
    """The head view of attention weights, one entry per layer."""
    check_action(html_action)
    trace = trace_of(
        (attention, encoder_attention, decoder_attention, cross_attention),
        (tokens, encoder_tokens, decoder_tokens),
        sentence_b_start,
        prettify_tokens,
    )
    chosen = restricted(trace, include_layers, None)
    if isinstance(heads, int):
        raise ViewError(f"heads is {heads}; give a list, such as [{heads}].")
    return act(views.head_view(chosen, layer=layer, heads=heads), html_action)
