"""What heads do in one text: patterns that they follow, and where the others rest.

A pattern says for every attending token which tokens it may look at; neither the first token nor a
special one, on which many heads rest. A head's share is the mean, over the tokens that have
something to look at, of the attention that goes there. Its strength is that share of what does not
rest, over chance: (share − chance) / (1 − chance), where chance is attention spread evenly over
what the token sees. The words are those of portraits (`headscope.results.fact_words`); what they
say is of this text alone.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float

from headscope.results.fact_words import FIXED
from headscope.results.measure import RoleGroup
from headscope.views.labels import label
from headscope.views.weights import checked_weights
from headscope.views.window import is_long

if TYPE_CHECKING:
    from headscope.model.trace import StackTrace

CLEAR = 0.5  # strength that a pattern must reach
LEAST = 0.25  # share of all attention that it must have
FEWEST = 2  # tokens that must have something to look at
RESTING = 0.5  # share of attention from which on a head rests on a token
EVEN = 0.85  # of the entropy that even attention has

Labels = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Worth:
    """A head that follows a pattern."""

    layer: int
    head: int
    words: str  # what it looks at
    share: float  # of its attention, where the pattern has something to look at


@dataclass(frozen=True, slots=True)
class Role:
    """What a head does in a text, in a word or two."""

    name: str
    group: str  # of theme.ROLES, which has its colour


@dataclass(frozen=True, slots=True)
class _Pattern:
    role: Role
    words: str
    interest: float  # what teaches most comes first
    mask: Callable[[Labels], np.ndarray]


@dataclass(frozen=True, slots=True)
class _Match:
    """How much every head follows a pattern."""

    pattern: _Pattern
    share: Float[np.ndarray, "layer head"]
    strength: Float[np.ndarray, "layer head"]

    @property
    def clear(self) -> Float[np.ndarray, "layer head"]:
        """Strength where a head follows the pattern clearly, else 0."""
        return np.where((self.share >= LEAST) & (self.strength >= CLEAR), self.strength, 0.0)


UNNAMED = Role("unnamed", "unnamed")
_FIRST, _SPECIAL = Role("first token", "sink"), Role("delimiters", "sink")
_EVEN = Role("evenly", "even")


def worth_a_look(stack: "StackTrace") -> tuple[Worth, ...]:
    """The clearest head of every pattern, the most telling first; nothing for long inputs."""
    telling: list[tuple[float, Worth]] = []
    for match in _matches(stack):
        share = np.where(match.clear > 0, match.share, 0.0)
        layer, head = np.unravel_index(int(share.argmax()), share.shape)
        if share[layer, head] > 0:
            worth = Worth(
                stack.layers[layer],
                stack.heads[head],
                match.pattern.words,
                round(float(share[layer, head]), 3),
            )
            telling.append((match.pattern.interest * float(match.strength[layer, head]), worth))
    return tuple(worth for _, worth in sorted(telling, key=lambda entry: -entry[0]))


def roles(stack: "StackTrace") -> list[list[Role]]:
    """The role of every head by layer: its clearest pattern, else where it rests, if it does."""
    named = [[UNNAMED] * len(stack.heads) for _ in stack.layers]
    if is_long(stack):
        return named
    matches = _matches(stack)
    seen = _seen(stack)
    for row, layer in enumerate(stack.layers):
        first, special = resting_shares(stack, layer)
        evenness = _evenness(checked_weights(stack, layer), seen)
        for column in range(len(stack.heads)):
            clearest = max(matches, key=lambda match: match.clear[row, column], default=None)
            if clearest is not None and clearest.clear[row, column] > 0:
                named[row][column] = clearest.pattern.role
            elif first[column] > RESTING:
                named[row][column] = _FIRST
            elif special[column] > RESTING:
                named[row][column] = _SPECIAL
            elif evenness[column] > EVEN:
                named[row][column] = _EVEN
    return named


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


def _matches(stack: "StackTrace") -> list[_Match]:
    """How much the heads follow each pattern that the text has; none between two sequences."""
    if is_long(stack) or stack.queries.labels != stack.keys.labels:
        return []
    labels = tuple(map(label, stack.queries.labels))
    resting = np.array(stack.keys.special, bool)
    resting[:1] = True
    seen = _seen(stack) & ~resting  # query key
    asking = ~np.array(stack.queries.special, bool)[:, None]
    matches = []
    for pattern in _PATTERNS:
        mask = pattern.mask(labels) & seen & asking
        rows = mask.any(1)
        if rows.sum() < FEWEST:
            continue
        parts = [_shares(checked_weights(stack, layer), mask, resting) for layer in stack.layers]
        shares, awake = (np.stack(part) for part in zip(*parts, strict=True))  # layer head
        chance = float((mask.sum(1) / np.maximum(1, seen.sum(1)))[rows].mean())
        strength = (shares / np.maximum(awake, 1e-9) - chance) / max(1e-9, 1 - chance)
        matches.append(_Match(pattern, shares, strength))
    return matches


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


def _evenness(
    weights: Float[np.ndarray, "head query key"], seen: Bool[np.ndarray, "query key"]
) -> Float[np.ndarray, "head"]:
    """The entropy of each head over that of attention spread evenly over what is seen."""
    logs = np.log(weights, out=np.zeros_like(weights), where=weights > 0)
    most = np.log(np.maximum(seen.sum(1), 1)).sum()
    return -(weights * logs).sum((1, 2)) / max(most, 1e-12)


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


def _pattern(
    key: str, group: RoleGroup, interest: float, mask: Callable[[Labels], np.ndarray]
) -> _Pattern:
    """A pattern in the words that portraits have for the same fact."""
    words = FIXED[key]
    return _Pattern(Role(words.short, group), words.target, interest, mask)


_PATTERNS = (
    _pattern("after the same", "repetition", 1.0, _followed_same),
    _pattern("same token", "repetition", 0.85, _same_before),
    _pattern("-1", "position", 0.7, _at_offset(-1)),
    _pattern("+1", "position", 0.7, _at_offset(1)),
    _pattern("0", "position", 0.4, _at_offset(0)),
)
