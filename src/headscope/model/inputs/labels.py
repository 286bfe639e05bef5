"""Tokens as text: what a person should see of them.

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
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import groupby
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

# What a token reads as, by tokenizer and id: a corpus repeats a few thousand of them.
_KNOWN: "WeakKeyDictionary[PreTrainedTokenizerBase, dict[int, str]]" = WeakKeyDictionary()

_INVISIBLE = str.maketrans({"\n": "⏎", "\t": "⇥", "\r": "↵"})
UNREADABLE = "\ufffd"
_BRIEF = 40  # characters
_FALLBACK = re.compile("<0x([0-9A-F]{2})>")  # a byte that SentencePiece has no piece for

_SPACE_MARKS = ("▁", "Ġ")  # of the beginning of a word


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
    labels = list(display(tokenizer, ids))
    if not any(UNREADABLE in label for label in labels):
        return tuple(labels)
    tokens = tokenizer.convert_ids_to_tokens(list(ids))
    pieces = [
        _bytes_of(token) if UNREADABLE in label else None
        for token, label in zip(tokens, labels, strict=True)
    ]
    # Every token that has a part of a character is unreadable alone, so that runs are complete.
    for is_run, places in groupby(range(len(ids)), key=lambda place: pieces[place] is not None):
        run = list(places)
        if is_run:
            labels[run[0] : run[-1] + 1] = _labels([pieces[place] or b"" for place in run])
    return tuple(labels)


def marks_word_pieces(tokenizer: "PreTrainedTokenizerBase") -> bool:
    """Whether spaces are left out of tokens and "##" marks those that go on with a word."""
    if any(token.startswith(_SPACE_MARKS) for token in tokenizer.tokenize("a a")):
        return False  # a vocabulary of bytes has "##" for headings
    return any(len(token) > len("##") and token.startswith("##") for token in tokenizer.get_vocab())


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


def _bytes_of(token: str) -> bytes | None:
    """The bytes that a raw token stands for; None if it is not made of bytes."""
    fallback = _FALLBACK.fullmatch(token)
    if fallback is not None:
        return bytes([int(fallback[1], 16)])
    table = _bytes_of_letters()
    if all(letter in table for letter in token):
        return bytes(table[letter] for letter in token)
    return None


def _labels(pieces: Sequence[bytes]) -> list[str]:
    """What each of the consecutive pieces holds: whole characters, and parts of others.

    A dot separates the part of a character from what else the token holds.
    """
    holder_of_byte = [number for number, piece in enumerate(pieces) for _ in piece]
    labels = [""] * len(pieces)
    ends_in_part = [False] * len(pieces)
    start = 0
    for character in b"".join(pieces).decode(errors="surrogateescape"):
        content = character.encode(errors="surrogateescape")
        holders = list(dict.fromkeys(holder_of_byte[start : start + len(content)]))
        start += len(content)
        is_part = len(holders) > 1
        for number, holder in enumerate(holders, 1):
            shown = character.translate(_INVISIBLE)
            if is_part:
                shown = f"{_visible(character)} {number}/{len(holders)}"
            elif "\udc80" <= character <= "\udcff":  # a byte that is part of no character
                shown = f"<0x{content[0]:02X}>"
            if (is_part or ends_in_part[holder]) and labels[holder].strip(" "):
                shown = f"·{shown}"
            labels[holder] += shown
            ends_in_part[holder] = is_part
    return labels


def _visible(character: str) -> str:
    """A character that leaves ink on its own, or its code point (joiners, variation selectors)."""
    unseen = unicodedata.category(character)[0] in "MCZ"
    return f"U+{ord(character):04X}" if unseen else character


@lru_cache(maxsize=1)
def _bytes_of_letters() -> dict[str, int]:
    """The letter that byte-level tokenizers write for each byte, reversed.

    Bytes that are visible in Latin-1 stand for themselves, the others for letters from U+0100 on.
    """
    visible = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = [byte for byte in range(256) if byte not in visible]
    moved = {chr(0x100 + place): byte for place, byte in enumerate(others)}
    return {chr(byte): byte for byte in visible} | moved
