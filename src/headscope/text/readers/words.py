"""Words as a file gives them: where they stand in the text, and whether their heads form a tree."""

from collections.abc import Sequence
from itertools import groupby

from headscope.text.sentence import ROOT, Mention, Word
from headscope.wording import shorten

_SHOWN = 40  # characters of a text that does not hold the words


class SurfaceError(Exception):
    """A text that does not hold the tokens, with the index of the first that does not fit."""

    def __init__(self, index: int, found: str) -> None:
        super().__init__(f"token {index} is not at {found!r}")
        self.index = index
        self.found = found


def join(forms: Sequence[str], glued: Sequence[bool]) -> str:
    """The text of tokens with one space after each that is not glued to the next."""
    parts = [form if tight else f"{form} " for form, tight in zip(forms, glued, strict=True)]
    return "".join(parts).rstrip(" ")


def locate(forms: Sequence[str], text: str) -> list[tuple[int, int]]:
    """Character spans of the tokens, which follow each other with nothing but space between."""
    spans: list[tuple[int, int]] = []
    place = 0
    for index, form in enumerate(forms):
        if not text.startswith(form, place):
            place = _skip_space(text, place)
            if not text.startswith(form, place):
                raise SurfaceError(index, shorten(text[place:], _SHOWN))
        spans.append((place, place + len(form)))
        place += len(form)
    place = _skip_space(text, place)
    if place != len(text):
        raise SurfaceError(len(forms), shorten(text[place:], _SHOWN))
    return spans


def _skip_space(text: str, place: int) -> int:
    while place < len(text) and text[place].isspace():
        place += 1
    return place


def find_cycle(heads: Sequence[int | None]) -> int | None:
    """A word that is its own ancestor, or None; several roots and missing heads are allowed."""
    done = bytearray(len(heads))
    for word in range(len(heads)):
        trail: list[int] = []
        current: int | None = word
        while current is not None and current != ROOT and not done[current]:
            done[current] = 1
            trail.append(current)
            current = heads[current]
        if current in trail:
            return current
    return None


def merge_fused(
    text: str, words: tuple[Word, ...], mentions: tuple[Mention, ...]
) -> tuple[tuple[Word, ...], tuple[Mention, ...]]:
    """One word for every run of words with the same span, with the analysis of its top word.

    The top word is the one nearest the root: taking it, the heads still form a tree. Words that
    hung on any word of the run hang on the new one; a mention of one of them is a mention of it.
    """
    runs = [list(run) for _, run in groupby(range(len(words)), key=lambda i: words[i].start)]
    if len(runs) == len(words):
        return words, mentions
    place = {old: new for new, run in enumerate(runs) for old in run}
    merged = tuple(_merge(text, words, run, place) for run in runs)
    moved = tuple(
        Mention(mention.entity, tuple((place[a], place[b - 1] + 1) for a, b in mention.spans))
        for mention in mentions
    )
    return merged, moved


def _merge(text: str, words: Sequence[Word], run: list[int], place: dict[int, int]) -> Word:
    top = words[min(run, key=lambda index: _depth(words, index))]
    head = top.head if top.head is None or top.head == ROOT else place[top.head]
    form = text[top.start : top.end]
    return Word(form, top.start, top.end, top.upos, top.xpos, top.feats, head, top.deprel)


def _depth(words: Sequence[Word], index: int) -> int:
    """Arcs from the word up to the root."""
    depth = 0
    head = words[index].head
    while head is not None and head != ROOT:
        depth += 1
        head = words[head].head
    return depth
