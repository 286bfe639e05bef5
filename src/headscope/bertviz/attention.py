"""Attention weights as BertViz takes them, made into a trace; what its calls do with a view."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from headscope.errors import ViewError
from headscope.model.attention import Stack
from headscope.model.inputs.tokens import Tokens
from headscope.model.trace import StackTrace, Trace, label_tokens
from headscope.views.view import View, open_view

Labels = Sequence[str]
Attention = Any  # one tensor per layer, batch × head × query × key; or all of them stacked
_SPECIAL = {"[CLS]", "[SEP]", "[PAD]", "[MASK]", "<s>", "</s>", "<pad>", "<|endoftext|>"}
_KEPT_NONE = (
    'the model kept no weights. Load it with attn_implementation="eager", call it with '
    "output_attentions=True and take outputs.attentions: outputs[-1] may be an empty tuple of "
    "cross attentions."
)
Action = Literal["view", "return"]


def open_weights(
    kind: str,
    attentions: tuple[Attention | None, ...],
    token_lists: tuple[Labels | None, ...],
    sentence_b_start: int | None,
    prettify: bool,
    include: tuple[Sequence[int] | None, Sequence[int] | None],
    html_action: Action,
    **settings: Any,
) -> "Page | None":
    """A view of these layers and heads of attention weights, one entry per layer."""
    check_action(html_action)
    trace = _trace_of(attentions, token_lists, sentence_b_start, prettify)
    stacks = {name: _part(stack, *include) for name, stack in trace.stacks.items()}
    if isinstance(settings.get("heads"), int):
        heads = settings["heads"]
        raise ViewError(f"heads is {heads}; give a list, such as [{heads}].")
    return act(open_view(replace(trace, stacks=stacks), kind, **settings), html_action)


def _trace_of(
    attentions: tuple[Attention | None, ...],
    token_lists: tuple[Labels | None, ...],
    sentence_b_start: int | None,
    prettify: bool,
) -> Trace:
    """One stack, or those of an encoder–decoder model."""
    single, encoder, decoder, cross = attentions
    tokens, encoder_tokens, decoder_tokens = token_lists
    if single is not None:
        others = (encoder, decoder, cross, encoder_tokens, decoder_tokens)
        if any(other is not None for other in others):
            raise ViewError("Give either attention, or encoder, decoder and cross attention.")
        return _joined([_stack("self", single, tokens, None, sentence_b_start, prettify)])
    given: list[tuple[Stack, Attention | None, Labels | None, Labels | None]] = [
        ("encoder", encoder, encoder_tokens, None),
        ("decoder", decoder, decoder_tokens, None),
        ("cross", cross, encoder_tokens, decoder_tokens),
    ]
    stacks = [
        _stack(name, weights, looked_at, looking, None, prettify)
        for name, weights, looked_at, looking in given
        if weights is not None
    ]
    if not stacks and tokens is not None:
        raise ViewError(f"attention is None: {_KEPT_NONE}")
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
    weights: Attention,
    tokens: Labels | None,
    looking: Labels | None,
    second: int | None,
    prettify: bool,
) -> StackTrace:
    if tokens is None or (name == "cross" and looking is None):
        missing = {"self": "tokens", "decoder": "decoder_tokens"}.get(name, "encoder_tokens")
        needed = "encoder_tokens and decoder_tokens" if name == "cross" else missing
        raise ViewError(f"The {name} attention comes without tokens; give {needed}.")
    made = Trace.from_weights(
        _layers(name, weights),
        tokens,
        target_tokens=looking,
        segments=None if second is None else _segments(second, len(tokens)),
        special=[token in _SPECIAL for token in tokens],
    ).default
    keys = made.keys if prettify else _raw(made.keys, tokens)
    queries = keys if looking is None else made.queries if prettify else _raw(made.queries, looking)
    return replace(made, name=name, queries=queries, keys=keys)


def _layers(name: Stack, weights: Attention) -> Any:
    """One entry per layer; models that keep no weights return none, or None for each layer."""
    if len(weights) == 0 or any(layer is None for layer in weights):
        which = "attention" if name == "self" else f"{name}_attention"
        holds = "empty" if len(weights) == 0 else "None in some layers"
        raise ViewError(f"{which} is {holds}: {_KEPT_NONE}")
    return list(weights) if getattr(weights, "ndim", 0) == 5 else weights


def _segments(second: int, count: int) -> list[int]:
    start = second + count if second < 0 else second  # as a slice counts
    if not 0 < start < count:
        raise ViewError(
            f"sentence_b_start is {second}; sentence B begins within the text, at 1 to {count - 1}."
        )
    return [int(place >= start) for place in range(count)]


def _raw(prettified: Tokens, labels: Labels) -> Tokens:
    return label_tokens(labels, prettified.segments, prettified.special)


def _part(
    stack: StackTrace, layers: Sequence[int] | None, heads: Sequence[int] | None
) -> StackTrace:
    """The stack with only these layers and heads, which keep their numbers."""
    wanted_layers = _chosen("layer", layers, stack.layers)
    wanted_heads = _chosen("head", heads, stack.heads)
    places = [stack.heads.index(head) for head in wanted_heads]
    weights = {layer: stack.weights[layer][places] for layer in wanted_layers}
    return replace(stack, layers=wanted_layers, heads=wanted_heads, weights=weights)


def _chosen(what: str, wanted: Sequence[int] | None, there: Sequence[int]) -> tuple[int, ...]:
    """Numbers that exist; negative ones count from the end, as those of a list do."""
    if wanted is None:
        return tuple(there)
    if isinstance(wanted, int):
        raise ViewError(f"include_{what}s is {wanted}; give a list, such as [{wanted}].")
    counted = [number + len(there) if number < 0 else number for number in wanted]
    unknown = [asked for asked, number in zip(wanted, counted, strict=True) if number not in there]
    if unknown or not wanted:
        asked = f"{what} {unknown[0]}" if unknown else f"no {what}"
        raise ViewError(f"include_{what}s asks for {asked}; there are {there[0]} to {there[-1]}.")
    return tuple(sorted(set(counted)))


class Page(View):
    """A view that also has the attribute that BertViz users write to a file."""

    @property
    def data(self) -> str:
        """The page as text."""
        return self.html()


def check_action(html_action: str) -> None:
    """Refuse an action before anything is computed."""
    if html_action not in ("view", "return"):
        raise ViewError(f"html_action is {html_action!r}; choose 'view' or 'return'.")


def act(view: View, html_action: Action) -> Page | None:
    """Display the view, wherever in a cell the call stands, or return it."""
    page = Page(view.trace, view.kind, view.state, view.scores)
    if html_action == "return":
        return page
    try:
        from IPython.display import display
    except ImportError as error:
        raise ViewError(
            'A view is shown by IPython, which is not installed; give html_action="return" and '
            "save what comes back."
        ) from error
    display(page)
    return None
