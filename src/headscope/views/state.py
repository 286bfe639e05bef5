"""What a view currently shows: the same names in Python, in the widget's traits and in the URL."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal

from headscope.errors import ViewError
from headscope.views.window import is_long, last_window, window_of

if TYPE_CHECKING:
    from headscope.model.trace import StackTrace, Trace

Kind = Literal["head", "model", "neuron"]

CHOICES: dict[str, tuple[str, ...]] = {
    "weights": ("raw", "norm", "rollout"),
    "unit": ("token", "word"),
    "pair": ("all", "aa", "ab", "ba", "bb"),
    "direction": ("vertical", "horizontal"),
    "theme": ("auto", "light", "dark"),
    "thumbnail": ("lines", "matrix"),
    "neurons": ("number", "contribution"),
}
HIDEABLE = ("first", "special")


@dataclass(frozen=True, slots=True)
class ViewState:
    """Every setting of the three views; a view ignores what it has no control for."""

    stack: str
    layer: int
    layers: tuple[int, ...]  # model view: rows shown
    heads: tuple[int, ...]  # head and model view: heads shown
    head: int  # model view: the enlarged one; neuron view: the one taken apart
    window: tuple[int, int] = (0, 0)  # long inputs: first tile shown of queries and of keys
    pinned: str | None = None  # "q3": query token 3, "k0": key token 0
    weights: str = "raw"
    unit: str = "token"
    mass: float = 0.95  # share of each row kept, strongest lines first
    hide: tuple[str, ...] = ()
    pair: str = "all"
    direction: str = "vertical"
    theme: str = "auto"
    thumbnail: str = "lines"
    order: str = "number"
    ascending: bool = False
    ranked: bool = False  # order across layers instead of within each
    enlarged: bool = False
    neurons: str = "number"
    expanded: bool = True


def initial_state(trace: "Trace", **wanted: Any) -> ViewState:
    """The state a view opens with: the defaults, changed where the caller said so."""
    asked = {name: value for name, value in wanted.items() if value is not None}
    _check_names(asked)
    stack = chosen_stack(trace, asked.pop("stack", None))
    start = ViewState(
        stack=stack.name,
        layer=stack.layers[0],
        layers=tuple(stack.layers),
        heads=tuple(stack.heads),
        head=stack.heads[0],
    )
    return checked(replace(start, **_with_window(_normalised(asked), stack)), stack)


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
    for field in fields(state):
        check_setting(field.name, getattr(state, field.name), stack)
    return state


def check_setting(name: str, value: Any, stack: "StackTrace") -> None:
    """Refuse a value that this stack cannot show, naming those it can."""
    if name in ("layer", "layers"):
        _require_numbers("Layer", value, stack.layers)
    elif name in ("head", "heads"):
        _require_numbers("Head", value, stack.heads)
    elif name in CHOICES:
        _require_choice(name, value, CHOICES[name])
    elif name == "hide":
        for what in value:
            _require_choice("hide", what, HIDEABLE)
    elif name == "mass" and not 0 < value <= 1:
        raise ViewError(f"mass is {value}; give a share above 0 and up to 1.")
    elif name == "window":
        _check_window(value, stack)
    elif name == "pinned":
        _check_pin(value, len(stack.queries.tokens), len(stack.keys.tokens))


def _require_numbers(what: str, asked: int | Sequence[int], captured: Sequence[int]) -> None:
    for number in (asked,) if isinstance(asked, int) else asked:
        if number not in captured:
            raise ViewError(f"{what} {number} is not in this trace; it has {_span(captured)}.")


def _span(numbers: Sequence[int]) -> str:
    if list(numbers) == list(range(numbers[0], numbers[-1] + 1)):
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
    if isinstance(asked.get("pinned"), int):
        asked["pinned"] = f"q{asked['pinned']}"
    return asked


def _with_window(asked: dict[str, Any], stack: "StackTrace") -> dict[str, Any]:
    """A pinned token of a long input is opened in the window that has it."""
    pinned = asked.get("pinned")
    if "window" in asked or pinned is None or not pinned[1:].isdigit() or not is_long(stack):
        return asked
    start = window_of(stack, int(pinned[1:]), pinned[0])
    own = stack.keys is stack.queries or stack.keys == stack.queries
    both = (start, start) if own else (start, 0) if pinned[0] == "q" else (0, start)
    return {**asked, "window": both}


def _check_window(window: Sequence[int], stack: "StackTrace") -> None:
    last = [last_window(len(side)) for side in (stack.queries, stack.keys)]
    if len(window) != 2 or not all(0 <= at <= most for at, most in zip(window, last, strict=True)):
        raise ViewError(
            f"window is {tuple(window)}; give two tiles, of queries and of keys, each from 0, at "
            f"most {last[0]} and {last[1]}."
        )


def _numbers(name: str, wanted: Iterable[int]) -> tuple[int, ...]:
    numbers = tuple(sorted({int(number) for number in wanted}))
    if not numbers:
        raise ViewError(f"{name} is empty; name at least one, or leave it out to get all.")
    return numbers


def _check_names(asked: dict[str, Any]) -> None:
    known = [field.name for field in fields(ViewState)]
    for name in asked:
        if name not in known:
            raise ViewError(f"A view has no setting {name!r}; it has {', '.join(known)}.")


def _require_choice(name: str, value: str, choices: Sequence[str]) -> None:
    if value not in choices:
        raise ViewError(f"{name} is {value!r}; choose {', '.join(choices)}.")


def _check_pin(pinned: str | None, queries: int, keys: int) -> None:
    if pinned is None:
        return
    side, index = pinned[:1], pinned[1:]
    count = {"q": queries, "k": keys}.get(side)
    if count is None or not index.isdigit():
        raise ViewError(f"pinned is {pinned!r}; write q3 for query token 3 or k3 for key token 3.")
    if int(index) >= count:
        raise ViewError(f"pinned is {pinned!r}, but there are only tokens 0 to {count - 1}.")
