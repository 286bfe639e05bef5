"""Exemplar sentences: the attending token is bold, the attended one underlined, as in the paper.

A long sentence is cut around the pair, and … says where.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from headscope.head import name_head
from headscope.results.examples import ANY, Exemplar
from headscope.results.statements import Choice
from headscope.results.tables import HeadName
from headscope.views.labels import bare, label, short, spaces_before

LONGEST = 192  # columns of what is shown of a sentence
CUT = "…"
_PART = re.compile(r"(.) [1-9]/([1-9])", re.DOTALL)  # of a character in several tokens


@dataclass(frozen=True)
class Piece:
    """A token, or the tokens of one character, and the space before it."""

    text: str
    attending: bool
    attended: bool

    @property
    def bare(self) -> str:
        return self.text.lstrip(" ")

    @property
    def columns(self) -> int:
        """How wide it is without the space; Chinese and Japanese signs are twice as wide."""
        return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in self.bare)


@dataclass(frozen=True)
class ShownExemplar:
    """A sentence and the weight between its two marked tokens."""

    weight: float
    pieces: tuple[Piece, ...]

    @property
    def text(self) -> str:
        return "".join(piece.text for piece in self.pieces).strip()

    @property
    def shown(self) -> list[Piece]:
        """What is shown of it."""
        return cut(self.pieces)


@dataclass(frozen=True)
class ShownHead:
    """A head, why it is shown, and its exemplars."""

    name: str
    why: str
    exemplars: tuple[ShownExemplar, ...]


@dataclass(frozen=True)
class Group:
    """The heads of one table of exemplars."""

    anchor: str
    title: str
    heads: tuple[ShownHead, ...]


def show_head(choice: Choice, exemplars: Iterable[Exemplar], *, word_pieces: bool) -> ShownHead:
    """One head and its exemplars for the page."""
    shown = tuple(
        ShownExemplar(exemplar.weight, pieces_of(exemplar, word_pieces=word_pieces))
        for exemplar in exemplars
    )
    return ShownHead(name_head(choice.layer, choice.head), choice.why, shown)


def pieces_of(exemplar: Exemplar, *, word_pieces: bool) -> tuple[Piece, ...]:
    """The tokens with their spaces, so that together they read as the sentence does.

    A character in several tokens is one piece, marked if any of them is.
    """
    tokens = exemplar.tokens
    spaces = spaces_before(tokens, exemplar.text, word_pieces=word_pieces)
    return tuple(
        Piece(
            " " * spaces[places[0]] + short(label(bare(tokens[places[0]])), LONGEST // 6),
            exemplar.query in places,
            exemplar.key in places,
        )
        for places in _characters(tokens)
    )


def _characters(tokens: Sequence[str]) -> Iterator[range]:
    """Places of the tokens that are shown together."""
    place = 0
    while place < len(tokens):
        part = _PART.fullmatch(tokens[place].strip(" "))
        same = f"{part[1]} 1/{part[2]}" if part else ""
        count = int(part[2]) if part and tokens[place].strip(" ") == same else 1
        yield range(place, min(place + count, len(tokens)))
        place += count


def cut(pieces: Sequence[Piece]) -> list[Piece]:
    """What of a sentence is shown: both marked tokens, and their neighbours by turns."""
    widths = [len(piece.text) - len(piece.bare) + piece.columns for piece in pieces]
    marked = [place for place, piece in enumerate(pieces) if piece.attending or piece.attended]
    shown, room = set(marked), LONGEST - sum(widths[place] for place in marked)
    edges = [(place, step) for place in marked for step in (-1, 1)]
    while edges:
        grown = []
        for place, step in edges:
            near = place + step
            if 0 <= near < len(pieces) and near not in shown and widths[near] <= room:
                shown.add(near)
                room -= widths[near]
                grown.append((near, step))
        edges = grown
    return list(_with_cuts(pieces, sorted(shown)))


def _with_cuts(pieces: Sequence[Piece], shown: Sequence[int]) -> Iterator[Piece]:
    gap = Piece(f" {CUT}", attending=False, attended=False)
    before = -1
    for place in shown:
        if place > before + 1:
            yield gap
        yield pieces[place]
        before = place
    if before + 1 < len(pieces):
        yield gap


def csv_rows(
    choice: Choice, exemplars: Iterable[Exemplar], *, word_pieces: bool
) -> list[dict[str, Any]]:
    """The exemplars of a head as plain rows, the pair marked as **attending** and _attended_."""
    return [
        {
            "head": HeadName(name_head(choice.layer, choice.head)),
            "why": choice.why,
            "kind": choice.kind or ANY,
            "pick": str(each.rank + 1),
            "weight": round(each.weight, 4),
            "attending": _text_of(each.tokens[each.query]),
            "attended": _text_of(each.tokens[each.key]),
            "sentence": "".join(map(_mark, pieces_of(each, word_pieces=word_pieces))),
            "id": each.input.id,
        }
        for each in exemplars
    ]


def _text_of(token: str) -> str:
    part = _PART.fullmatch(token.strip())
    return part[1] if part else token.strip()


def _mark(piece: Piece) -> str:
    line, stars = "_" * piece.attended, "**" * piece.attending
    space = piece.text[: len(piece.text) - len(piece.bare)]
    return f"{space}{stars}{line}{piece.bare}{line}{stars}"
