"""Tokens as text: what a person should see of them, and where they stand.

Tokenizers that work on bytes cut characters of several bytes into pieces. A piece alone is no
text; beside its neighbours it is a part of a character, and is shown as that part:

```
  text      你              👍
  bytes     E4 BD   A0      F0 9F   91      8D
  tokens    ä½      ł       ðŁ      ĳ       į
  shown     你 1/2  你 2/2  👍 1/3  👍 2/3  👍 3/3
```

Tokenizers written in Python report no character spans. Every token is decoded and looked for where
the last one ended. Nothing is guessed: the ids must be those of the tokens, every token must stand
at its place, up to case and accents, and all of the text but spaces must be covered. Else the text
is refused.

```
  text     The  cafés        tokens   the  caf@@  es       spans   0–3  5–8  8–10
```
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from headscope.errors import ModelError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

# What a token reads as, by tokenizer and id: a corpus repeats a few thousand of them.
_KNOWN: "WeakKeyDictionary[PreTrainedTokenizerBase, dict[int, str]]" = WeakKeyDictionary()

_INVISIBLE = str.maketrans({"\n": "⏎", "\t": "⇥", "\r": "↵"})
_UNREADABLE = "\ufffd"
_BRIEF = 40  # characters
_FALLBACK = re.compile("<0x([0-9A-F]{2})>")  # a byte that SentencePiece has no piece for

Span = tuple[int, int]

# How tokenizers mark the beginning or the rest of a word.
_BEFORE = ("##", "▁", "Ġ")
_AFTER = ("@@", "</w>")
_SPACE_MARKS = ("▁", "Ġ")
_LONGEST_CHARACTER = 4  # tokens, where they are bytes
_SLACK = 3  # characters more than a token has, which normalising may have joined into one


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
    if not any(_UNREADABLE in label for label in labels):
        return tuple(labels)
    tokens = tokenizer.convert_ids_to_tokens(list(ids))
    pieces = [
        _bytes_of(token) if _UNREADABLE in label else None
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


@dataclass(frozen=True, slots=True)
class Placed:
    """The tokens of a text or a pair of texts; has what is read of a fast tokenizer's encoding."""

    ids: list[int]
    offsets: list[Span]
    type_ids: list[int]
    special_tokens_mask: list[int]
    sequence_ids: list[int | None]

    def __len__(self) -> int:
        return len(self.ids)


def encode_slowly(
    tokenizer: "PreTrainedTokenizerBase",
    text: str,
    pair: str | None = None,
    *,
    special: bool = True,
    limit: int | None = None,
) -> Placed:
    """Tokenize a text or a pair, cut to `limit` where one is given, and find every token's span."""
    made: Any = tokenizer(
        text,
        pair,
        add_special_tokens=special,
        truncation=limit is not None,
        max_length=limit,
        return_special_tokens_mask=True,
        return_token_type_ids=True,
        verbose=False,
    )
    ids, added = list(made["input_ids"]), list(made["special_tokens_mask"])
    parts = [each for each in (text, pair) if each is not None]
    spans = [list(_place(tokenizer, part)) for part in parts]
    offsets: list[Span] = []
    sequence: list[int | None] = []
    taken = [0, 0]
    which = 0
    for place, (index, is_added) in enumerate(zip(ids, added, strict=True)):
        if is_added:
            which += which + 1 < len(parts) and taken[which] > 0  # the next text begins
            offsets.append((0, 0))
            sequence.append(None)
            continue
        if taken[which] == len(spans[which]) and which + 1 < len(parts):
            which += 1
        own = spans[which]
        if taken[which] >= len(own) or own[taken[which]][0] != index:
            raise _unplaced(tokenizer, parts[which], f"token {place} is not where it is expected")
        offsets.append(own[taken[which]][1])
        sequence.append(which)
        taken[which] += 1
    return Placed(ids, offsets, list(made["token_type_ids"]), added, sequence)


def _place(tokenizer: "PreTrainedTokenizerBase", text: str) -> Iterator[tuple[int, Span]]:
    """The id and the span of every token of a text, none of it left over."""
    tokens = [str(token) for token in tokenizer.tokenize(text)]
    ids: Any = tokenizer.convert_tokens_to_ids(tokens)
    end, waiting = 0, 0
    for place, index in enumerate(ids):
        begun = place - waiting
        if not waiting and tokens[place] == tokenizer.unk_token:
            span = _gap(tokenizer, tokens[place + 1 : place + 2], text, end)
        else:
            surfaces = _surfaces(tokenizer, tokens[begun : place + 1])
            span = next((found for each in surfaces if (found := _find(each, text, end))), None)
        if span is None:
            waiting += 1
            if waiting >= _LONGEST_CHARACTER:
                raise _unplaced(tokenizer, text, f"{tokens[begun]!r} is not where it is expected")
            continue
        yield from ((each, span) for each in ids[begun:place])  # parts of one character share it
        yield index, span
        end, waiting = span[1], 0
    if waiting:
        raise _unplaced(tokenizer, text, f"{tokens[-waiting]!r} is not where it is expected")
    if text[end:].strip():
        raise _unplaced(tokenizer, text, f"{brief(text[end:].strip())!r} is in none of its tokens")


def _surfaces(tokenizer: "PreTrainedTokenizerBase", tokens: Sequence[str]) -> Iterator[str]:
    """What tokens may look like in the text: decoded, or without the marks of their word."""
    decoded = str(tokenizer.convert_tokens_to_string(list(tokens)))  # pyright: ignore[reportAttributeAccessIssue]
    if decoded and _UNREADABLE not in decoded:
        yield decoded
    if len(tokens) > 1 or not decoded:
        return
    bare = tokens[0]
    for mark in _BEFORE:
        bare = bare.removeprefix(mark)
    for mark in _AFTER:
        bare = bare.removesuffix(mark)
    if bare:
        yield bare


def _gap(
    tokenizer: "PreTrainedTokenizerBase", following: Sequence[str], text: str, start: int
) -> Span | None:
    """What an unknown token stands for: the rest of a word, up to the token that follows it there.

    None where that may begin in several places.
    """
    while start < len(text) and text[start].isspace():
        start += 1
    stop = next((n for n in range(start, len(text)) if text[n].isspace()), len(text))
    if not following or start == stop:
        return (start, stop) if start < stop else None
    if following[0] == tokenizer.unk_token:  # which may be of the same word
        return (start, stop) if text[stop:].strip() else None
    bare = [surface.strip() for surface in _surfaces(tokenizer, following)]
    begins = {n for n in range(start + 1, stop) for each in bare if each and _find(each, text, n)}
    if len(begins) > 1:
        return None
    return start, min(begins, default=stop)


def _find(surface: str, text: str, start: int) -> Span | None:
    """Where a token stands: right here, or after spaces."""
    if text.startswith(surface, start):
        return start, start + len(surface)
    wanted = surface.strip()
    while start < len(text) and text[start].isspace():
        start += 1
    if not wanted:
        return None
    if text.startswith(wanted, start):
        return start, start + len(wanted)
    for end in range(start + 1, min(len(text), start + len(wanted) + _SLACK) + 1):
        if _plain(text[start:end]) == _plain(wanted):
            while end < len(text) and unicodedata.combining(text[end]):
                end += 1
            return start, end
    return None


def _plain(text: str) -> str:
    """Without case and accents, as tokenizers normalise."""
    apart = unicodedata.normalize("NFKD", text).casefold()
    return "".join(char for char in apart if not unicodedata.combining(char))


def _unplaced(tokenizer: "PreTrainedTokenizerBase", text: str, why: str) -> ModelError:
    return ModelError(
        f"The tokenizer {type(tokenizer).__name__} does not report character positions, and "
        f"decoding does not give {brief(text)!r} back ({why}); change the text, or use a model "
        "with a tokenizer.json."
    )
