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
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

# What a token reads as, by tokenizer and id: a corpus repeats a few thousand of them.
_KNOWN: "WeakKeyDictionary[PreTrainedTokenizerBase, dict[int, str]]" = WeakKeyDictionary()

_INVISIBLE = str.maketrans({"\n": "⏎", "\t": "⇥", "\r": "↵"})
UNREADABLE = "\ufffd"
_BRIEF = 40  # characters

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


def display_text(
    tokenizer: "PreTrainedTokenizerBase",
    ids: Sequence[int],
    texts: Sequence[str],
    places: Sequence[tuple[int, int, int] | None],
) -> tuple[str, ...]:
    """One readable string per token of some texts: a part of a character says which ("你 1/3").

    A place is the first character, the one after the last, and the number of the text.
    """
    labels = list(display(tokenizer, ids))
    holders: defaultdict[tuple[int, int], list[int]] = defaultdict(list)  # tokens of a character
    for token, place in enumerate(places):
        if place is not None and UNREADABLE in labels[token]:
            for character in range(*place[:2]):
                holders[place[2], character].append(token)
    parts: defaultdict[int, list[str]] = defaultdict(list)
    for (text, character), tokens in holders.items():
        letter = texts[text][character]
        if len(tokens) > 1 and not letter.isascii():  # which is a single byte
            for number, token in enumerate(tokens, start=1):
                parts[token].append(f"{_visible(letter)} {number}/{len(tokens)}")
    for token, of_token in parts.items():
        before, *_, after = re.split(f"{UNREADABLE}+", labels[token])
        pieces = [before, *of_token, after]
        labels[token] = "·".join(piece for piece in pieces if piece.strip(" "))
        if not before.strip(" "):
            labels[token] = before + labels[token]
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


def _visible(character: str) -> str:
    """A character that leaves ink on its own, or its code point (joiners, variation selectors)."""
    unseen = unicodedata.category(character)[0] in "MCZ"
    return f"U+{ord(character):04X}" if unseen else character
