"""Which words every token has characters of, by character spans; refuses to guess.

```
text     say "go."           words   say | " | go | . | "
tokens   say Ġ" go ."        first    0    1   2    3        the last token has characters of
                             last     0    1   2    4        two words; the one with most of
                             owner    0    1   2    3        them, or the earlier, owns it
```

All sentences are laid on one line of characters, a gap after each. A token has characters of a run
of words there, whose ends are two places of sorted lists.

A study may refuse a sentence with such a token, give the token to its owner, or make one word of
the run (`joined_runs` and `merge_runs`). Otherwise only words that are not in the text are refused.
"""

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from operator import attrgetter
from typing import Literal

import numpy as np
from jaxtyping import Bool, Int

from headscope.text.sentence import ROOT, Mention, Sentence, Word

NO_WORD = -1
Span = tuple[int, int]
# What becomes of a token that several words share: it is kept, its sentence is skipped, or words
# are encoded one by one, so that there is none.
Sharing = Literal["overlap", "strict", "words"]
# "differs": a word or a token is not in the text at its span. In strict alignments also
# "shared": two words claim the same characters (a contraction such as French "du" = de + le),
# "straddles": a token has characters of two words,
# "uncovered": a letter of a word is in no token.
Reason = Literal["differs", "shared", "straddles", "uncovered"]
# What is counted of words and their tokens.
WORDS = "words"
SPLIT = "words of several tokens"
SEVERAL = "tokens of several words"
JOINED = "words joined"
BARE = "words without a token"

# Marks, control and format characters and separators: what a tokenizer's normaliser may drop
# (BERT strips accents, SentencePiece zero-width characters) without the word losing a letter.
_DROPPABLE = "MCZ"


@dataclass(frozen=True)
class Alignment:
    """The words of every token of some sentences, each counted within its sentence.

    NO_WORD is for special tokens, for space between words, and for all tokens of refused sentences.
    """

    first: Int[np.ndarray, "token"]
    last: Int[np.ndarray, "token"]
    owner: Int[np.ndarray, "token"]  # the word with most of its characters, the earlier where equal
    refused: dict[int, Reason]  # by the place of the sentence

    @property
    def several(self) -> int:
        """How many tokens have characters of several words."""
        return int((self.last > self.first).sum())


def align(
    sentences: Sequence[Sentence],
    offsets: Sequence[Sequence[Span]],
    special: Sequence[Sequence[int]],
    *,
    strict: bool = False,
) -> Alignment:
    """Find the words that the tokens of every sentence have characters of.

    Strict: every token must have one word at most, and every letter of a word be in a token.
    """
    sizes = np.array([len(sentence.text) for sentence in sentences], dtype=np.int64)
    base = np.concatenate([[0], np.cumsum(sizes + 1)])
    words = _Spans.of_words(sentences)
    tokens = _Spans.of_tokens(offsets)
    refused = _refuse_words(sentences, words, sizes, strict=strict)

    # Refused words are left without a character, where their sentence begins.
    is_sound = ~_is_refused(refused, len(sentences))
    start = base[words.sentence] + np.where(is_sound[words.sentence], words.start, 0)
    end = base[words.sentence] + np.where(is_sound[words.sentence], words.end, 0)
    left, right = base[tokens.sentence] + tokens.start, base[tokens.sentence] + tokens.end
    is_special = np.fromiter(chain.from_iterable(special), dtype=bool)
    outside = tokens.outside(sizes) & ~is_special
    first = np.searchsorted(np.maximum.accumulate(end), left, side="right")
    last = np.searchsorted(start, right, side="left") - 1
    has_word = (first <= last) & (left < right) & ~is_special & ~outside

    owner = first.copy()
    for token in np.flatnonzero(has_word & (last > first)).tolist():
        run = slice(first[token], last[token] + 1)
        common = np.minimum(end[run], right[token]) - np.maximum(start[run], left[token])
        owner[token] += common.argmax()
        # A word inside a longer one may end before the token begins.
        last[token] = first[token] + np.flatnonzero(common > 0)[-1]

    straddles = has_word & (last > first) & strict
    for token in np.flatnonzero(outside | straddles).tolist():
        reason: Reason = "differs" if outside[token] else "straddles"
        refused.setdefault(int(tokens.sentence[token]), reason)
    if strict:
        opened = np.bincount(left[has_word], minlength=base[-1])
        closed = np.bincount(right[has_word], minlength=base[-1])
        is_covered = np.cumsum(opened - closed) > 0  # by character of the line
        for word in _uncovered(sentences, start, end, is_covered):
            refused.setdefault(int(words.sentence[word]), "uncovered")

    has_word &= ~_is_refused(refused, len(sentences))[tokens.sentence]
    before = np.searchsorted(words.sentence, tokens.sentence)  # words of earlier sentences
    return Alignment(
        np.where(has_word, first - before, NO_WORD),
        np.where(has_word, last - before, NO_WORD),
        np.where(has_word, owner - before, NO_WORD),
        dict(sorted(refused.items())),
    )


@dataclass(frozen=True)
class _Spans:
    """Characters of the words or tokens of many sentences, one after the other."""

    sentence: Int[np.ndarray, "span"]
    start: Int[np.ndarray, "span"]  # within the sentence
    end: Int[np.ndarray, "span"]

    @classmethod
    def of_words(cls, sentences: Sequence[Sentence]) -> "_Spans":
        words = list(chain.from_iterable(sentence.words for sentence in sentences))
        return cls(
            _numbered(sentence.words for sentence in sentences),
            np.fromiter(map(attrgetter("start"), words), np.int64, len(words)),
            np.fromiter(map(attrgetter("end"), words), np.int64, len(words)),
        )

    @classmethod
    def of_tokens(cls, offsets: Sequence[Sequence[Span]]) -> "_Spans":
        places = chain.from_iterable(chain.from_iterable(offsets))
        spans = np.fromiter(places, np.int64).reshape(-1, 2)
        return cls(_numbered(offsets), spans[:, 0], spans[:, 1])

    def outside(self, sizes: Int[np.ndarray, "sentence"]) -> Bool[np.ndarray, "span"]:
        """Spans that are not in a text of that many characters."""
        return (self.start < 0) | (self.start > self.end) | (self.end > sizes[self.sentence])


def _numbered(rows: Iterable[Sequence[object]]) -> Int[np.ndarray, "item"]:
    """The number of the row that every item is in."""
    counts = [len(row) for row in rows]
    return np.repeat(np.arange(len(counts)), counts)


def _is_refused(refused: dict[int, Reason], sentences: int) -> Bool[np.ndarray, "sentence"]:
    mask = np.zeros(sentences, dtype=bool)
    mask[list(refused)] = True
    return mask


def _refuse_words(
    sentences: Sequence[Sentence], words: _Spans, sizes: np.ndarray, *, strict: bool
) -> dict[int, Reason]:
    """Sentences whose words are not in the text one after the other.

    Words that are written as one ("du" = de + le) have the same span, which spells neither; they
    are refused only if strict.
    """
    there = (
        sentence.text[word.start : word.end] == word.text
        for sentence in sentences
        for word in sentence.words
    )
    differs = ~np.fromiter(there, bool, len(words.start))
    outside = words.outside(sizes) | (words.start == words.end)
    start, end = words.start, words.end
    follows = words.sentence[1:] == words.sentence[:-1]
    overlaps = np.zeros(len(start) + 1, dtype=bool)  # each word with the one before it
    overlaps[1:-1] = follows & (start[1:] < end[:-1])
    behind = np.zeros(len(start), dtype=bool)
    behind[1:] = follows & (start[1:] < (end if strict else start)[:-1])
    if not strict:
        differs &= ~(overlaps[:-1] | overlaps[1:])

    refused: dict[int, Reason] = {}
    for word in np.flatnonzero(outside | behind).tolist():
        is_shared = strict and not outside[word]
        refused.setdefault(int(words.sentence[word]), "shared" if is_shared else "differs")
    for word in np.flatnonzero(differs).tolist():
        refused.setdefault(int(words.sentence[word]), "differs")
    return refused


def _uncovered(
    sentences: Sequence[Sentence], start: np.ndarray, end: np.ndarray, is_covered: np.ndarray
) -> list[int]:
    """Words with a letter that no token has, or without a token."""
    missing_before = np.concatenate([[0], np.cumsum(~is_covered)])
    words = list(chain.from_iterable(sentence.words for sentence in sentences))
    uncovered: list[int] = []
    for word in np.flatnonzero(missing_before[end] > missing_before[start]).tolist():
        in_token = is_covered[start[word] : end[word]]
        pairs = zip(words[word].text, in_token, strict=True)
        missing = [character for character, has_token in pairs if not has_token]
        has_letter = any(unicodedata.category(letter)[0] not in _DROPPABLE for letter in missing)
        if has_letter or not in_token.any():
            uncovered.append(word)
    return uncovered


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


def joined_runs(
    words: int, first: Int[np.ndarray, "token"], last: Int[np.ndarray, "token"]
) -> list[list[int]]:
    """Runs of a sentence's words, such that no two runs share a token and every run has one.

    A word without a token joins the one before it, at the beginning the one after it.
    """
    has_token = np.zeros(words, dtype=bool)
    has_token[first[first != NO_WORD]] = True
    joins_previous = np.zeros(words, dtype=bool)
    for token in np.flatnonzero(last > first).tolist():
        joins_previous[first[token] + 1 : last[token] + 1] = True
    if has_token.all() and not joins_previous.any():
        return [[word] for word in range(words)]
    runs: list[list[int]] = []
    run_has_token = True
    for word in range(words):
        if runs and (joins_previous[word] or not has_token[word] or not run_has_token):
            runs[-1].append(word)
            run_has_token |= bool(has_token[word])
        else:
            runs.append([word])
            run_has_token = bool(has_token[word])
    return runs


@dataclass(frozen=True)
class Merged:
    """Words of which some were made one."""

    words: tuple[Word, ...]
    mentions: tuple[Mention, ...]
    tops: tuple[int, ...]  # of every new word, the old one whose analysis it has


def merge_runs(
    text: str, words: Sequence[Word], mentions: Sequence[Mention], runs: Sequence[Sequence[int]]
) -> Merged:
    """One word for every run of words, with the analysis of its top word.

    The top word is the one nearest the root: taking it, the heads still form a tree. Words that
    hung on any word of the run hang on the new one; a mention of one of them is a mention of it.
    """
    if len(runs) == len(words):
        return Merged(tuple(words), tuple(mentions), tuple(range(len(words))))
    place = {old: new for new, run in enumerate(runs) for old in run}
    tops = tuple(min(run, key=lambda index: _depth(words, index)) for run in runs)
    moved = tuple(
        Mention(mention.entity, tuple((place[a], place[b - 1] + 1) for a, b in mention.spans))
        for mention in mentions
    )
    merged = (
        _merge(text, words, run, words[top], place) for run, top in zip(runs, tops, strict=True)
    )
    return Merged(tuple(merged), moved, tops)


def _merge(
    text: str, words: Sequence[Word], run: Sequence[int], top: Word, place: dict[int, int]
) -> Word:
    head = top.head if top.head is None or top.head == ROOT else place[top.head]
    start, end = words[run[0]].start, max(words[index].end for index in run)
    return replace(top, text=text[start:end], start=start, end=end, head=head)


def _depth(words: Sequence[Word], index: int) -> int:
    """Arcs from the word up to the root, or as many as there are words where heads go round."""
    for depth in range(len(words)):
        head = words[index].head
        if head is None or head == ROOT:
            return depth
        index = head
    return len(words)
