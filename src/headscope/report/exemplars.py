"""Exemplar sentences: the attending token and the attended token marked, every piece shown."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from headscope.head import name_head
from headscope.results.exemplars import Exemplar
from headscope.results.statements import Choice
from headscope.views.labels import bare, spaces_before


@dataclass(frozen=True)
class Piece:
    """A token with the space before it."""

    text: str
    attending: bool
    attended: bool


@dataclass(frozen=True)
class ShownExemplar:
    """A sentence and the weight between its two marked tokens."""

    weight: float
    pieces: tuple[Piece, ...]


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


def of_choice(choice: Choice, exemplars: Iterable[Exemplar]) -> list[Exemplar]:
    """The exemplars of one head, the surest first."""
    own = [
        each for each in exemplars if (each["layer"], each["head"]) == (choice.layer, choice.head)
    ]
    return sorted(own, key=lambda each: each["rank"])


def show_head(choice: Choice, exemplars: Iterable[Exemplar]) -> ShownHead:
    """One head for the page."""
    own = of_choice(choice, exemplars)
    shown = tuple(ShownExemplar(each["weight"], pieces_of(each)) for each in own)
    return ShownHead(name_head(choice.layer, choice.head), choice.why, shown)


def pieces_of(exemplar: Exemplar) -> tuple[Piece, ...]:
    """The tokens with their spaces, so that together they read as the sentence does."""
    tokens = exemplar["tokens"]
    spaces = spaces_before(tokens, exemplar["text"])
    return tuple(
        Piece(" " * space + bare(token), place == exemplar["query"], place == exemplar["key"])
        for place, (token, space) in enumerate(zip(tokens, spaces, strict=True))
    )


def csv_rows(choices: Sequence[Choice], exemplars: Sequence[Exemplar]) -> list[dict[str, Any]]:
    """The same as plain rows, the pair marked as **attending** and *attended*."""
    return [
        {
            "head": name_head(choice.layer, choice.head),
            "why": choice.why,
            "rank": each["rank"] + 1,
            "weight": round(each["weight"], 4),
            "attending": each["tokens"][each["query"]].strip(),
            "attended": each["tokens"][each["key"]].strip(),
            "sentence": "".join(map(_mark, pieces_of(each))),
            "id": each["id"],
        }
        for choice in choices
        for each in of_choice(choice, exemplars)
    ]


def _mark(piece: Piece) -> str:
    stars = "*" * (2 * piece.attending + piece.attended)
    text = piece.text.lstrip()
    return f"{piece.text[: len(piece.text) - len(text)]}{stars}{text}{stars}"
