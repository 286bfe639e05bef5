"""The kinds of views and their settings, declared once.

Keyword arguments, the widget's traits, options of the command line, the explorer's API, the names
in a page's URL and the module `static/kinds/shared/settings.js` derive from the declarations here.
A new view is a kind here, `static/kinds/KIND/view.js` and `figures/KIND.py`.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal, get_args

from headscope.errors import HeadscopeError, ViewError
from headscope.model.inputs.spans import parse_ranges

if TYPE_CHECKING:
    from headscope.model.trace import StackTrace, Trace

Kind = Literal["head", "model", "neuron"]
KINDS: tuple[Kind, ...] = get_args(Kind)
Theme = Literal["auto", "light", "dark"]
_LINES: tuple[Kind, ...] = ("head", "model")


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting of the views: which of them have it, and what it may be."""

    title: str
    meaning: str
    kinds: tuple[Kind, ...]
    choices: Mapping[str, str]  # value to its name on screen; empty where the trace decides


def _setting(
    title: str,
    meaning: str,
    kinds: tuple[Kind, ...] = KINDS,
    *,
    choices: Mapping[str, str] | None = None,
    **default: Any,
) -> Any:
    """A field of the state; without a default its first value is taken from the trace."""
    return field(metadata={"setting": Setting(title, meaning, kinds, choices or {})}, **default)


@dataclass(frozen=True, slots=True)
class ViewState:
    """What a view shows now."""

    stack: str = _setting("Attention", "self, encoder, decoder or cross")
    layer: int = _setting("Layer", "the layer shown; model view: that of the enlarged head")
    layers: tuple[int, ...] = _setting(
        "Layers", "model view: the rows shown; summary: the layers put together", _LINES
    )
    heads: tuple[int, ...] = _setting("Heads", "the heads shown", _LINES)
    head: int = _setting("Head", "the head that is enlarged or taken apart", ("model", "neuron"))
    window: tuple[int, int] = _setting(
        "Window", "long inputs: first tile shown of queries and of keys", _LINES, default=(0, 0)
    )
    pinned: str | None = _setting(
        "Pinned", "q3 is query token 3, k0 is key token 0, q3-7+9 are several", default=None
    )
    summary: str = _setting(
        "Show",
        "each head by itself, or the chosen heads and layers as one picture",
        _LINES,
        default="each",
        choices={"each": "Each head", "mean": "Mean", "max": "Maximum"},
    )
    weights: str = _setting(
        "Weights",
        "raw: as the model computed them; norm: times the size of what is passed on; rollout: "
        "followed through all layers up to this one",
        _LINES,
        default="raw",
        choices={"raw": "Raw", "norm": "Norm", "rollout": "Rollout"},
    )
    unit: str = _setting(
        "Between",
        "what the lines join",
        _LINES,
        default="token",
        choices={"token": "Tokens", "word": "Words", "span": "Spans"},
    )
    spans: tuple[str, ...] = _setting(
        "Spans", "parts of the text by name: 12-45 Document 1", _LINES, default=()
    )
    attending: str | None = _setting("From", "only what this span looks at", _LINES, default=None)
    attended: str | None = _setting("To", "only what looks at this span", _LINES, default=None)
    mass: float = _setting(
        "Strongest lines",
        "of every attending token, the strongest lines that together hold this share",
        default=0.95,
    )
    hide: tuple[str, ...] = _setting(
        "Hide",
        "tokens left out",
        _LINES,
        default=(),
        choices={"first": "Hide first token", "special": "Hide special tokens"},
    )
    pair: str = _setting(
        "Sentences",
        "which sentence of a pair looks at which",
        _LINES,
        default="all",
        choices={"all": "All", "aa": "A → A", "ab": "A → B", "ba": "B → A", "bb": "B → B"},
    )
    direction: str = _setting(
        "Layout",
        "tokens in columns, in rows, or as a text that is shaded by the attention it gets",
        ("head",),
        default="vertical",
        choices={"vertical": "Vertical", "horizontal": "Horizontal", "text": "Text"},
    )
    theme: str = _setting(
        "Theme",
        "auto is what the system has",
        default="auto",
        choices={theme: theme.capitalize() for theme in get_args(Theme)},
    )
    thumbnail: str = _setting(
        "Draw heads as",
        "how a head is drawn small",
        ("model",),
        default="lines",
        choices={"lines": "Lines", "matrix": "Matrix"},
    )
    order: str = _setting(
        "Order by", "number, or the score that heads are ordered by", ("model",), default="number"
    )
    ascending: bool = _setting("Ascending", "lowest score first", ("model",), default=False)
    ranked: bool = _setting(
        "Across layers", "order across layers instead of within each", ("model",), default=False
    )
    enlarged: bool = _setting("Enlarged", "one head is shown large", ("model",), default=False)
    neurons: str = _setting(
        "Neurons",
        "how neurons are ordered",
        ("neuron",),
        default="number",
        choices={"number": "By number", "contribution": "By contribution"},
    )
    expanded: bool = _setting("Vectors", "whether the vectors are shown", ("neuron",), default=True)


SETTINGS: dict[str, Setting] = {one.name: one.metadata["setting"] for one in fields(ViewState)}


def settings_of(kind: Kind) -> list[str]:
    """The names of the settings that a kind of view has."""
    return [name for name, setting in SETTINGS.items() if kind in setting.kinds]


def javascript() -> str:
    """The module from which the pages take kinds and settings."""
    types = [
        f" * @property {{{_JAVASCRIPT[one.type]}}} {one.name}  {SETTINGS[one.name].meaning}"
        for one in fields(ViewState)
    ]
    lines = [
        f"  {name}: {json.dumps(asdict(setting), ensure_ascii=False)},"
        for name, setting in SETTINGS.items()
    ]
    one = "{title: string, meaning: string, kinds: string[], choices: Record<string, string>}"
    return "\n".join([
        "/**",
        " * Kinds and settings of the views, generated from views/state.py: change them there.",
        " *",
        f" * @typedef {{{' | '.join(json.dumps(kind) for kind in KINDS)}}} Kind",
        " *",
        " * @typedef {object} State",
        *types,
        " */",
        "",
        f"/** @type {{Record<keyof State, {one}>}} */",
        "export const SETTINGS = {",
        *lines,
        "};",
        "",
    ])  # fmt: skip


def javascript_of_kinds(kinds: Iterable[Kind] = KINDS) -> str:
    """The module that finds the view of a kind, for these kinds alone."""
    chosen = tuple(kinds)
    imports = [f'import {{ {kind}View }} from "./{kind}/view.js";' for kind in chosen]
    known = ", ".join(f"{kind}: {kind}View" for kind in chosen)
    said = "The view of every kind, generated from views/state.py: declare a new kind there."
    return "\n".join(
        [f"/** {said} */", "", *imports, "", f"export const VIEWS = {{ {known} }};", ""]
    )


_JAVASCRIPT: dict[Any, str] = {
    str: "string",
    int: "number",
    float: "number",
    bool: "boolean",
    str | None: "string | null",
    tuple[int, ...]: "number[]",
    tuple[int, int]: "number[]",
    tuple[str, ...]: "string[]",
}


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
    return f"{SETTINGS['summary'].choices[state.summary].lower()} of heads {heads}"


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
