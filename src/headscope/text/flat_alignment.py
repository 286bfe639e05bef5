"""Words and tokens of many texts aligned at once: the same rules as `align`, on flat arrays.

All texts are laid out on one line, a gap after each, so that a token overlaps the words between two
places of a sorted list. Whatever is not plainly right is left to `align`, one text at a time.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter

import numpy as np
from jaxtyping import Bool, Int

from headscope.text.alignment import NO_WORD
from headscope.text.sentence import Sentence


@dataclass(frozen=True)
class FlatWords:
    """The words of many sentences, one after the other."""

    count: Int[np.ndarray, "sentence"]
    start: Int[np.ndarray, "word"]
    end: Int[np.ndarray, "word"]
    is_there: Bool[np.ndarray, "word"]  # whether the text has the word at its span

    @classmethod
    def of(cls, sentences: Sequence[Sentence]) -> "FlatWords":
        """Lay out the words of some sentences."""
        words = list(chain.from_iterable(sentence.words for sentence in sentences))
        there = (
            text[word.start : word.end] == word.text
            for text, own in ((sentence.text, sentence.words) for sentence in sentences)
            for word in own
        )
        return cls(
            np.array([len(sentence.words) for sentence in sentences], dtype=np.int64),
            np.fromiter(map(attrgetter("start"), words), np.int64, len(words)),
            np.fromiter(map(attrgetter("end"), words), np.int64, len(words)),
            np.fromiter(there, bool, len(words)),
        )


@dataclass(frozen=True)
class FlatTokens:
    """The tokens of many texts, one after the other."""

    count: Int[np.ndarray, "sentence"]
    start: Int[np.ndarray, "token"]
    end: Int[np.ndarray, "token"]
    special: Bool[np.ndarray, "token"]


def align_flat(
    sizes: Int[np.ndarray, "sentence"], words: FlatWords, tokens: FlatTokens
) -> tuple[Int[np.ndarray, "token"], Bool[np.ndarray, "sentence"]]:
    """The word of every token, counted over all sentences, and which sentences need `align`.

    `sizes` are the numbers of characters. In sentences that need `align` no token has a word.
    """
    base = np.concatenate([[0], np.cumsum(sizes + 1)])
    of_word, of_token = _owners(words.count), _owners(tokens.count)
    doubtful = np.zeros(len(sizes), dtype=bool)
    doubtful[of_word[_misplaced_words(sizes, words, of_word)]] = True
    doubtful[of_token[_misplaced_tokens(sizes, tokens, of_token)]] = True
    usable = np.flatnonzero(~doubtful[of_word])
    start, end = (base[of_word] + words.start)[usable], (base[of_word] + words.end)[usable]
    left, right = base[of_token] + tokens.start, base[of_token] + tokens.end
    first = np.searchsorted(end, left, side="right")
    overlaps = np.searchsorted(start, right, side="left") - first
    overlaps[tokens.special | (left >= right) | doubtful[of_token]] = 0
    doubtful[of_token[overlaps > 1]] = True
    inside = overlaps == 1
    open_words = _uncovered(base[-1], start, end, left[inside], right[inside])
    doubtful[of_word[usable[open_words]]] = True
    found = np.full(len(left), NO_WORD)
    inside &= ~doubtful[of_token]
    found[inside] = usable[first[inside]]
    return found, doubtful


def related_tokens(
    word: Int[np.ndarray, "token"], parent: Int[np.ndarray, "word"]
) -> tuple[Int[np.ndarray, "pair"], Int[np.ndarray, "pair"]]:
    """Every token of a word with every token of its parent, in the order of the former.

    Gives the tokens of the parents and those of the words. A word without a parent has NO_WORD.
    """
    spelling = np.flatnonzero(word != NO_WORD)
    by_word = spelling[np.argsort(word[spelling], kind="stable")]
    count = np.bincount(word[spelling], minlength=len(parent))
    start = np.cumsum(count) - count
    dependent = spelling[parent[word[spelling]] != NO_WORD]
    above = parent[word[dependent]]
    pairs = count[above]
    within = np.arange(pairs.sum()) - np.repeat(np.cumsum(pairs) - pairs, pairs)
    return by_word[np.repeat(start[above], pairs) + within], np.repeat(dependent, pairs)


def _owners(counts: Int[np.ndarray, "sentence"]) -> Int[np.ndarray, "item"]:
    return np.repeat(np.arange(len(counts)), counts)


def _misplaced_words(
    sizes: np.ndarray, words: FlatWords, of_word: np.ndarray
) -> Bool[np.ndarray, "word"]:
    """Words that are not where they say, or not behind the word before them."""
    wrong = (words.start < 0) | (words.start >= words.end) | (words.end > sizes[of_word])
    behind = np.concatenate([[0], words.end[:-1]]) > words.start
    same_sentence = np.concatenate([[-1], of_word[:-1]]) == of_word
    return wrong | ~words.is_there | (behind & same_sentence)


def _misplaced_tokens(
    sizes: np.ndarray, tokens: FlatTokens, of_token: np.ndarray
) -> Bool[np.ndarray, "token"]:
    wrong = (tokens.start < 0) | (tokens.start > tokens.end) | (tokens.end > sizes[of_token])
    return wrong & ~tokens.special


def _uncovered(
    length: int, start: np.ndarray, end: np.ndarray, left: np.ndarray, right: np.ndarray
) -> Bool[np.ndarray, "word"]:
    """Words with a character that no token covers."""
    opened = np.bincount(left, minlength=length + 1) - np.bincount(right, minlength=length + 1)
    bare = np.concatenate([[0], np.cumsum(np.cumsum(opened) == 0)])
    return bare[end] > bare[start]
