"""BertViz's head view."""

from collections.abc import Sequence

from headscope.bertviz.attention import Action, Attention, Labels, Page, open_weights


def head_view(
    attention: Attention | None = None,
    tokens: Labels | None = None,
    sentence_b_start: int | None = None,
    prettify_tokens: bool = True,
    layer: int | None = None,
    heads: Sequence[int] | None = None,
    encoder_attention: Attention | None = None,
    decoder_attention: Attention | None = None,
    cross_attention: Attention | None = None,
    encoder_tokens: Labels | None = None,
    decoder_tokens: Labels | None = None,
    include_layers: Sequence[int] | None = None,
    html_action: Action = "view",
) -> Page | None:
    """The head view of attention weights, one entry per layer."""
    return open_weights(
        "head",
        (attention, encoder_attention, decoder_attention, cross_attention),
        (tokens, encoder_tokens, decoder_tokens),
        sentence_b_start,
        prettify_tokens,
        (include_layers, None),
        html_action,
        layer=layer,
        heads=heads,
        layout="lines",
    )
