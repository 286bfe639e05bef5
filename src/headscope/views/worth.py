"""Which heads of one text are worth a look, and why: those that follow a pattern one can name.

A pattern says for every attending token which tokens it may look at; neither the first token nor a
special one, on which many heads rest. A head's share is the mean, over the tokens that have
something to look at, of the attention that goes there. Its strength is that share of what does not
rest, over chance: (share − chance) / (1 − chance), where chance is attention spread evenly over
what the token sees.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float

from headscope.views.labels import label
from headscope.views.weights import checked_weights
from headscope.views.window import is_long

if TYPE_CHECKING:
    from headscope.model.trace import StackTrace

CLEAR = 0.5  # strength that a pattern must reach
LEAST = 0.25  # share of all attention that it must have
FEWEST = 2  # tokens that must have something to look at
MOST_IN_SIGHT = 0.5  # share of attention from which on a token is left out at first

Labels = tuple[str, ...]


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
    if is_long(stack) or stack.queries.tokens != stack.keys.tokens:
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


def telling_query(stack: "StackTrace", layer: int, head: int) -> int | None:
    """The word whose attention is sharpest on another word; None where there is no word."""
    weights = checked_weights(stack, layer)[stack.heads.index(head)].copy()
    content = np.array([_is_word(token) for token in stack.keys.tokens])
    weights[:, ~content | np.array(stack.keys.special, bool)] = 0
    weights[:, 0] = 0
    if stack.queries.tokens == stack.keys.tokens:
        np.fill_diagonal(weights, 0)
    asking = np.array([_is_word(token) for token in stack.queries.tokens])
    asking &= ~np.array(stack.queries.special, bool)
    sharpest = np.where(asking, weights.max(1, initial=0.0), 0.0)
    return int(sharpest.argmax()) if sharpest.any() else None


def _best(stack: "StackTrace") -> Iterator[tuple[float, Worth]]:
    """The clearest head of every pattern with its strength, weighted by how much it teaches."""
    labels = tuple(map(label, stack.queries.tokens))
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


def _is_word(token: str) -> bool:
    return len(label(token)) > 2 and label(token).isalpha()


_PATTERNS = (
    _Pattern("what followed the same token before", 1.0, _followed_same),
    _Pattern("an earlier occurrence of the same token", 0.85, _same_before),
    _Pattern("the previous token", 0.7, _at_offset(-1)),
    _Pattern("the next token", 0.7, _at_offset(1)),
    _Pattern("itself", 0.4, _at_offset(0)),
)
