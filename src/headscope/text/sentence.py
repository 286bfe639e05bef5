"""A sentence as a corpus has it: words with spans, tags and a tree, and mentions of entities."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from headscope.wording import counted, shorten

ROOT = -1
LONGEST_TEXT = 16_000_000  # characters of one sentence, or of one document that is not yet cut
PARAGRAPHS = 2**31  # of a document: their numbers are stored in 32 bits
_SHOWN = 80  # characters of a value that is wrong
_REST_SHOWN = 40  # characters of a text that does not hold the words


@dataclass(frozen=True, slots=True)
class Word:
    """One syntactic word; what the corpus does not annotate is None."""

    text: str
    start: int  # character span in Sentence.text, end exclusive
    end: int
    upos: str | None = None
    xpos: str | None = None
    feats: str | None = None  # CoNLL-U notation, "Gender=Fem|Number=Sing"
    head: int | None = None  # index of the governing word, ROOT (-1) for the root of the tree
    deprel: str | None = None


@dataclass(frozen=True, slots=True)
class Mention:
    """A phrase that refers to an entity: word ranges, end exclusive, several if discontinuous."""

    entity: str
    spans: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of a document."""

    text: str
    words: tuple[Word, ...] = ()
    mentions: tuple[Mention, ...] = ()
    document: str = ""
    paragraph: int = 0
    id: str = ""


class Problem(NamedTuple):
    """What is wrong with a sentence and how to mend it."""

    message: str
    word: int | None = None  # the word where it is, if it is at one


def problem(sentence: Sentence) -> Problem | None:
    """The first thing that no sentence of a corpus may have; None if it is sound.

    Every reader asks this, so that whatever works on a corpus may rely on spans that lie in the
    text, heads that lie in the sentence and lead to a root, and mentions that have words.
    """
    words, length, count = sentence.words, len(sentence.text), len(sentence.words)
    if length > LONGEST_TEXT:
        return Problem(f"the text is longer than {LONGEST_TEXT:,} characters; cut it.")
    if not 0 <= sentence.paragraph < PARAGRAPHS:
        return Problem(f"the paragraph is {quoted(sentence.paragraph)}; number them from 0.")
    for index, word in enumerate(words):
        if not 0 <= word.start <= word.end <= length:
            return Problem(f"{_named(words, index)} does not lie in the text; correct it.", index)
        if word.head is not None and not ROOT <= word.head < count:
            return Problem(
                f"the head {quoted(word.head)} of {_named(words, index)} is not in the sentence; "
                f"give the index of a word, 0 to {count - 1}, or {ROOT} for the root.",
                index,
            )
    index = find_cycle([word.head for word in words])
    if index is not None:
        message = f"the heads of {_named(words, index)} lead back to it; correct them."
        return Problem(message, index)
    for mention in sentence.mentions:
        if not mention.spans:
            return Problem(f"the mention of {quoted(mention.entity)} has no words; remove it.")
        for start, end in mention.spans:
            if not 0 <= start < end <= count:
                return Problem(
                    f"the mention of {quoted(mention.entity)} does not lie in the sentence, which "
                    f"has {counted(count, 'words')}; correct its spans."
                )
    return None


def find_cycle(heads: Sequence[int | None]) -> int | None:
    """A word that is its own ancestor, or None; several roots and missing heads are allowed."""
    walks = [0] * len(heads)  # which walk came by a word first; walk n starts at word n - 1
    for walk in range(1, len(heads) + 1):
        word: int | None = walk - 1
        while word is not None and word != ROOT and not walks[word]:
            walks[word] = walk
            word = heads[word]
        if word is not None and word != ROOT and walks[word] == walk:
            return word
    return None


class SurfaceError(Exception):
    """A text that does not hold the tokens: the first that does not fit, and what is there."""

    def __init__(self, index: int, rest: str) -> None:
        super().__init__(f"token {index} is not at {rest!r}")
        self.index = index
        self.rest = rest


def locate(forms: Sequence[str], text: str) -> list[tuple[int, int]]:
    """Character spans of the tokens, which follow each other with nothing but space between."""
    spans: list[tuple[int, int]] = []
    place = 0
    for index, form in enumerate(forms):
        if not text.startswith(form, place):
            place = _skip_space(text, place)
            if not text.startswith(form, place):
                raise SurfaceError(index, shorten(text[place:], _REST_SHOWN))
        spans.append((place, place + len(form)))
        place += len(form)
    place = _skip_space(text, place)
    if place != len(text):
        raise SurfaceError(len(forms), shorten(text[place:], _REST_SHOWN))
    return spans


def _skip_space(text: str, place: int) -> int:
    while place < len(text) and text[place].isspace():
        place += 1
    return place


def quoted(value: object) -> str:
    """A value for a message, cut where it is long."""
    try:
        return shorten(repr(value), _SHOWN)
    except RecursionError:
        return "a value with lists in lists"


def _named(words: Sequence[Word], index: int) -> str:
    return f"word {index + 1} {quoted(words[index].text)}"
