"""Where the written tokens of a sentence stand in its text."""

from collections.abc import Sequence


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
                raise SurfaceError(index, text[place : place + 20])
        spans.append((place, place + len(form)))
        place += len(form)
    place = _skip_space(text, place)
    if place != len(text):
        raise SurfaceError(len(forms), text[place : place + 20])
    return spans


def _skip_space(text: str, place: int) -> int:
    while place < len(text) and text[place].isspace():
        place += 1
    return place
