"""Readable strings for tokens: what a person should see in a view.

Tokenizers that work on bytes cut characters of several bytes into pieces. A piece alone is no
text; beside its neighbours it is a part of a character, and is shown as that part:

```
  text      你              👍
  bytes     E4 BD   A0      F0 9F   91      8D
  tokens    ä½      ł       ðŁ      ĳ       į
  shown     你 1/2  你 2/2  👍 1/3  👍 2/3  👍 3/3
```
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

# What a token reads as, by tokenizer and id: a corpus repeats a few thousand of them.
_KNOWN: "WeakKeyDictionary[PreTrainedTokenizerBase, dict[int, str]]" = WeakKeyDictionary()

_INVISIBLE = str.maketrans({"\n": "⏎", "\t": "⇥", "\r": "↵"})
_UNREADABLE = "\ufffd"
_BRIEF = 40  # characters
_FALLBACK = re.compile("<0x([0-9A-F]{2})>")  # a byte that SentencePiece has no piece for


def display(tokenizer: "PreTrainedTokenizerBase", ids: Iterable[int]) -> tuple[str, ...]:
    """One readable string per token, each on its own.

    A leading space stays, for it tells a new word from a continuation ("Ġcat" and "▁cat" → " cat");
    WordPiece keeps its "##"; special tokens stay as they are; a piece of a character is "�".
    """
    ids = list(ids)
    known = _KNOWN.setdefault(tokenizer, {})
    new = [index for index in dict.fromkeys(ids) if index not in known]
    if new:
        special = set(tokenizer.all_special_ids)
        for index, token in zip(new, tokenizer.convert_ids_to_tokens(new), strict=True):
            shown = str(token) if index in special else _readable(tokenizer, index, token)
            known[index] = shown
    return tuple(known[index] for index in ids)


def display_text(tokenizer: "PreTrainedTokenizerBase", ids: Sequence[int]) -> tuple[str, ...]:
    """One readable string per token of a text: a piece of a character says which one ("你 1/3")."""
    shown = display(tokenizer, ids)
    if not any(_UNREADABLE in each for each in shown):
        return shown
    tokens = tokenizer.convert_ids_to_tokens(list(ids))
    pieces = [
        _piece(token) if _UNREADABLE in each else None
        for token, each in zip(tokens, shown, strict=True)
    ]
    found = list(shown)
    # Every token that has a part of a character is unreadable alone, so that runs are complete.
    for is_run, places in groupby(range(len(ids)), key=lambda place: pieces[place] is not None):
        if is_run:
            run = list(places)
            labels = _label([pieces[place] or b"" for place in run])
            for place, label in zip(run, labels, strict=True):
                found[place] = label
    return tuple(found)


def unmark(token: str) -> str:
    """A raw token without marks for spaces: "Ġcat" and "▁cat" → " cat", "cat</w>" → "cat"."""
    return token.replace("Ġ", " ").replace("▁", " ").removesuffix("</w>").translate(_INVISIBLE)


def brief(text: str) -> str:
    """The beginning of a text, for messages and reprs."""
    return text if len(text) <= _BRIEF else f"{text[: _BRIEF - 1]}…"


def _readable(tokenizer: "PreTrainedTokenizerBase", index: int, token: str | None) -> str:
    if token is None:  # embedding tables are often larger than the vocabulary
        return f"<{index}>"
    text = _text(tokenizer, index, token)
    if text.strip(" "):
        return text.translate(_INVISIBLE)
    return text.replace(" ", "␣") or token


def _text(tokenizer: "PreTrainedTokenizerBase", index: int, token: str) -> str:
    if "▁" in token:  # SentencePiece: decoding one token alone would drop its space
        return token.replace("▁", " ")
    if token.startswith("##"):
        return token
    return str(tokenizer.decode([index], clean_up_tokenization_spaces=False))


@dataclass(frozen=True, slots=True)
class _Character:
    """A character in a run of bytes, or a byte that is part of none."""

    start: int
    stop: int
    name: str


def _piece(token: str) -> bytes | None:
    """The bytes of a raw token; None if it is not made of bytes, or of whole characters only."""
    fallback = _FALLBACK.fullmatch(token)
    if fallback is not None:
        return bytes([int(fallback[1], 16)])
    table = _bytes_of_letters()
    if not all(letter in table for letter in token):
        return None
    piece = bytes(table[letter] for letter in token)
    return None if _decode(piece) is not None else piece


def _label(pieces: Sequence[bytes]) -> Iterator[str]:
    """What each of the consecutive pieces holds: whole characters, and parts of others."""
    content = b"".join(pieces)
    ends = [sum(map(len, pieces[: n + 1])) for n in range(len(pieces))]
    spans = list(zip([0, *ends], ends, strict=False))
    characters = list(_characters(content))
    for start, stop in spans:
        own = [c for c in characters if c.start < stop and c.stop > start]
        yield _join([_part(character, (start, stop), spans) for character in own])


def _characters(content: bytes) -> Iterator[_Character]:
    start = 0
    while start < len(content):
        length = next((n for n in (1, 2, 3, 4) if _decode(content[start : start + n])), 0)
        text = _decode(content[start : start + length]) or f"<0x{content[start]:02X}>"
        yield _Character(start, start + max(1, length), text)
        start += max(1, length)


def _part(
    character: _Character, span: tuple[int, int], spans: Sequence[tuple[int, int]]
) -> tuple[str, bool]:
    """How a token shows a character, and whether it holds only a part of it."""
    touching = [each for each in spans if character.start < each[1] and character.stop > each[0]]
    if len(touching) == 1:
        return character.name.translate(_INVISIBLE), False
    return f"{_visible(character.name)} {touching.index(span) + 1}/{len(touching)}", True


def _join(parts: Sequence[tuple[str, bool]]) -> str:
    """A dot separates the part of a character from what else the token holds."""
    text = ""
    for place, (shown, is_part) in enumerate(parts):
        apart = is_part or parts[place - 1][1]
        text += f"·{shown}" if place and apart and text.strip(" ") else shown
    return text


def _visible(character: str) -> str:
    """A character that leaves ink on its own, or its code point (joiners, variation selectors)."""
    unseen = unicodedata.category(character)[0] in "MCZ"
    return f"U+{ord(character):04X}" if unseen else character


def _decode(piece: bytes) -> str | None:
    try:
        return piece.decode()
    except UnicodeDecodeError:
        return None


@lru_cache(maxsize=1)
def _bytes_of_letters() -> dict[str, int]:
    """The letter that byte-level tokenizers write for each byte, reversed.

    Bytes that are visible in Latin-1 stand for themselves, the others for letters from U+0100 on.
    """
    visible = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = [byte for byte in range(256) if byte not in visible]
    moved = {chr(0x100 + place): byte for place, byte in enumerate(others)}
    return {chr(byte): byte for byte in visible} | moved
