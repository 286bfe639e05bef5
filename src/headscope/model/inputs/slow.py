"""Tokens of tokenizers written in Python, which report no character spans.

Every token is decoded and looked for where the last one ended. Nothing is guessed: the ids must be
those of the tokens, every token must stand at its place, up to case and accents, and all of the
text but spaces must be covered. Else the text is refused.

```
  text     The  cafés        tokens   the  caf@@  es       spans   0–3  5–8  8–10
```
"""

import unicodedata
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from headscope.errors import ModelError
from headscope.model.inputs.labels import UNREADABLE, brief, display_text
from headscope.model.inputs.tokens import Characters, Place, Tokens
from headscope.model.inputs.words import CharacterSpan

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

# How tokenizers mark the beginning or the rest of a word.
_BEFORE = ("##", "▁", "Ġ")
_AFTER = ("@@", "</w>")
_LONGEST_CHARACTER = 4  # tokens, where they are bytes
_SLACK = 3  # characters more than a token has, which normalising may have joined into one


def encode_slowly(
    tokenizer: "PreTrainedTokenizerBase",
    texts: Sequence[str],
    *,
    special: bool = True,
    limit: int | None = None,
) -> Tokens:
    """Tokenize a text or a pair, cut to a limit if there is one, and place every token."""
    made: Any = tokenizer(
        *texts,
        add_special_tokens=special,
        truncation=limit is not None,
        max_length=limit,
        return_special_tokens_mask=True,
        return_token_type_ids=True,
        verbose=False,
    )
    ids, added = tuple(made["input_ids"]), tuple(map(bool, made["special_tokens_mask"]))
    expected = [list(_place(tokenizer, text)) for text in texts]
    places: list[Place | None] = []
    number, taken = 0, 0  # the text at hand, and how many of its tokens have been met
    for position, (index, is_added) in enumerate(zip(ids, added, strict=True)):
        is_over = taken == len(expected[number]) or (is_added and taken > 0)
        if is_over and number + 1 < len(texts):  # a text may have been cut: then a token follows it
            number, taken = number + 1, 0
        if is_added:
            places.append(None)
            continue
        if taken == len(expected[number]) or expected[number][taken][0] != index:
            reason = f"token {position} is not where it is expected"
            raise _unplaced(tokenizer, texts[number], reason)
        places.append(Characters(*expected[number][taken][1], number))
        taken += 1
    return Tokens(
        ids=ids,
        labels=display_text(tokenizer, ids, texts, places),
        places=tuple(places),
        special=added,
        segments=tuple(made["token_type_ids"]),
        texts=tuple(texts),
    )


def _place(tokenizer: "PreTrainedTokenizerBase", text: str) -> Iterator[tuple[int, CharacterSpan]]:
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
    if decoded and UNREADABLE not in decoded:
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
) -> CharacterSpan | None:
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


def _find(surface: str, text: str, start: int) -> CharacterSpan | None:
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
