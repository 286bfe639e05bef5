"""The kinds of views and their settings, declared once.

Keyword arguments, the widget's traits, options of the command line, the explorer's API, the names
in a page's URL and the module `static/core/settings.js` derive from the declarations here. A new
view is a kind here, `static/KIND/view.js` and `figures/KIND.py`.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from operator import index
from typing import TYPE_CHECKING, Any, Literal, get_args

from headscope.errors import HeadscopeError, ViewError
from headscope.model.spans import Span, check_spans, parse_ranges, ranges, turns
from headscope.views.labels import label
from headscope.views.window import is_long, last_window, window_of
from headscope.views.worth import hidden_at_first, telling_query, worth_a_look

if TYPE_CHECKING:
    from headscope.model.trace import StackTrace, Trace

Kind = Literal["head", "model", "neuron"]
KINDS: tuple[Kind, ...] = get_args(Kind)
Theme = Literal["auto", "light", "dark"]
_LINES: tuple[Kind, ...] = ("head", "model")
_WHICH = {"layer", "layers", "head", "heads"}  # settings that name what is to be seen


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
    shown = {
        name: {
            "title": setting.title,
            "meaning": setting.meaning,
            "kinds": setting.kinds,
            "choices": setting.choices,
        }
        for name, setting in SETTINGS.items()
    }
    lines = [f"  {name}: {json.dumps(one, ensure_ascii=False)}," for name, one in shown.items()]
    one = "{title: string, meaning: string, kinds: string[], choices: Record<string, string>}"
    typed = f"Record<keyof State, {one}>"
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
        f"/** @type {{{typed}}} */",
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
    first = (
        "/** The view of every kind, generated from views/state.py: declare a new kind there. */"
    )
    return "\n".join([first, "", *imports, "", f"export const VIEWS = {{ {known} }};", ""])


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


def initial_state(trace: "Trace", kind: Kind, **wanted: Any) -> ViewState:
    """The state a view opens with: what the caller said, else what there is most to learn from."""
    asked = {name: value for name, value in wanted.items() if value is not None}
    _check_names(kind, asked)
    stack = chosen_stack(trace, asked.pop("stack", None))
    if stack.keys.turns and "spans" not in asked and kind != "neuron":
        asked["spans"] = turns(stack.keys)
    start = ViewState(
        stack=stack.name,
        layer=stack.layers[0],
        layers=tuple(stack.layers),
        heads=tuple(stack.heads),
        head=stack.heads[0],
    )
    asked = _normalised(asked)
    if "summary" in asked and "layer" in asked and "layers" not in asked:
        asked["layers"] = (asked["layer"],)
    start = replace(start, **_head_to_open(kind, asked, stack), **asked)
    opened = replace(start, **_rest_to_open(kind, asked, start, stack))
    return checked(replace(opened, **_with_window(asked, stack)), stack)


def _head_to_open(kind: Kind, asked: Mapping[str, Any], stack: "StackTrace") -> dict[str, Any]:
    """A head worth a look, where the caller names neither layer nor head."""
    worth = () if asked.keys() & _WHICH else worth_a_look(stack)
    if asked.get("summary", "each") != "each":
        return {"enlarged": kind == "model"}
    if not worth:
        return {}
    chosen: dict[str, Any] = {"layer": worth[0].layer, "head": worth[0].head}
    if kind == "head":
        return {**chosen, "heads": (worth[0].head,)}
    return {**chosen, "enlarged": kind == "model" and not asked.keys() - {"stack", "theme"}}


def _rest_to_open(
    kind: Kind, asked: Mapping[str, Any], state: ViewState, stack: "StackTrace"
) -> dict[str, Any]:
    """What is hidden, and the token that is taken apart, where the caller left it open."""
    layers = state.layers if kind == "model" or state.summary != "each" else (state.layer,)
    heads = (state.head,) if kind == "neuron" else state.heads
    if {*layers, state.layer} - {*stack.layers} or {*heads, state.head} - {*stack.heads}:
        return {}  # refused later, by name
    if kind == "neuron":
        query = telling_query(stack, state.layer, state.head)
        return {} if "pinned" in asked or query is None else {"pinned": f"q{query}"}
    if "hide" in asked or state.weights == "rollout":
        return {}
    hidden = hidden_at_first(stack, layers, heads)
    if state.enlarged and not hidden:
        hidden = hidden_at_first(stack, (state.layer,), (state.head,))
    return {"hide": hidden}


def chosen_stack(trace: "Trace", name: str | None) -> "StackTrace":
    """The named stack, or the one a trace shows by default."""
    if name is None:
        return trace.default
    if name not in trace.stacks:
        names = ", ".join(trace.stacks)
        raise ViewError(f"There is no stack {name!r} in this trace; it has {names}.")
    return trace.stacks[name]


def checked(state: ViewState, stack: "StackTrace") -> ViewState:
    """`state`, or an error that names what could have been asked."""
    for name in SETTINGS:
        check_setting(name, getattr(state, name), stack)
    names = [Span.parse(one).name for one in state.spans]
    for name in ("attending", "attended"):
        wanted = getattr(state, name)
        if wanted is not None and wanted not in names:
            known = f"the spans are {', '.join(names)}" if names else "there are no spans"
            raise ViewError(f"{name} is {wanted!r}; {known}.")
    return state


def check_setting(name: str, value: Any, stack: "StackTrace") -> None:
    """Refuse a value that this stack cannot show, naming those it can."""
    if name in ("layer", "layers"):
        _require_numbers("Layer", value, stack.layers)
    elif name in ("head", "heads"):
        _require_numbers("Head", value, stack.heads)
    elif SETTINGS[name].choices:
        for one in (value,) if isinstance(value, str) else value:
            _require_choice(name, one, tuple(SETTINGS[name].choices))
    elif name == "mass":
        _check_mass(value)
    elif name == "window":
        _check_window(value, stack)
    elif name == "spans":
        check_spans(map(Span.parse, value), len(stack.keys))
    elif name == "pinned":
        _check_pin(value, len(stack.queries.tokens), len(stack.keys.tokens))


def _check_mass(mass: Any) -> None:
    if not (isinstance(mass, int | float) and 0 < mass <= 1):
        raise ViewError(f"mass is {mass}; give a share above 0 and up to 1.")


def _require_numbers(what: str, asked: int | Sequence[int], captured: Sequence[int]) -> None:
    for number in (asked,) if isinstance(asked, int) else asked:
        if number not in captured:
            raise ViewError(f"{what} {number} is not in this trace; it has {span(captured)}.")


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


def _normalised(asked: dict[str, Any]) -> dict[str, Any]:
    for name in ("layers", "heads"):
        if name in asked:
            asked[name] = _numbers(name, asked[name])
    if "window" in asked:
        asked["window"] = tuple(asked["window"])
    if "hide" in asked:
        asked["hide"] = (asked["hide"],) if isinstance(asked["hide"], str) else tuple(asked["hide"])
    if "spans" in asked:
        asked["spans"] = tuple(map(_shown_span, asked["spans"]))
    for name in ("attending", "attended"):
        if isinstance(asked.get(name), Span | str):
            asked[name] = label(getattr(asked[name], "name", asked[name]))
    pinned = asked.get("pinned")
    if isinstance(pinned, int):
        asked["pinned"] = f"q{pinned}"
    elif pinned is not None and not isinstance(pinned, str):  # a span, or several numbers
        asked["pinned"] = f"q{ranges(sorted(set(getattr(pinned, 'tokens', pinned))))}"
    return asked


def _shown_span(span: Span | str) -> str:
    """A span as settings have it; its name may come from the text and is made visible like it."""
    parsed = Span.parse(str(span))
    return str(Span(label(parsed.name), parsed.tokens))


def _with_window(asked: dict[str, Any], stack: "StackTrace") -> dict[str, Any]:
    """A pinned token of a long input is opened in the window that has it."""
    pinned = asked.get("pinned")
    found = re.match(r"[qk](\d+)", pinned or "")
    if "window" in asked or found is None or not is_long(stack):
        return asked
    start = window_of(stack, int(found[1]), found[0][0])
    own = stack.keys is stack.queries or stack.keys == stack.queries
    both = (start, start) if own else (start, 0) if found[0][0] == "q" else (0, start)
    return {**asked, "window": both}


def _check_window(window: Sequence[int], stack: "StackTrace") -> None:
    last = [last_window(len(side)) for side in (stack.queries, stack.keys)]
    if len(window) != 2 or not all(0 <= at <= most for at, most in zip(window, last, strict=True)):
        raise ViewError(
            f"window is {tuple(window)}; give two tiles, of queries and of keys, each from 0, at "
            f"most {last[0]} and {last[1]}."
        )


def _numbers(name: str, wanted: int | Iterable[int]) -> tuple[int, ...]:
    try:
        several = wanted if isinstance(wanted, Iterable) else (wanted,)
        numbers = tuple(sorted({index(number) for number in several}))
    except TypeError:
        raise ViewError(f"{name} is {wanted!r}; give a number, or several in a list.") from None
    if not numbers:
        raise ViewError(f"{name} is empty; name at least one, or leave it out to get all.")
    return numbers


def _check_names(kind: Kind, asked: Iterable[str]) -> None:
    known = settings_of(kind)
    for name in asked:
        if name not in known:
            raise ViewError(f"The {kind} view has no setting {name!r}; it has {', '.join(known)}.")


def _require_choice(name: str, value: str, choices: Sequence[str]) -> None:
    if value not in choices:
        raise ViewError(f"{name} is {value!r}; choose {', '.join(choices)}.")


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


def _check_pin(pinned: str | None, queries: int, keys: int) -> None:
    if pinned is None:
        return
    side, numbers = parse_pin(pinned)
    count = queries if side == "q" else keys
    if numbers[-1] >= count:
        raise ViewError(f"pinned is {pinned!r}, but there are only tokens 0 to {count - 1}.")
