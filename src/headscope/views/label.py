"""What a token looks like on screen and paper: always visible, never executed, never reordering."""

import unicodedata

SPACE = "\u2423"  # ␣
LONGEST_IN_PRINT = 22

_NAMED = {"\n": "\u23ce", "\t": "\u21e5", "\r": "\u240d", "\x7f": "\u2421"}


def label(token: str) -> str:
    """`token` with everything invisible made visible; a leading space is not part of the label."""
    shown = "".join(map(_visible, token))
    if shown.strip(" "):
        return shown.strip(" ")
    return SPACE * max(1, len(shown))


def short(shown: str, longest: int = LONGEST_IN_PRINT) -> str:
    """The label cut to what fits a printed column."""
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"


def is_right_to_left(labels: tuple[str, ...]) -> bool:
    """Whether most letters with a direction run from right to left."""
    kinds = [unicodedata.bidirectional(char) for shown in labels for char in shown]
    right = sum(kind in ("R", "AL") for kind in kinds)
    return right > sum(kind == "L" for kind in kinds)


def _visible(char: str) -> str:
    if char in _NAMED:
        return _NAMED[char]
    category = unicodedata.category(char)
    if category == "Cc":
        return chr(0x2400 + ord(char)) if ord(char) < 0x20 else _code_point(char)
    if category in ("Cs", "Zl", "Zp") or (category == "Cf" and char not in _JOINERS):
        return _code_point(char)
    return " " if category == "Zs" else char


_JOINERS = "\u200c\u200d"  # emoji sequences and Indic scripts need them


def _code_point(char: str) -> str:
    return f"‹U+{ord(char):04X}›"
