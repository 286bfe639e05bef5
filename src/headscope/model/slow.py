"""Character spans of tokenizers that report none: those written in Python.

Every token is decoded and looked for where the last one ended. Nothing is guessed: the ids must be
those of the tokens, every token must stand at its place, up to case and accents, and all of the
text but spaces must be covered. Else the text is refused.

```
  text     The  cafés        tokens   the  caf@@  es       spans   0–3  5–8  8–10
```
"""

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from transformers import PreTrainedTokenizerBase

from headscope.errors import ModelError
from headscope.model.display import brief

Span = tuple[int, int]
# How tokenizers mark the beginning or the rest of a word.
_BEFORE = ("##", "▁", "Ġ")
_AFTER = ("@@", "</w>")
_PART = "\ufffd"
_LONGEST_CHARACTER = 4  # tokens, where they are bytes
_SLACK = 3  # characters more than a token has, which normalising may have joined into one


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
    tokenizer: PreTrainedTokenizerBase,
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


def _place(tokenizer: PreTrainedTokenizerBase, text: str) -> Iterator[tuple[int, Span]]:
    """The id and the span of every token of a text, none of it left over."""
    tokens = [str(token) for token in tokenizer.tokenize(text)]
    ids: Any = tokenizer.convert_tokens_to_ids(tokens)
    end, waiting = 0, 0
    for place, index in enumerate(ids):
        begun = place - waiting
        if not waiting and tokens[place] == tokenizer.unk_token:
            span = _gap(tokenizer, tokens[place + 1 : place + 2], text, end)
        else:
            span = _find_any(_surfaces(tokenizer, tokens[begun : place + 1]), text, end)
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


def _surfaces(tokenizer: PreTrainedTokenizerBase, tokens: Sequence[str]) -> Iterator[str]:
    """What tokens may look like in the text: decoded, or without the marks of their word."""
    decoded = str(tokenizer.convert_tokens_to_string(list(tokens)))  # pyright: ignore[reportAttributeAccessIssue]
    if decoded and _PART not in decoded:
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


def _find_any(surfaces: Iterable[str], text: str, start: int) -> Span | None:
    return next((found for each in surfaces if (found := _find(each, text, start))), None)


def _gap(
    tokenizer: PreTrainedTokenizerBase, following: Sequence[str], text: str, start: int
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
    surfaces = list(_surfaces(tokenizer, following))
    begins = {n for n in range(start + 1, stop) for s in surfaces if _is_at(s.strip(), text, n)}
    if len(begins) > 1:
        return None
    return start, min(begins, default=stop)


def _is_at(wanted: str, text: str, start: int) -> bool:
    return bool(wanted) and _find(wanted, text, start) is not None


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


def _unplaced(tokenizer: PreTrainedTokenizerBase, text: str, why: str) -> ModelError:
    return ModelError(
        f"The tokenizer {type(tokenizer).__name__} does not report character positions, and "
        f"decoding does not give {brief(text)!r} back ({why}); change the text, or use a model "
        "with a tokenizer.json."
    )
