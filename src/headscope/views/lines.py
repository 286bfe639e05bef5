"""Which lines a view draws: units, hidden tokens, sentence pairs and the mass threshold.

The browser does the same in `static/units.js` and `static/lines.js`; the browser tests compare the
two.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from headscope.views.labels import label
from headscope.views.window import cut, spans

if TYPE_CHECKING:
    from headscope.model.trace import Side, StackTrace
    from headscope.views.state import ViewState


@dataclass(frozen=True, slots=True)
class Units:
    """The rows or columns of a drawing: tokens, or words made of them."""

    labels: tuple[str, ...]
    members: tuple[tuple[int, ...], ...]  # token indices of each unit
    special: np.ndarray  # bool, unit
    segments: np.ndarray  # int, unit
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


def units(whole: "Side", unit: str, span: slice) -> Units:
    """Tokens one by one, or grouped into words; a token of no word stands for itself.

    Members are counted from the first token of the span.
    """
    side, first = cut(whole, span), span.start
    if unit == "word":
        first = len(_groups(whole.word_of_token[: span.start]))
        groups = _groups(side.word_of_token)
        labels = tuple(_word(side, group[0]) for group in groups)
    else:
        groups = [(token,) for token in range(len(side.tokens))]
        labels = tuple(map(label, side.tokens))
    special = np.array([all(side.special[i] for i in group) for group in groups], bool)
    segments = np.array([side.segments[group[0]] for group in groups], int)
    return Units(labels, tuple(groups), special, segments, span.start, first)


def drawing(weights: np.ndarray, stack: "StackTrace", state: "ViewState") -> Drawing:
    """Apply window, unit, what is hidden and the sentence pair to (head, query, key) weights."""
    queries, keys = spans(stack, state.window)
    rows, columns = units(stack.queries, state.unit, queries), units(stack.keys, state.unit, keys)
    between = merge(weights[:, queries, keys], rows, columns)
    kept_rows, kept_columns = _kept(rows, state.hide), _kept(columns, state.hide)
    shown = kept_rows[:, None] & kept_columns[None, :] & _pair(rows, columns, state.pair)
    return Drawing(rows, columns, between, shown, _hidden(between, kept_rows, kept_columns))


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
    return Units(("",) * size, members, np.zeros(size, bool), np.zeros(size, int))


def strongest(all_lines: Lines, most: int) -> Lines:
    """At most this many lines, the strongest."""
    if len(all_lines.weight) <= most:
        return all_lines
    kept = np.argsort(-all_lines.weight, kind="stable")[:most]
    return Lines(*(getattr(all_lines, name)[kept] for name in ("head", "query", "key", "weight")))


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


def _word(side: "Side", token: int) -> str:
    word = side.word_of_token[token]
    return label(side.words[word] if word >= 0 else side.tokens[token])


def _kept(of: Units, hide: Sequence[str]) -> np.ndarray:
    kept = np.ones(len(of.labels), bool)
    if "first" in hide and of.start == 0:
        kept[0] = False
    if "special" in hide:
        kept &= ~of.special
    return kept


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
