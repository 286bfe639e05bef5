"""Small pieces of English that messages share."""

import unicodedata
from pathlib import Path

_CUT = " …"
_SAID = 120  # characters of what another library says
_JOINERS = "\u200c\u200d"  # emoji sequences and Indic scripts need them


def counted(count: int, nouns: str) -> str:
    """A count with its noun, given in the plural: "1 sentence", "1,024 sentences"."""
    if count != 1:
        return f"{count:,} {nouns}"
    if nouns.endswith("ies"):
        return f"1 {nouns[:-3]}y"
    sibilant = nouns.endswith(("sses", "xes", "ches", "shes"))
    return f"1 {nouns[:-2] if sibilant else nouns.removesuffix('s')}"


def shorten(text: str, width: int) -> str:
    """One line of at most `width` characters, cut between words and marked as cut."""
    line = " ".join(text.split())
    if len(line) <= width:
        return line
    room = line[: width - len(_CUT) + 1]
    whole, space, _ = room.rpartition(" ")
    return (whole if space else room[:-1]).rstrip(" ,;:") + _CUT


def model_title(name: str) -> str:
    """The name of a model as a title has it: of a local directory or file its last part."""
    return Path(name).name if Path(name).is_absolute() else name


def is_number(text: str) -> bool:
    """Whether a text reads as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def plain(text: str) -> str:
    """A text from a corpus, a model or a run as it may be printed: it cannot command a terminal.

    Control characters, also those that turn the direction of writing, are replaced; lines stay.
    """
    return "".join(char if char == "\n" or is_shown(char) else "\ufffd" for char in text)


def said(error: BaseException) -> str:
    """What another library says of a failure: its first line, as it may be printed."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return shorten(plain(lines[0]), _SAID).removesuffix(".")


def is_shown(char: str) -> bool:
    """Whether a character can be seen or joins others: it is no command and turns nothing round."""
    kind = unicodedata.category(char)
    return kind not in ("Cc", "Cs", "Zl", "Zp") and (kind != "Cf" or char in _JOINERS)
