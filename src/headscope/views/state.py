"""What a view shows now: settings that every kind of view has, and what they say in words.

Keyword arguments, the widget's traits, options of the command line, the explorer's API, the names
in a page's URL and the module `static/kinds/shared/settings.js` derive from the declarations. A
kind adds settings of its own in a class derived from `ViewState`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, get_args

from headscope.errors import HeadscopeError, ViewError
from headscope.model.inputs.spans import parse_ranges

if TYPE_CHECKING:
    from headscope.model.trace import StackTrace, Trace

Theme = Literal["auto", "light", "dark"]


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting of the views, and what it may be."""

    title: str
    meaning: str
    choices: Mapping[str, str]  # value to its name on screen; empty where the trace decides


def setting(
    title: str, meaning: str, *, choices: Mapping[str, str] | None = None, **default: Any
) -> Any:
    """A field of the state; without a default its first value is taken from the trace."""
    return field(metadata={"setting": Setting(title, meaning, choices or {})}, **default)


@dataclass(frozen=True, slots=True)
class ViewState:
    """What every kind of view has, also where it offers no control for it."""

    stack: str = setting("Attention", "self, encoder, decoder or cross")
    layer: int = setting("Layer", "the layer shown; model view: that of the enlarged head")
    layers: tuple[int, ...] = setting(
        "Layers", "model view: the rows shown; summary: the layers put together"
    )
    heads: tuple[int, ...] = setting("Heads", "the heads shown")
    head: int = setting("Head", "the head that is enlarged or taken apart")
    window: tuple[int, int] = setting(
        "Window", "long inputs: first tile shown of queries and of keys", default=(0, 0)
    )
    pinned: str | None = setting(
        "Pinned", "q3 is query token 3, k0 is key token 0, q3-7+9 are several", default=None
    )
    summary: str = setting(
        "Show",
        "each head by itself, or the chosen heads and layers as one picture",
        default="each",
        choices={"each": "Each head", "mean": "Mean", "max": "Maximum"},
    )
    weights: str = setting(
        "Weights",
        "raw: as the model computed them; norm: times the size of what is passed on; rollout: "
        "followed through all layers up to this one",
        default="raw",
        choices={"raw": "Raw", "norm": "Norm", "rollout": "Rollout"},
    )
    unit: str = setting(
        "Between",
        "what the lines join",
        default="token",
        choices={"token": "Tokens", "word": "Words", "span": "Spans"},
    )
    spans: tuple[str, ...] = setting(
        "Spans", "parts of the text by name: 12-45 Document 1", default=()
    )
    attending: str | None = setting("From", "only what this span looks at", default=None)
    attended: str | None = setting("To", "only what looks at this span", default=None)
    mass: float = setting(
        "Strongest lines",
        "of every attending token, the strongest lines that together hold this share",
        default=0.95,
    )
    hide: tuple[str, ...] = setting(
        "Hide",
        "tokens left out",
        default=(),
        choices={"first": "Hide first token", "special": "Hide special tokens"},
    )
    pair: str = setting(
        "Sentences",
        "which sentence of a pair looks at which",
        default="all",
        choices={"all": "All", "aa": "A → A", "ab": "A → B", "ba": "B → A", "bb": "B → B"},
    )
    theme: str = setting(
        "Theme",
        "auto is what the system has",
        default="auto",
        choices={theme: theme.capitalize() for theme in get_args(Theme)},
    )


@cache
def settings_of(state: type[ViewState]) -> dict[str, Setting]:
    """The settings of a kind's state by name."""
    return {each.name: each.metadata["setting"] for each in fields(state)}


def chosen_stack(trace: "Trace", name: str | None) -> "StackTrace":
    """The named stack, or the one a trace shows by default."""
    if name is None:
        return trace.default
    if name not in trace.stacks:
        names = ", ".join(trace.stacks)
        raise ViewError(f"There is no stack {name!r} in this trace; it has {names}.")
    return trace.stacks[name]


def picture_name(state: ViewState) -> str | None:
    """What a picture of more than single heads is called; None where heads are shown as such."""
    if state.weights == "rollout":
        return "rollout"
    if state.summary == "each":
        return None
    heads = f"{span(state.heads)}" if state.heads else "none"
    return f"{settings_of(ViewState)['summary'].choices[state.summary].lower()} of heads {heads}"


def shown_layers(state: ViewState) -> str:
    """The layer, or the layers that are put together."""
    if state.summary == "each" or state.weights == "rollout" or len(state.layers) == 1:
        return f"layer {state.layer if state.summary == 'each' else state.layers[0]}"
    return f"layers {span(state.layers)}"


def span(numbers: Sequence[int]) -> str:
    """Numbers as people write them: "0 to 7", or one by one."""
    if len(numbers) > 2 and list(numbers) == list(range(numbers[0], numbers[-1] + 1)):
        return f"{numbers[0]} to {numbers[-1]}"
    return ", ".join(map(str, numbers))


def parse_pin(pinned: str) -> tuple[str, tuple[int, ...]]:
    """The side of pinned tokens, "q" or "k", and their numbers."""
    try:
        if pinned[:1] in ("q", "k"):
            return pinned[0], parse_ranges(pinned[1:])
    except HeadscopeError:
        pass
    raise ViewError(
        f"pinned is {pinned!r}; write q3 for query token 3, k3 for key token 3, or q3-7+9 for "
        "several."
    )
