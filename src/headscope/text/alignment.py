"""Which model tokens make up which word, by character spans; refuses to guess.

`align` takes one text and names what is wrong. `align_flat` takes many texts at once by the same
rules: all of them are laid out on one line, a gap after each, so that a token overlaps the words
between two places of a sorted list. Whatever is not plainly right is left to `align`.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter

import numpy as np
from jaxtyping import Bool, Int

from headscope.errors import AlignmentError
from headscope.text.sentence import Sentence, Word

NO_WORD = -1

# Marks, control and format characters and separators: what a tokenizer's normaliser may drop
# (BERT strips accents, SentencePiece zero-width characters) without the word losing a letter.
_DROPPABLE = "MCZ"

_REFUSED = {
    "differs": "The word {word.text!r} at characters {word.start}–{word.end} is not in the text, "
    "which has {there!r} there; correct the word's span.",
    "shared": "The words {first.text!r} and {word.text!r} are both written as {there!r}, so no "
    'token can be given to one of them; read the corpus with fused="merge", the default, to take '
    "them as one word.",
    "straddles": "The token {there!r} covers characters of the words {names}; skip the sentence or "
    "use a tokenizer that splits there.",
    "uncovered": "No token covers {there!r} of the word {word.text!r} at characters "
    "{word.start}–{word.end}; skip the sentence, or encode the whole text.",
}


@dataclass(frozen=True)
class Alignment:
    """Words and tokens of one text: every token has at most one word, every word has a token."""

    word_of_token: tuple[int, ...]  # NO_WORD for special tokens and for space between words
    tokens_of_word: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, word_of_token: Sequence[int], words: int) -> "Alignment":
        """The alignment that gives each token this word."""
        tokens: list[list[int]] = [[] for _ in range(words)]
        for token, word in enumerate(word_of_token):
            if word != NO_WORD:
                tokens[word].append(token)
        return cls(tuple(word_of_token), tuple(map(tuple, tokens)))


def align(
    words: Sequence[Word], text: str, offsets: Sequence[tuple[int, int]], special: Sequence[bool]
) -> Alignment:
    """Give each token the word whose characters it covers.

    Raises AlignmentError with one of the reasons

    - "differs": a word is not what the text has at its span,
    - "shared": two words claim the same characters (a contraction such as French "du" = de + le),
    - "straddles": a token covers characters of two words,
    - "uncovered": a letter of a word is in no token.
    """
    owner = _owners(words, text)
    covered = bytearray(len(text))
    word_of_token: list[int] = []
    for token, (start, end) in enumerate(offsets):
        word = NO_WORD if special[token] else _word_of(owner, start, end, words, text)
        word_of_token.append(word)
        if word != NO_WORD:
            covered[start:end] = b"\1" * (end - start)
    for word in words:
        _check_covered(word, covered)
    return Alignment.of(word_of_token, len(words))


def _owners(words: Sequence[Word], text: str) -> list[int]:
    """For every character the index of its word."""
    owner = [NO_WORD] * len(text)
    previous = 0
    for index, word in enumerate(words):
        if not 0 <= word.start < word.end <= len(text):
            there = text[max(word.start, 0) : max(word.end, 0)]
            raise _refused("differs", word=word, there=there)
        there = text[word.start : word.end]
        if word.start < previous:
            raise _refused("shared", first=words[index - 1], word=word, there=there)
        owner[word.start : word.end] = [index] * (word.end - word.start)
        previous = word.end
    for word in words:
        if text[word.start : word.end] != word.text:
            raise _refused("differs", word=word, there=text[word.start : word.end])
    return owner


def _refused(reason: str, **facts: object) -> AlignmentError:
    return AlignmentError(_REFUSED[reason].format(**facts), reason=reason)


def _word_of(owner: list[int], start: int, end: int, words: Sequence[Word], text: str) -> int:
    if not 0 <= start <= end <= len(owner):
        raise AlignmentError(
            f"A token spans characters {start}–{end} of a text of {len(owner)} characters; "
            "give the offsets the tokenizer made for this very text.",
            reason="differs",
        )
    found = set(owner[start:end])
    found.discard(NO_WORD)
    if len(found) > 1:
        names = " and ".join(repr(words[index].text) for index in sorted(found))
        raise _refused("straddles", there=text[start:end], names=names)
    return found.pop() if found else NO_WORD


def _check_covered(word: Word, covered: bytearray) -> None:
    place = covered.find(0, word.start, word.end)
    while place != -1:
        character = word.text[place - word.start]
        if unicodedata.category(character)[0] not in _DROPPABLE:
            raise _refused("uncovered", word=word, there=character)
        place = covered.find(0, place + 1, word.end)
    if not any(covered[word.start : word.end]):
        raise _refused("uncovered", word=word, there=word.text)


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
            sentence.text[word.start : word.end] == word.text
            for sentence in sentences
            for word in sentence.words
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
    of_word, of_token = _sentence_of(words.count), _sentence_of(tokens.count)
    doubtful = np.zeros(len(sizes), dtype=bool)
    doubtful[of_word[_misplaced_words(sizes, words, of_word)]] = True
    outside = (tokens.start < 0) | (tokens.start > tokens.end) | (tokens.end > sizes[of_token])
    doubtful[of_token[outside & ~tokens.special]] = True
    usable = np.flatnonzero(~doubtful[of_word])
    start, end = (base[of_word] + words.start)[usable], (base[of_word] + words.end)[usable]
    left, right = base[of_token] + tokens.start, base[of_token] + tokens.end
    first = np.searchsorted(end, left, side="right")
    overlaps = np.searchsorted(start, right, side="left") - first
    overlaps[tokens.special | (left >= right) | doubtful[of_token]] = 0
    doubtful[of_token[overlaps > 1]] = True
    inside = overlaps == 1
    open_words = _partly_uncovered(base[-1], start, end, left[inside], right[inside])
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


def _sentence_of(counts: Int[np.ndarray, "sentence"]) -> Int[np.ndarray, "item"]:
    return np.repeat(np.arange(len(counts)), counts)


def _misplaced_words(
    sizes: np.ndarray, words: FlatWords, of_word: np.ndarray
) -> Bool[np.ndarray, "word"]:
    """Words that are not where they say, or not behind the word before them."""
    wrong = (words.start < 0) | (words.start >= words.end) | (words.end > sizes[of_word])
    behind = np.concatenate([[0], words.end[:-1]]) > words.start
    same_sentence = np.concatenate([[-1], of_word[:-1]]) == of_word
    return wrong | ~words.is_there | (behind & same_sentence)


def _partly_uncovered(
    length: int, start: np.ndarray, end: np.ndarray, left: np.ndarray, right: np.ndarray
) -> Bool[np.ndarray, "word"]:
    """Words with a character that no token covers."""
    opened = np.bincount(left, minlength=length + 1) - np.bincount(right, minlength=length + 1)
    bare = np.concatenate([[0], np.cumsum(np.cumsum(opened) == 0)])
    return bare[end] > bare[start]
