"""What a token looks like on screen and paper: always visible, never executed, never reordering."""

import unicodedata
from collections.abc import Iterable

SPACE = "\u2423"  # ␣
LONGEST_IN_PRINT = 22

# Signs that the font within matplotlib has: a figure must not depend on what is installed.
_NAMED = {"\n": "\u23ce", "\t": "\u21e5"}


def label(token: str) -> str:
    """`token` with everything invisible made visible; a leading space is not part of the label."""
    shown = "".join(map(_visible, token))
    if shown.strip(" "):
        return shown.strip(" ")
    return SPACE * max(1, len(shown))


def short(shown: str, longest: int = LONGEST_IN_PRINT) -> str:
    """The label cut to what fits a printed column."""
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"


def is_right_to_left(labels: Iterable[str]) -> bool:
    """Whether most labels that have a direction run from right to left."""
    directions = [_direction(shown) for shown in labels]
    return directions.count("right") > directions.count("left")


def _direction(shown: str) -> str | None:
    kinds = (_DIRECTIONS.get(unicodedata.bidirectional(char)) for char in shown)
    return next((kind for kind in kinds if kind is not None), None)


_DIRECTIONS = {"L": "left", "R": "right", "AL": "right"}


def _visible(char: str) -> str:
    if char in _NAMED:
        return _NAMED[char]
    category = unicodedata.category(char)
    if category in ("Cc", "Cs", "Zl", "Zp") or (category == "Cf" and char not in _JOINERS):
        return _code_point(char)
    return " " if category == "Zs" else char


_JOINERS = "\u200c\u200d"  # emoji sequences and Indic scripts need them


def _code_point(char: str) -> str:
    return f"‹U+{ord(char):04X}›"
