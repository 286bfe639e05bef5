"""Which lines a view draws: units, hidden tokens, sentence pairs and the mass threshold.

The browser does the same in `static/kinds/shared/` and `static/draw/line.js`; tests compare the
two.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from headscope.model.inputs.spans import Span
from headscope.views.labels import label
from headscope.views.state import parse_pin
from headscope.views.window import spans

if TYPE_CHECKING:
    from headscope.model.inputs.tokens import Tokens
    from headscope.model.trace import StackTrace
    from headscope.views.state import ViewState


THUMBNAIL = 0.6  # thumbnails are small, and so are their lines
_ELSE, _HIDDEN = "everything else", "hidden"  # units beside the spans


@dataclass(frozen=True, slots=True)
class Units:
    """The rows or columns of a drawing: tokens, or words or spans made of them."""

    labels: tuple[str, ...]
    members: tuple[tuple[int, ...], ...]  # token indices of each unit
    special: np.ndarray  # bool, unit
    segments: np.ndarray  # int, unit
    kept: np.ndarray  # bool, unit: not hidden
    start: int = 0  # the first token, of all tokens of the side
    first: int = 0  # number of the first unit, of all units of the side


@dataclass(frozen=True, slots=True)
class Drawing:
    """One layer's weights between units, and which pairs are shown."""

    queries: Units
    keys: Units
    weights: np.ndarray  # head query key
    shown: np.ndarray  # bool, query key
    hidden: float  # share of the shown queries' attention that goes to hidden keys


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines to draw, as parallel arrays."""

    head: np.ndarray  # position among the drawn heads
    query: np.ndarray
    key: np.ndarray
    weight: np.ndarray

    def take(self, kept: np.ndarray) -> "Lines":
        """Some of them, by a mask or by their places."""
        return Lines(self.head[kept], self.query[kept], self.key[kept], self.weight[kept])


def units(whole: "Tokens", state: "ViewState", span: slice, *, spans: bool = True) -> Units:
    """Tokens one by one, or grouped into words or spans; others stand for themselves.

    Members are counted from the first token of the span. What is looked at can be grouped into
    spans, and what looks where both are the same text (`spans`).
    """
    side, first = whole[span], span.start
    hidden = _hidden_tokens(side, state.hide, span.start)
    shown = [label(token) for token in side.labels]
    if state.unit == "span" and spans:
        first, (groups, labels) = 0, _by_span(hidden, state.spans, span)
    elif state.unit == "word":
        first = len(_groups(whole.word_of_token[: span.start]))
        groups = _groups(whole.word_of_token[span])
        labels = [_word(whole, span.start + group[0]) for group in groups]
    else:
        groups, labels = [(token,) for token in range(len(side.labels))], shown
    special = np.array([all(side.special[i] for i in group) for group in groups], bool)
    segments = np.array([side.segments[group[0]] for group in groups], int)
    kept = np.array([not all(hidden[i] for i in group) for group in groups], bool)
    if "first" in state.hide and span.start == 0:
        kept[0] = False
    return Units(tuple(labels), tuple(groups), special, segments, kept, span.start, first)


def drawing(weights: np.ndarray, stack: "StackTrace", state: "ViewState") -> Drawing:
    """Apply window, unit, what is hidden and what is filtered to (head, query, key) weights."""
    queries, keys = spans(stack, state.window)
    same = stack.queries.labels == stack.keys.labels
    rows = units(stack.queries, state, queries, spans=same)
    columns = units(stack.keys, state, keys)
    between = merge(weights[:, queries, keys], rows, columns)
    asking = rows.kept & _within(rows, state.attending if same else None, state)
    asked = columns.kept & _within(columns, state.attended, state)
    shown = asking[:, None] & asked[None, :] & _pair(rows, columns, state.pair)
    return Drawing(rows, columns, between, shown, _hidden(between, asking, columns.kept))


def merge(weights: np.ndarray, rows: Units, columns: Units) -> np.ndarray:
    """Weights between units: summed over the keys, averaged over the queries of a unit."""
    summed = np.stack([weights[:, :, list(group)].sum(-1) for group in columns.members], -1)
    return np.stack([summed[:, list(group)].mean(1) for group in rows.members], 1)


def binned(picture: Drawing, most: int) -> Drawing:
    """The drawing for a thumbnail: neighbours of long texts share a bin, hidden ones are left out.

    Like words, bins are summed over keys and averaged over queries.
    """
    rows, columns = _bins(picture.queries, most), _bins(picture.keys, most)
    weights = merge(np.where(picture.shown, picture.weights, 0.0), rows, columns)
    return Drawing(rows, columns, weights, np.ones(weights.shape[1:], bool), picture.hidden)


def _bins(of: Units, most: int) -> Units:
    count = len(of.labels)
    size = min(count, most)
    place = np.arange(count) * size // count
    members = tuple(tuple(np.flatnonzero(place == bin).tolist()) for bin in range(size))
    none = np.zeros(size, bool)
    return Units(("",) * size, members, none, np.zeros(size, int), ~none)


def span_runs(of: Units, named: Sequence[str]) -> list[tuple[int, int, int]]:
    """Neighbours that belong to one span: first unit, the one after the last, number of the span.

    Where spans lie within each other the shortest has its tokens, as among units.
    """
    owner = _owners(list(map(Span.parse, named)))
    owners = [owner.get(of.start + group[0], -1) for group in of.members]
    runs = [(number, list(run)) for number, run in groupby(range(len(owners)), owners.__getitem__)]
    return [(run[0], run[-1] + 1, number) for number, run in runs if number >= 0]


def attention_on_text(picture: Drawing, pinned: str | None, prompt: int | None) -> np.ndarray:
    """What each token of the text gets, as a mean over heads.

    Of pinned attending tokens: the mean attention that they give to it. Of pinned attended ones:
    what it gives to them together. Of none: the mean of the generated tokens where there are any,
    else of all.
    """
    weights = np.where(picture.shown, picture.weights, 0.0).mean(0)  # query key
    side, numbers = ("q", None) if pinned is None else parse_pin(pinned)
    units = picture.queries if side == "q" else picture.keys
    if numbers is None:
        chosen = [
            unit
            for unit, group in enumerate(units.members)
            if units.kept[unit] and units.start + group[0] >= (prompt or 0)
        ]
    else:
        wanted = set(numbers)
        chosen = [n for n in range(len(units.labels)) if units.first + n in wanted]
    on_units = weights[chosen].mean(0) if side == "q" else weights[:, chosen].sum(1)
    others = picture.keys if side == "q" else picture.queries
    on_tokens = np.zeros(sum(map(len, others.members)))
    for value, group in zip(on_units, others.members, strict=True):
        on_tokens[list(group)] = value
    return on_tokens


def strongest(all_lines: Lines, most: int) -> Lines:
    """At most this many lines, the strongest."""
    if len(all_lines.weight) <= most:
        return all_lines
    return all_lines.take(np.argsort(-all_lines.weight, kind="stable")[:most])


def lines(picture: Drawing, mass: float) -> Lines:
    """Of every row the strongest pairs that together hold `mass` of what is shown of the row."""
    weights = np.where(picture.shown, picture.weights, 0.0)
    head, query, key = np.nonzero((weights > 0) & (weights >= cutoffs(weights, mass)[..., None]))
    return Lines(head, query, key, weights[head, query, key])


def cutoffs(weights: np.ndarray, mass: float) -> np.ndarray:
    """The smallest weight kept in each row; ties with it are kept too."""
    if mass >= 1:
        return np.zeros(weights.shape[:-1])
    ordered = -np.sort(-weights, -1)
    reached = np.cumsum(ordered, -1) >= mass * weights.sum(-1, keepdims=True) - 1e-12
    return np.take_along_axis(ordered, reached.argmax(-1)[..., None], -1)[..., 0]


def opacity(weight: np.ndarray, heads: int = 1) -> np.ndarray:
    """Opacity of a line: of one head the square root, which keeps weak lines visible.

    Where several heads lie over each other it is the weight divided by their number, so that only
    what they share gets strong.
    """
    share = np.clip(weight, 0.0, 1.0)
    return share / heads if heads > 1 else np.sqrt(share)


def width(weight: np.ndarray) -> np.ndarray:
    """Width of a line in points."""
    return 0.6 + 2.4 * np.clip(weight, 0.0, 1.0)


def curves(starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """The control points (line 4 2) of lines that leave and arrive straight across."""
    first, second = np.array(starts, float), np.array(ends, float)
    first[:, 0] = second[:, 0] = (first[:, 0] + second[:, 0]) / 2
    return np.stack([starts, first, second, ends], 1)


def _groups(word_of_token: Sequence[int]) -> list[tuple[int, ...]]:
    groups: list[list[int]] = []
    previous = -1
    for token, word in enumerate(word_of_token):
        if word >= 0 and word == previous:
            groups[-1].append(token)
        else:
            groups.append([token])
        previous = word
    return [tuple(group) for group in groups]


def _word(side: "Tokens", token: int) -> str:
    word = side.word_of_token[token]
    return label(side.words[word] if word >= 0 else side.labels[token])


def _hidden_tokens(side: "Tokens", hide: Sequence[str], start: int) -> list[bool]:
    return [
        ("special" in hide and is_special) or ("first" in hide and start + token == 0)
        for token, is_special in enumerate(side.special)
    ]


def _by_span(
    hidden: Sequence[bool], named: Sequence[str], window: slice
) -> tuple[list[tuple[int, ...]], list[str]]:
    """The tokens of each span, of the shortest where spans lie within each other.

    All others are one unit; so are hidden tokens, and that one is hidden.
    """
    parsed = list(map(Span.parse, named))
    owner = _owners(parsed)
    groups: dict[str, list[int]] = {}
    for token, is_hidden in enumerate(hidden):
        number = owner.get(window.start + token)
        name = _ELSE if number is None else label(parsed[number].name)
        groups.setdefault(_HIDDEN if is_hidden else name, []).append(token)
    return [tuple(own) for own in groups.values()], list(groups)


def _owners(spans: Sequence[Span]) -> dict[int, int]:
    """The number of the shortest span that each token lies in."""
    owner: dict[int, int] = {}
    for number in sorted(range(len(spans)), key=lambda n: -len(spans[n])):
        owner |= dict.fromkeys(spans[number].tokens, number)
    return owner


def _within(of: Units, name: str | None, state: "ViewState") -> np.ndarray:
    """Which units begin in a span; all of them without one."""
    if name is None:
        return np.ones(len(of.labels), bool)
    wanted = next(span for span in map(Span.parse, state.spans) if span.name == name)
    inside = set(wanted.tokens)
    return np.array([of.start + group[0] in inside for group in of.members], bool)


def _pair(rows: Units, columns: Units, pair: str) -> np.ndarray:
    if pair == "all":
        return np.ones((len(rows.labels), len(columns.labels)), bool)
    wanted = ["ab".index(letter) for letter in pair]
    return (rows.segments == wanted[0])[:, None] & (columns.segments == wanted[1])[None, :]


def _hidden(weights: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> float:
    """Mean over heads and shown queries of the share that goes to hidden keys."""
    seen = weights[:, rows]
    total = seen.sum(-1)
    share = np.divide(seen[..., ~columns].sum(-1), total, out=np.zeros_like(total), where=total > 0)
    return float(share.mean()) if share.size else 0.0
