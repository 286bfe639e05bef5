"""BertViz's model view."""

from collections.abc import Sequence
from typing import Literal

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


def model_view(
    attention: Attention | None = None,
    tokens: Tokens | None = None,
    sentence_b_start: int | None = None,
    prettify_tokens: bool = True,
    display_mode: Literal["light", "dark"] = "dark",
    encoder_attention: Attention | None = None,
    decoder_attention: Attention | None = None,
    cross_attention: Attention | None = None,
    encoder_tokens: Tokens | None = None,
    decoder_tokens: Tokens | None = None,
    include_layers: Sequence[int] | None = None,
    include_heads: Sequence[int] | None = None,
    html_action: Action = "view",
) -> Page | None:
    """The model view of attention weights, one entry per layer."""
    check_action(html_action)
    trace = trace_of(
        (attention, encoder_attention, decoder_attention, cross_attention),
        (tokens, encoder_tokens, decoder_tokens),
        sentence_b_start,
        prettify_tokens,
    )
    chosen = restricted(trace, include_layers, include_heads)
    return act(views.model_view(chosen, theme=display_mode), html_action)
