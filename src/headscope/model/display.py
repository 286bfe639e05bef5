"""Readable strings for tokens: what a person should see in a view."""

from collections.abc import Sequence
from weakref import WeakKeyDictionary

from transformers import PreTrainedTokenizerBase

# What a token reads as, by tokenizer and id: a corpus repeats a few thousand of them.
_KNOWN: WeakKeyDictionary[PreTrainedTokenizerBase, dict[int, str]] = WeakKeyDictionary()

_INVISIBLE = str.maketrans({"\n": "⏎", "\t": "⇥", "\r": "↵"})


def display(tokenizer: PreTrainedTokenizerBase, ids: Sequence[int]) -> tuple[str, ...]:
    """One readable string per token.

    A leading space stays, for it tells a new word from a continuation ("Ġcat" and "▁cat" → " cat");
    WordPiece keeps its "##"; special tokens stay as they are; a piece of a character is "�".
    """
    known = _KNOWN.setdefault(tokenizer, {})
    new = [index for index in dict.fromkeys(ids) if index not in known]
    if new:
        special = set(tokenizer.all_special_ids)
        for index, token in zip(new, tokenizer.convert_ids_to_tokens(new), strict=True):
            shown = str(token) if index in special else _readable(tokenizer, index, token)
            known[index] = shown
    return tuple(known[index] for index in ids)


def _readable(tokenizer: PreTrainedTokenizerBase, index: int, token: str | None) -> str:
    if token is None:  # embedding tables are often larger than the vocabulary
        return f"<{index}>"
    text = _text(tokenizer, index, token)
    if text.strip(" "):
        return text.translate(_INVISIBLE)
    return text.replace(" ", "␣") or token


def _text(tokenizer: PreTrainedTokenizerBase, index: int, token: str) -> str:
    if "▁" in token:  # SentencePiece: decoding one token alone would drop its space
        return token.replace("▁", " ")
    if token.startswith("##"):
        return token
    return str(tokenizer.decode([index], clean_up_tokenization_spaces=False))


def unmark(token: str) -> str:
    """A raw token without marks for spaces: "Ġcat" and "▁cat" → " cat", "cat</w>" → "cat"."""
    return token.replace("Ġ", " ").replace("▁", " ").removesuffix("</w>").translate(_INVISIBLE)
