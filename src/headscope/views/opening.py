"""What a view opens with: what the caller said, checked, and for the rest what teaches most.

Heads of a text that are worth a look are those that follow a pattern one can name. A pattern says
for every attending token which tokens it may look at; neither the first token nor a special one, on
which many heads rest. A head's share is the mean, over the tokens that have something to look at,
of the attention that goes there. Its strength is that share of what does not rest, over chance:
(share − chance) / (1 − chance), where chance is attention spread evenly over what the token sees.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import index
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from jaxtyping import Bool, Float

from headscope.errors import ViewError
from headscope.model.inputs.spans import Span, check_spans, ranges, turns
from headscope.views.kinds import kind_of
from headscope.views.labels import label
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

if TYPE_CHECKING:
    from headscope.model.trace import StackTrace, Trace

_WHICH = {"layer", "layers", "head", "heads"}  # settings that name what is to be seen
CLEAR = 0.5  # strength that a pattern must reach
LEAST = 0.25  # share of all attention that it must have
FEWEST = 2  # tokens that must have something to look at
MOST_IN_SIGHT = 0.5  # share of attention from which on a token is left out at first

Labels = tuple[str, ...]
State = TypeVar("State", bound=ViewState)


def initial_state(trace: "Trace", kind: str, **wanted: Any) -> ViewState:
    """The state a view opens with: what the caller said, else what there is most to learn from."""
    declared = kind_of(kind)
    asked = {name: value for name, value in wanted.items() if value is not None}
    for name in asked:
        if name not in declared.settings:
            known = ", ".join(declared.settings)
            raise ViewError(f"The {kind} view has no setting {name!r}; it has {known}.")
    stack = chosen_stack(trace, asked.pop("stack", None))
    if stack.keys.turns and "spans" not in asked and "spans" in declared.settings:
        asked["spans"] = turns(stack.keys)
    start = declared.state(
        stack=stack.name,
        layer=stack.layers[0],
        layers=tuple(stack.layers),
        heads=tuple(stack.heads),
        head=stack.heads[0],
    )
    asked = _normalised(asked)
    if "summary" in asked and "layer" in asked and "layers" not in asked:
        asked["layers"] = (asked["layer"],)
    start = checked(replace(start, **asked), stack)
    opened = resolve_name(declared.open)(stack, asked, start)
    return replace(opened, window=_window(opened, asked, stack))


def head_to_open(stack: "StackTrace", asked: Mapping[str, Any]) -> "Worth | None":
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
            raise ViewError(f"{what} {number} is not in this trace; it has {span(captured)}.")


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


@dataclass(frozen=True, slots=True)
class Worth:
    """A head that follows a pattern."""

    layer: int
    head: int
    words: str  # what it looks at
    share: float  # of its attention, where the pattern has something to look at


@dataclass(frozen=True, slots=True)
class _Pattern:
    words: str
    interest: float  # what teaches most comes first
    mask: Callable[[Labels], np.ndarray]


def worth_a_look(stack: "StackTrace") -> tuple[Worth, ...]:
    """The clearest head of every pattern, the most telling first; nothing for long inputs."""
    if is_long(stack) or stack.queries.labels != stack.keys.labels:
        return ()
    found = sorted(_best(stack), key=lambda one: -one[0])
    return tuple(worth for _, worth in found)


def hidden_at_first(
    stack: "StackTrace", layers: Sequence[int], heads: Sequence[int]
) -> tuple[str, ...]:
    """What takes most of the attention of these heads: the first token, or the special ones."""
    if is_long(stack):
        return ()
    places = [stack.heads.index(head) for head in heads]
    special = np.array(stack.keys.special, bool)
    first = delimiters = total = 0.0
    for layer in layers:
        # Of a causal model the first token can look at nothing else.
        rows = checked_weights(stack, layer)[places, 1:]
        first += float(rows[..., 0].sum())
        delimiters += float(rows[..., special].sum())
        total += float(rows.sum())
    if first > MOST_IN_SIGHT * total:
        return ("first",)
    return ("special",) if delimiters > MOST_IN_SIGHT * total else ()


def _best(stack: "StackTrace") -> Iterator[tuple[float, Worth]]:
    """The clearest head of every pattern with its strength, weighted by how much it teaches."""
    labels = tuple(map(label, stack.queries.labels))
    resting = np.array(stack.keys.special, bool)
    resting[:1] = True
    seen = _seen(stack) & ~resting  # query key
    asking = ~np.array(stack.queries.special, bool)[:, None]
    for pattern in _PATTERNS:
        mask = pattern.mask(labels) & seen & asking
        rows = mask.any(1)
        if rows.sum() < FEWEST:
            continue
        found = [_shares(checked_weights(stack, layer), mask, resting) for layer in stack.layers]
        shares, awake = (np.stack(part) for part in zip(*found, strict=True))  # layer head
        chance = float((mask.sum(1) / np.maximum(1, seen.sum(1)))[rows].mean())
        strength = (shares / np.maximum(awake, 1e-9) - chance) / max(1e-9, 1 - chance)
        clear = np.where((shares >= LEAST) & (strength >= CLEAR), shares, 0.0)
        at, head = np.unravel_index(int(clear.argmax()), clear.shape)
        if clear[at, head] > 0:
            share = round(float(shares[at, head]), 3)
            worth = Worth(stack.layers[at], stack.heads[head], pattern.words, share)
            yield pattern.interest * float(strength[at, head]), worth


def _seen(stack: "StackTrace") -> Bool[np.ndarray, "query key"]:
    """What any head gives any attention to: masked tokens get none."""
    seen = np.zeros((len(stack.queries), len(stack.keys)), bool)
    for layer in stack.layers:
        seen |= checked_weights(stack, layer).any(0)
    return seen


def _shares(
    weights: Float[np.ndarray, "head query key"],
    mask: Bool[np.ndarray, "query key"],
    resting: Bool[np.ndarray, "key"],
) -> tuple[Float[np.ndarray, "head"], Float[np.ndarray, "head"]]:
    """Mean attention within the mask, and mean attention that does not rest, of each head."""
    rows = mask.any(1)
    queries, keys = np.nonzero(mask)
    inside = weights[:, queries, keys].sum(1) / rows.sum()
    return inside, 1 - weights[:, rows][..., resting].sum((1, 2)) / rows.sum()


def _at_offset(offset: int) -> Callable[[Labels], np.ndarray]:
    return lambda labels: np.eye(len(labels), k=offset, dtype=bool)


def _same_before(labels: Labels) -> np.ndarray:
    """Pairs of a token and an earlier one that reads the same."""
    numbers = np.unique(np.array(labels), return_inverse=True)[1].ravel()
    return np.tril(numbers[:, None] == numbers[None, :], -1)


def _followed_same(labels: Labels) -> np.ndarray:
    """Pairs of a token and one that stands after an earlier token that reads the same."""
    after = np.zeros((len(labels),) * 2, bool)
    after[:, 1:] = _same_before(labels)[:, :-1]
    return after & ~np.eye(len(labels), dtype=bool)


_PATTERNS = (
    _Pattern("what followed the same token before", 1.0, _followed_same),
    _Pattern("an earlier occurrence of the same token", 0.85, _same_before),
    _Pattern("the previous token", 0.7, _at_offset(-1)),
    _Pattern("the next token", 0.7, _at_offset(1)),
    _Pattern("itself", 0.4, _at_offset(0)),
)
