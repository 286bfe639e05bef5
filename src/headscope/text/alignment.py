"""Which model tokens make up which word, by character spans; refuses to guess."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from headscope.errors import AlignmentError
from headscope.text.sentence import Word

NO_WORD = -1

# Marks, control and format characters and separators: what a tokenizer's normaliser may drop
# (BERT strips accents, SentencePiece zero-width characters) without the word losing a letter.
_DROPPABLE = "MCZ"


@dataclass(frozen=True)
class Alignment:
    """Words and tokens of one text: every token has at most one word, every word has a token."""

    word_of_token: tuple[int, ...]  # NO_WORD for special tokens and for space between words
    tokens_of_word: tuple[tuple[int, ...], ...]


def align(
    words: Sequence[Word],
    text: str,
    offsets: Sequence[tuple[int, int]],
    special: Sequence[bool],
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
    tokens_of_word: list[list[int]] = [[] for _ in words]
    for token, (start, end) in enumerate(offsets):
        word = NO_WORD if special[token] else _word_of(owner, start, end, words, text)
        word_of_token.append(word)
        if word != NO_WORD:
            tokens_of_word[word].append(token)
            covered[start:end] = b"\1" * (end - start)
    for word in words:
        _check_covered(word, covered)
    return Alignment(tuple(word_of_token), tuple(map(tuple, tokens_of_word)))


def _owners(words: Sequence[Word], text: str) -> list[int]:
    """For every character the index of its word."""
    owner = [NO_WORD] * len(text)
    previous = 0
    for index, word in enumerate(words):
        if not 0 <= word.start < word.end <= len(text):
            raise _differs(word, text)
        if word.start < previous:
            raise _shared(words[index - 1], word, text)
        owner[word.start : word.end] = [index] * (word.end - word.start)
        previous = word.end
    for word in words:
        if text[word.start : word.end] != word.text:
            raise _differs(word, text)
    return owner


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
        raise _straddles(text[start:end], [words[index].text for index in sorted(found)])
    return found.pop() if found else NO_WORD


def _check_covered(word: Word, covered: bytearray) -> None:
    place = covered.find(0, word.start, word.end)
    while place != -1:
        character = word.text[place - word.start]
        if unicodedata.category(character)[0] not in _DROPPABLE:
            raise _uncovered(word, character)
        place = covered.find(0, place + 1, word.end)
    if not any(covered[word.start : word.end]):
        raise _uncovered(word, word.text)


def _differs(word: Word, text: str) -> AlignmentError:
    return AlignmentError(
        f"The word {word.text!r} at characters {word.start}–{word.end} is not in the text, which "
        f"has {text[max(word.start, 0) : max(word.end, 0)]!r} there; correct the word's span.",
        reason="differs",
    )


def _shared(first: Word, second: Word, text: str) -> AlignmentError:
    return AlignmentError(
        f"The words {first.text!r} and {second.text!r} are both written as "
        f"{text[second.start : second.end]!r}, so no token can be given to one of them; "
        'read the corpus with fused="merge" to take them as one word.',
        reason="shared",
    )


def _straddles(piece: str, words: list[str]) -> AlignmentError:
    names = " and ".join(map(repr, words))
    return AlignmentError(
        f"The token {piece!r} covers characters of the words {names}; "
        "skip the sentence or use a tokenizer that splits there.",
        reason="straddles",
    )


def _uncovered(word: Word, missing: str) -> AlignmentError:
    return AlignmentError(
        f"No token covers {missing!r} of the word {word.text!r} at characters "
        f"{word.start}–{word.end}; skip the sentence, or encode the whole text.",
        reason="uncovered",
    )
