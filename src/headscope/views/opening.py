"""What a view opens with: what the caller said, checked, and for the rest what teaches most."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from operator import index
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from jaxtyping import Float

from headscope.errors import RunError, ViewError
from headscope.head import Head, read_head
from headscope.model.inputs.spans import Span, check_spans, ranges, turns
from headscope.views.kinds import kind_of
from headscope.views.labels import label
from headscope.views.roles import Worth, worth_a_look
from headscope.views.state import (
    Setting,
    ViewState,
    chosen_stack,
    parse_pin,
    settings_of,
    span,
)
from headscope.views.weights import checked_weights
from headscope.views.window import is_long, last_window, window_of
from headscope.wording import shorten

if TYPE_CHECKING:
    from headscope.model.trace import StackTrace, Trace

_WHICH = {"layer", "layers", "head", "heads"}  # settings that name what is to be seen
MOST_OF_LINES = 64  # tokens: lines of more are fog
RESTING = 0.5  # share of attention from which on tokens are hidden

State = TypeVar("State", bound=ViewState)


def initial_state(trace: "Trace", kind: str, **wanted: Any) -> ViewState:
    """The state a view opens with: what the caller said, else what there is most to learn from."""
    declared = kind_of(kind)
    asked = {name: value for name, value in wanted.items() if value is not None}
    for name in asked:
        if name not in declared.settings:
            known = ", ".join(declared.settings)
            raise ViewError(f"The {kind} view has no setting {name!r}; it has {known}.")
    stack = chosen_stack(trace, asked.pop("stack", None) or _first_stack(trace, asked))
    if stack.keys.turns and "spans" not in asked and "spans" in declared.settings:
        asked["spans"] = turns(stack.keys)
    start = declared.state(
        stack=stack.name,
        layer=stack.layers[0],
        layers=tuple(stack.layers),
        heads=tuple(stack.heads),
        head=stack.heads[0],
    )
    asked = _normalised(_with_named_heads(asked, declared.settings, stack.layers))
    if "summary" in asked and "layer" in asked and "layers" not in asked:
        asked["layers"] = (asked["layer"],)
    start = checked(replace(start, **asked), stack)
    opened = resolve_name(declared.open)(stack, asked, start)
    return replace(opened, window=_window(opened, asked, stack))


def _first_stack(trace: "Trace", asked: Mapping[str, Any]) -> str | None:
    """Of an encoder–decoder model the attention from one to the other, which rollout has not."""
    return "cross" if "cross" in trace.stacks and asked.get("weights") != "rollout" else None


def head_to_open(stack: "StackTrace", asked: Mapping[str, Any]) -> Worth | None:
    """A head worth a look; None where the caller names what to see, or there is none."""
    if asked.keys() & _WHICH or asked.get("summary", "each") != "each":
        return None
    return next(iter(worth_a_look(stack)), None)


def what_to_hide(
    stack: "StackTrace",
    asked: Mapping[str, Any],
    state: ViewState,
    layers: Sequence[int],
    heads: Sequence[int],
) -> tuple[str, ...]:
    """Tokens to leave out at first, where the caller leaves that open."""
    if "hide" in asked or state.weights == "rollout":
        return state.hide
    return hidden_at_first(stack, layers, heads)


def _with_named_heads(
    asked: dict[str, Any], settings: Sequence[str], layers: Sequence[int]
) -> dict[str, Any]:
    """Heads by name, such as "L5H2", as a layer and numbers; layers below 0 from the end."""
    for name in ("head", "heads"):
        value = [asked[name]] if isinstance(asked.get(name), str) else asked.get(name)
        if isinstance(value, list | tuple) and any(isinstance(head, str) for head in value):
            named = _read_heads(name, value)
            of_layers = sorted({head.layer for head in named})
            numbers = sorted({head.head for head in named})
            if "layer" in settings and len(of_layers) > 1:
                raise ViewError(f"{name} names heads of several layers; this view shows one layer.")
            asked |= {"layer": of_layers[0]} if "layer" in settings else {"layers": of_layers}
            asked[name] = numbers[0] if name == "head" else numbers
    for name in ("layer", "layers"):
        value = asked.get(name)
        if isinstance(value, int) and value < 0:
            asked[name] = _from_the_end(value, layers)
        elif isinstance(value, list | tuple):
            asked[name] = [_from_the_end(number, layers) for number in value]
    return asked


def _read_heads(name: str, value: Sequence[Any]) -> list[Head]:
    try:
        return [read_head(str(head)) for head in value]
    except RunError:
        raise ViewError(
            f"{name} is {', '.join(map(str, value))}; give numbers, or names such as L5H2."
        ) from None


def _from_the_end(number: Any, layers: Sequence[int]) -> Any:
    is_counted = isinstance(number, int) and -len(layers) <= number < 0
    return layers[number] if is_counted else number


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


def _numbers(name: str, wanted: int | Iterable[int]) -> tuple[int, ...]:
    try:
        several = wanted if isinstance(wanted, Iterable) else (wanted,)
        numbers = tuple(sorted({index(number) for number in several}))
    except TypeError:
        raise ViewError(f"{name} is {wanted!r}; give a number, or several in a list.") from None
    if not numbers:
        raise ViewError(f"{name} is empty; name at least one, or leave it out to get all.")
    return numbers


def _window(state: ViewState, asked: Mapping[str, Any], stack: "StackTrace") -> tuple[int, int]:
    """A pinned token of a long input is opened in the window that has it."""
    if "window" in asked or "pinned" not in asked or not is_long(stack):
        return state.window
    side, numbers = parse_pin(asked["pinned"])
    start = window_of(stack, numbers[0], side)
    if stack.keys is stack.queries or stack.keys == stack.queries:
        return start, start
    return (start, 0) if side == "q" else (0, start)


def checked(state: State, stack: "StackTrace") -> State:
    """`state`, or an error that names what could have been asked."""
    for name, setting in settings_of(type(state)).items():
        check_setting(name, setting, getattr(state, name), stack)
    names = [Span.parse(one).name for one in state.spans]
    for name in ("attending", "attended"):
        wanted = getattr(state, name)
        if wanted is not None and wanted not in names:
            known = f"the spans are {', '.join(names)}" if names else "there are no spans"
            raise ViewError(f"{name} is {wanted!r}; {known}.")
    return state


def check_setting(name: str, setting: Setting, value: Any, stack: "StackTrace") -> None:
    """Refuse a value that this stack cannot show, naming those it can."""
    if name in ("layer", "layers"):
        _require_numbers("Layer", value, stack.layers)
    elif name in ("head", "heads"):
        _require_numbers("Head", value, stack.heads)
    elif setting.choices:
        for one in (value,) if isinstance(value, str) else value:
            if one not in setting.choices:
                raise ViewError(f"{name} is {one!r}; choose {', '.join(setting.choices)}.")
    elif name == "mass":
        if not (isinstance(value, int | float) and 0 < value <= 1):
            raise ViewError(f"mass is {value}; give a share above 0 and up to 1.")
    elif name == "window":
        _check_window(value, stack)
    elif name == "spans":
        check_spans(map(Span.parse, value), len(stack.keys))
    elif name == "pinned":
        _check_pin(value, len(stack.queries.labels), len(stack.keys.labels))


def _require_numbers(what: str, asked: int | Sequence[int], captured: Sequence[int]) -> None:
    for number in (asked,) if isinstance(asked, int) else asked:
        if number not in captured:
            raise ViewError(
                f"{what} {shorten(repr(number), 40)} is not in this trace; it has {span(captured)}."
            )


def _check_window(window: Sequence[int], stack: "StackTrace") -> None:
    last = [last_window(len(side)) for side in (stack.queries, stack.keys)]
    if len(window) != 2 or not all(0 <= at <= most for at, most in zip(window, last, strict=True)):
        raise ViewError(
            f"window is {tuple(window)}; give two tiles, of queries and of keys, each from 0, at "
            f"most {last[0]} and {last[1]}."
        )


def _check_pin(pinned: str | None, queries: int, keys: int) -> None:
    if pinned is None:
        return
    side, numbers = parse_pin(pinned)
    count = queries if side == "q" else keys
    if numbers[-1] >= count:
        raise ViewError(f"pinned is {pinned!r}, but there are only tokens 0 to {count - 1}.")


def hidden_at_first(
    stack: "StackTrace", layers: Sequence[int], heads: Sequence[int]
) -> tuple[str, ...]:
    """What takes most of the attention of these heads: the first token, or the special ones."""
    if is_long(stack) or not heads or not layers:
        return ()
    places = [stack.heads.index(head) for head in heads]
    shares = np.array([resting_shares(stack, layer) for layer in layers])[..., places]
    first, special = shares.mean((0, 2))
    if first > RESTING:
        return ("first",)
    return ("special",) if special > RESTING else ()


def resting_shares(
    stack: "StackTrace", layer: int
) -> tuple[Float[np.ndarray, "head"], Float[np.ndarray, "head"]]:
    """Shares of attention to the first token and to special ones.

    The first attending token is left out: that of a causal model can look at nothing else.
    """
    rows = checked_weights(stack, layer)[:, 1:]
    total = np.maximum(rows.sum((1, 2)), 1e-12)
    special = np.array(stack.keys.special, bool)
    return rows[..., 0].sum(1) / total, rows[..., special].sum((1, 2)) / total


def telling_query(stack: "StackTrace", layer: int, head: int) -> int | None:
    """The word whose attention is sharpest on another word; None where there is no word."""
    weights = checked_weights(stack, layer)[stack.heads.index(head)].copy()
    content = np.array([_is_word(token) for token in stack.keys.labels])
    weights[:, ~content | np.array(stack.keys.special, bool)] = 0
    weights[:, 0] = 0
    if stack.queries.labels == stack.keys.labels:
        np.fill_diagonal(weights, 0)
    asking = np.array([_is_word(token) for token in stack.queries.labels])
    asking &= ~np.array(stack.queries.special, bool)
    sharpest = np.where(asking, weights.max(1, initial=0.0), 0.0)
    return int(sharpest.argmax()) if sharpest.any() else None


def _is_word(token: str) -> bool:
    return len(label(token)) > 2 and label(token).isalpha()
