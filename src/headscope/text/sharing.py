"""Tokens that several words share: whose they are, and words joined so that no token is shared.

```
text     say "go."           words    say | " | go | . | "
tokens   say Ġ" go ."        the last token covers characters of two words

share    ."  belongs to  .   the word with most of its characters, the earlier where equal
join     words are           say | " | go | ."     with the analysis of the word nearest the root
```

`align` refuses such a sentence. Here only a word that is not in the text at all is refused.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Literal

from headscope.errors import AlignmentError
from headscope.text.alignment import NO_WORD, Alignment
from headscope.text.sentence import ROOT, Mention, Sentence, Word

Span = tuple[int, int]
# What becomes of a token that several words share: it is kept, its sentence is skipped, or words
# are encoded one by one, so that there is none.
Sharing = Literal["overlap", "strict", "words"]
# What is counted of words and their tokens.
WORDS = "words"
SPLIT = "words of several tokens"
SEVERAL = "tokens of several words"
JOINED = "words joined"
BARE = "words without a token"


@dataclass(frozen=True)
class Shared:
    """The word of every token, and the tokens that have characters of several words."""

    word_of_token: tuple[int, ...]  # NO_WORD for special tokens and for space between words
    several: tuple[int, ...]


@dataclass(frozen=True)
class Joined:
    """A sentence in which words that shared a token are one word."""

    sentence: Sentence
    alignment: Alignment
    tops: tuple[int, ...]  # of every new word, the old one whose analysis it has
    merged: int  # old words that are no longer words of their own, with those they were joined to
    several: int  # tokens that had characters of several words


def share(
    words: Sequence[Word], text: str, offsets: Sequence[Span], special: Sequence[bool]
) -> Shared:
    """Give each token the word with which it shares the most characters, the earlier where equal.

    Raises AlignmentError with the reason "differs" if a word or a token is not in the text.
    """
    found = _common(words, text, offsets, special)
    return Shared(
        tuple(max(common, key=common.__getitem__) if common else NO_WORD for common in found),
        tuple(token for token, common in enumerate(found) if len(common) > 1),
    )


def join(sentence: Sentence, offsets: Sequence[Span], special: Sequence[bool]) -> Joined:
    """Make one word of all that share a token; a word without a token joins the one before it.

    The new word has the tag, relation and governor of the word nearest the root, and what hung on
    any of them hangs on it; relations between them vanish. Raises AlignmentError with the reason
    "differs" as `share` does, and "uncovered" if no word has a token.
    """
    found = _common(sentence.words, sentence.text, offsets, special)
    runs = _runs(len(sentence.words), found)
    merged = merge_runs(sentence.text, sentence.words, sentence.mentions, runs)
    place = {old: new for new, run in enumerate(runs) for old in run}
    word_of_token = [place[min(common)] if common else NO_WORD for common in found]
    return Joined(
        replace(sentence, words=merged.words, mentions=merged.mentions),
        Alignment.of(word_of_token, len(runs)),
        merged.tops,
        merged=sum(len(run) for run in runs if len(run) > 1),
        several=sum(len(common) > 1 for common in found),
    )


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


def _common(
    words: Sequence[Word], text: str, offsets: Sequence[Span], special: Sequence[bool]
) -> list[Counter[int]]:
    """For every token the words that it has characters of, in order, with how many."""
    owners = _owners(words, text)
    found: list[Counter[int]] = []
    for (start, end), is_special in zip(offsets, special, strict=True):
        if not is_special and not 0 <= start <= end <= len(text):
            raise _differs(f"A token spans characters {start}–{end} of a text of {len(text)}")
        here = [] if is_special else owners[start:end]
        found.append(Counter(chain.from_iterable(here)))
    return found


def _owners(words: Sequence[Word], text: str) -> list[list[int]]:
    """For every character the words that it belongs to."""
    _check_words(words, text)
    owners: list[list[int]] = [[] for _ in text]
    for index, word in enumerate(words):
        for place in range(word.start, word.end):
            owners[place].append(index)
    return owners


def _check_words(words: Sequence[Word], text: str) -> None:
    """Words follow one another and are what the text has there.

    Words that are written as one ("du" = de + le) have the same span, which spells neither.
    """
    for index, word in enumerate(words):
        beside = words[max(index - 1, 0) : index + 2]
        is_fused = any(
            other is not word and word.start < other.end and other.start < word.end
            for other in beside
        )
        follows = index == 0 or words[index - 1].start <= word.start
        if not follows or not 0 <= word.start < word.end <= len(text):
            raise _differs(f"The word {word.text!r} says it is at {word.start}–{word.end}")
        if not is_fused and text[word.start : word.end] != word.text:
            raise _differs(
                f"The word {word.text!r} is not in the text, which has "
                f"{text[word.start : word.end]!r} at {word.start}–{word.end}"
            )


def _differs(what: str) -> AlignmentError:
    return AlignmentError(f"{what}; correct the spans.", reason="differs")


def _runs(words: int, found: Sequence[Counter[int]]) -> list[list[int]]:
    """Neighbouring words that become one."""
    has_token = [False] * words
    joins_previous = [False] * words
    for common in found:
        for index in common:
            has_token[index] = True
        for index in range(min(common, default=0) + 1, max(common, default=0) + 1):
            joins_previous[index] = True
    if words and not any(has_token):
        raise AlignmentError(
            "No token covers any word of the sentence; skip it, or encode its whole text.",
            reason="uncovered",
        )
    runs: list[list[int]] = []
    for index in range(words):
        waits = bool(runs) and not any(has_token[word] for word in runs[-1])
        if runs and (joins_previous[index] or not has_token[index] or waits):
            runs[-1].append(index)
        else:
            runs.append([index])
    return runs
