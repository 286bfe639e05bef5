"""BertViz's functions and keyword names over Headscope's views, for notebooks that call them.

Change the import and nothing else. What comes back shows itself, has `.save(path)`, and `.data`
holds the page as text, like the object BertViz returns for `html_action="return"`.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from headscope.errors import ViewError
from headscope.model.attention import Stack
from headscope.model.trace import Side, StackTrace, Trace, Weights
from headscope.views import View, neuron_view
from headscope.views import head_view as _head_view
from headscope.views import model_view as _model_view

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

__all__ = ["head_view", "model_view", "show"]

Tokens = Sequence[str]
_SPECIAL = {"[CLS]", "[SEP]", "[PAD]", "[MASK]", "<s>", "</s>", "<pad>", "<|endoftext|>"}


class Page(View):
    """A view that also has the attribute BertViz users write to a file."""

    @property
    def data(self) -> str:
        """The page as text."""
        return self.html()


def head_view(
    attention: Weights | None = None,
    tokens: Tokens | None = None,
    sentence_b_start: int | None = None,
    prettify_tokens: bool = True,
    layer: int | None = None,
    heads: Sequence[int] | None = None,
    encoder_attention: Weights | None = None,
    decoder_attention: Weights | None = None,
    cross_attention: Weights | None = None,
    encoder_tokens: Tokens | None = None,
    decoder_tokens: Tokens | None = None,
    include_layers: Sequence[int] | None = None,
    html_action: Literal["view", "return"] = "view",
) -> Page:
    """The head view of attention weights, one entry per layer."""
    _check_action(html_action)
    trace = _trace(
        (attention, encoder_attention, decoder_attention, cross_attention),
        (tokens, encoder_tokens, decoder_tokens),
        sentence_b_start,
        prettify_tokens,
    )
    chosen = _restricted(trace, include_layers, None)
    return _page(_head_view(chosen, layer=layer, heads=heads))


def model_view(
    attention: Weights | None = None,
    tokens: Tokens | None = None,
    sentence_b_start: int | None = None,
    prettify_tokens: bool = True,
    display_mode: Literal["light", "dark"] = "dark",
    encoder_attention: Weights | None = None,
    decoder_attention: Weights | None = None,
    cross_attention: Weights | None = None,
    encoder_tokens: Tokens | None = None,
    decoder_tokens: Tokens | None = None,
    include_layers: Sequence[int] | None = None,
    include_heads: Sequence[int] | None = None,
    html_action: Literal["view", "return"] = "view",
) -> Page:
    """The model view of attention weights, one entry per layer."""
    _check_action(html_action)
    trace = _trace(
        (attention, encoder_attention, decoder_attention, cross_attention),
        (tokens, encoder_tokens, decoder_tokens),
        sentence_b_start,
        prettify_tokens,
    )
    chosen = _restricted(trace, include_layers, include_heads)
    return _page(_model_view(chosen, theme=display_mode))


def show(
    model: "PreTrainedModel",
    model_type: str | None,
    tokenizer: "PreTrainedTokenizerBase",
    sentence_a: str,
    sentence_b: str | None = None,
    display_mode: Literal["light", "dark"] = "dark",
    layer: int | None = None,
    head: int | None = None,
    html_action: Literal["view", "return"] = "view",
) -> Page:
    """The neuron view of a text or a pair, for any model whose queries and keys can be captured.

    `model_type` told BertViz which of its bundled models this is; it is not needed any more.
    """
    from headscope.model.load import load

    _check_action(html_action)
    trace = load(model, tokenizer=tokenizer).trace(sentence_a, sentence_b)
    return _page(neuron_view(trace, layer=layer, head=head, theme=display_mode))


def _page(view: View) -> Page:
    return Page(view.trace, view.kind, view.state, view.scores)


def _check_action(html_action: str) -> None:
    if html_action not in ("view", "return"):
        raise ViewError(f"html_action is {html_action!r}; choose 'view' or 'return'.")


def _trace(
    attentions: tuple[Weights | None, ...],
    token_lists: tuple[Tokens | None, ...],
    sentence_b_start: int | None,
    prettify: bool,
) -> Trace:
    """One stack, or those of an encoder–decoder model."""
    single, encoder, decoder, cross = attentions
    tokens, encoder_tokens, decoder_tokens = token_lists
    if single is not None:
        if encoder is not None or decoder is not None or cross is not None:
            raise ViewError("Give either attention, or encoder, decoder and cross attention.")
        stack = _stack("self", single, tokens, None, sentence_b_start, prettify)
        return _joined([stack])
    given: list[tuple[Stack, Weights | None, Tokens | None, Tokens | None]] = [
        ("encoder", encoder, encoder_tokens, None),
        ("decoder", decoder, decoder_tokens, None),
        ("cross", cross, encoder_tokens, decoder_tokens),
    ]
    stacks = [
        _stack(name, weights, looked_at, looking, None, prettify)
        for name, weights, looked_at, looking in given
        if weights is not None
    ]
    if not stacks:
        raise ViewError(
            "There is nothing to show: give attention, or encoder_attention, decoder_attention "
            "or cross_attention."
        )
    return _joined(stacks)


def _joined(stacks: list[StackTrace]) -> Trace:
    return Trace(
        model="attention",
        stacks={stack.name: stack for stack in stacks},
        is_causal=False,
        no_neurons="the weights were given without queries and keys",
    )


def _stack(
    name: Stack,
    weights: Weights,
    tokens: Tokens | None,
    looking: Tokens | None,
    second: int | None,
    prettify: bool,
) -> StackTrace:
    if tokens is None or (name == "cross" and looking is None):
        missing = {"self": "tokens", "decoder": "decoder_tokens"}.get(name, "encoder_tokens")
        needed = "encoder_tokens and decoder_tokens" if name == "cross" else missing
        raise ViewError(f"The {name} attention comes without tokens; give {needed}.")
    made = Trace.from_weights(
        weights,
        tokens,
        target_tokens=looking,
        segments=None if second is None else [int(i >= second) for i in range(len(tokens))],
        special=[token in _SPECIAL for token in tokens],
    ).default
    keys = made.keys if prettify else _raw(made.keys, tokens)
    queries = keys if looking is None else made.queries if prettify else _raw(made.queries, looking)
    return replace(made, name=name, queries=queries, keys=keys)


def _raw(side: Side, tokens: Tokens) -> Side:
    return replace(side, tokens=tuple(tokens), words=tuple(tokens))


def _restricted(trace: Trace, layers: Sequence[int] | None, heads: Sequence[int] | None) -> Trace:
    """The trace with only these layers and heads, which keep their numbers."""
    stacks = {name: _part(stack, layers, heads) for name, stack in trace.stacks.items()}
    return replace(trace, stacks=stacks)


def _part(
    stack: StackTrace, layers: Sequence[int] | None, heads: Sequence[int] | None
) -> StackTrace:
    wanted_layers = _chosen("layer", layers, stack.layers)
    wanted_heads = _chosen("head", heads, stack.heads)
    places = [stack.heads.index(head) for head in wanted_heads]
    weights = {layer: stack.weights[layer][places] for layer in wanted_layers}
    return replace(stack, layers=wanted_layers, heads=wanted_heads, weights=weights)


def _chosen(what: str, wanted: Sequence[int] | None, there: Sequence[int]) -> tuple[int, ...]:
    if wanted is None:
        return tuple(there)
    unknown: list[Any] = [number for number in wanted if number not in there]
    if unknown or not wanted:
        asked = f"{what} {unknown[0]}" if unknown else f"no {what}"
        raise ViewError(f"include_{what}s asks for {asked}; there are {there[0]} to {there[-1]}.")
    return tuple(sorted(set(wanted)))
