"""What a token looks like on screen and paper: always visible, never executed, never reordering.

Also where a sentence has spaces between its tokens, so that it reads as it was written.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence

from headscope.wording import is_shown

SPACE = "\u2423"  # ␣
LONGEST_IN_PRINT = 22
CONTINUES = "##"  # how WordPiece marks a piece that goes on with a word

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
    kinds = (map(_DIRECTIONS.get, map(unicodedata.bidirectional, shown)) for shown in labels)
    directions = [next(filter(None, of_label), None) for of_label in kinds]
    return directions.count("right") > directions.count("left")


def spaces_before(tokens: Sequence[str], text: str, *, word_pieces: bool) -> tuple[bool, ...]:
    """For every token whether a space stands before it in `text`.

    Tokens are looked for in the text one after the other. One that is not there, such as [CLS] or
    half a character, is judged by its own mark: the lack of "##" where the tokenizer marks
    `word_pieces`, else a leading space.
    """
    text = text.lower() if len(text.lower()) == len(text) else text
    spaces: list[bool] = []
    at, follows = 0, True  # follows: the token before was found, so this one is next to it
    for token in tokens:
        found = text.find(bare(token).lower(), at)
        follows = found >= 0 and (not follows or not text[at:found].strip())
        if follows:
            spaces.append(found == 0 or text[found - 1].isspace())
            at = found + len(bare(token))
        else:
            spaces.append(token[:2] != CONTINUES if word_pieces else token.startswith(" "))
    return (False, *spaces[1:]) if spaces else ()


def gaps(
    tokens: Sequence[str],
    text: str,
    offsets: Sequence[tuple[int, int]],
    *,
    word_pieces: bool,
) -> list[int]:
    """What stands before every token in running text: 0 nothing, 1 a space, 2 a new line."""
    found, before = [], 0
    spaced = spaces_before(tokens, text, word_pieces=word_pieces)
    for place, ((start, end), space) in enumerate(zip(offsets, spaced, strict=True)):
        leading = text[start:end][: len(text[start:end]) - len(text[start:end].lstrip())]
        between = text[before:start] + (leading if leading != text[start:end] else "")
        found.append(2 if place and "\n" in between else int(space))
        before = max(before, end)
    return found


def bare(token: str) -> str:
    """A token as a part of running text: without the marks that tell whether it begins a word.

    Of a character in parts ("你 1/3", "你 2/3") the first part is the character, others a small
    number, so that the text can be read and every token can still be marked.
    """
    part = _PART.fullmatch(token.strip(" "))
    if part is not None:
        return part[1] if part[2] == "1" else part[2].translate(_RAISED)
    shown = token.strip(" ").removeprefix(CONTINUES)
    return shown or token


_PART = re.compile(r"(.) ([1-9])/[1-9]", re.DOTALL)
_RAISED = str.maketrans("123456789", "¹²³⁴⁵⁶⁷⁸⁹")


_DIRECTIONS = {"L": "left", "R": "right", "AL": "right"}


def _visible(char: str) -> str:
    if char in _NAMED:
        return _NAMED[char]
    if not is_shown(char):
        return f"‹U+{ord(char):04X}›"
    return " " if unicodedata.category(char) == "Zs" else char
