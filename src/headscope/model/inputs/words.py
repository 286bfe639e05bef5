"""The words of a raw text and the tokens that spell them, by character spans.

A word is a maximal run of characters without space. Scripts that write no spaces (Chinese,
Japanese, Thai …) are cut where the tokenizer cuts them: there each token is its own word. A token
that spans a space joins the words it touches, so every token with visible text has exactly one
word.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Sequence

CharacterSpan = tuple[int, int]  # the first character and the one after the last
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U000323af]"
)


def words_of_tokens(
    text: str, offsets: Sequence[CharacterSpan], special: Sequence[bool]
) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """The words of a text, and for every token the index of its word (-1 for none)."""
    spans = [
        (0, 0) if is_special else _trim(text, span)
        for span, is_special in zip(offsets, special, strict=True)
    ]
    words = _join(_cut(text, spans), spans)
    word_of_token = tuple(_index(words, span) for span in spans)
    used = sorted({index for index in word_of_token if index >= 0})
    place = {index: number for number, index in enumerate(used)}
    return (
        tuple(text[start:end] for start, end in (words[index] for index in used)),
        tuple(place.get(index, -1) for index in word_of_token),
    )


def _trim(text: str, span: CharacterSpan) -> CharacterSpan:
    """The span without the spaces at its ends, which some tokenizers count to the token."""
    start, end = span
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return start, end


def _cut(text: str, spans: Sequence[CharacterSpan]) -> list[CharacterSpan]:
    starts = {start for start, end in spans if start < end}
    words: list[CharacterSpan] = []
    for run in re.finditer(r"\S+", text):
        cuts = [run.start()]
        cuts += [c for c in range(run.start() + 1, run.end()) if c in starts and _unspaced(text, c)]
        words += zip(cuts, [*cuts[1:], run.end()], strict=True)
    return words


def _unspaced(text: str, cut: int) -> bool:
    """Whether a word may end here without a space; never before a combining mark."""
    if unicodedata.combining(text[cut]):
        return False
    return bool(_UNSPACED.match(text[cut]) or _UNSPACED.match(text[cut - 1]))


def _join(words: list[CharacterSpan], spans: Sequence[CharacterSpan]) -> list[CharacterSpan]:
    inside = {place for start, end in spans for place in range(start + 1, end)}
    joined: list[CharacterSpan] = []
    for word in words:
        if joined and word[0] in inside:
            joined[-1] = (joined[-1][0], word[1])
        else:
            joined.append(word)
    return joined


def _index(words: Sequence[CharacterSpan], span: CharacterSpan) -> int:
    """A token with visible text starts inside a word, for only spaces lie between words."""
    if span[0] == span[1]:
        return -1
    return bisect_right(words, span[0], key=lambda word: word[0]) - 1
