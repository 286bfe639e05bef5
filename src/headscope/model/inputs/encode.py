"""Text as a model sees it: token ids with display strings, character spans and segments.

The words of a raw text and the tokens that spell them, by character spans.

A word is a maximal run of characters without space. Scripts that write no spaces (Chinese,
Japanese, Thai …) are cut where the tokenizer cuts them: there each token is its own word. A token
that spans a space joins the words it touches, so every token with visible text has exactly one
word.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import compress, pairwise
from typing import Protocol

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from headscope.errors import ModelError
from headscope.model.inputs.frame import Bos, bos_id, check_bos, find_frame
from headscope.model.inputs.spans import Turn
from headscope.model.inputs.tokens import Placed, brief, display_text, encode_slowly

Span = tuple[int, int]
BY_TOKEN = ("ids", "tokens", "offsets", "segments", "special", "sequence")  # of an Encoded
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U000323af]"
)


class Tokenized(Protocol):
    """What is read of an `Encoding` of the tokenizers library."""

    @property
    def ids(self) -> list[int]: ...
    @property
    def offsets(self) -> list[Span]: ...
    @property
    def type_ids(self) -> list[int]: ...
    @property
    def special_tokens_mask(self) -> list[int]: ...
    @property
    def sequence_ids(self) -> list[int | None]: ...
    def __len__(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Encoded:
    """The tokens of one text, or of a pair of texts."""

    text: str
    pair: str | None
    ids: tuple[int, ...]
    tokens: tuple[str, ...]  # readable: " cat", "##ing", "[CLS]"
    offsets: tuple[Span, ...]  # characters of the token's own text; (0, 0) for special tokens
    segments: tuple[int, ...]
    special: tuple[bool, ...]  # added by the tokenizer, or a marker within the text
    sequence: tuple[int | None, ...]  # 0 for the text, 1 for its pair, None for special tokens
    turns: tuple[Turn, ...] = ()  # those of a chat

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        pair = "" if self.pair is None else f", {brief(self.pair)!r}"
        return f"Encoded({len(self)} tokens: {brief(self.text)!r}{pair})"

    @property
    def is_parted(self) -> bool:
        """Whether a special token stands between the text and its pair."""
        return not any(two == 1 and one == 0 for one, two in pairwise(self.sequence))


def encode(
    tokenizer: PreTrainedTokenizerBase,
    text: str,
    pair: str | None = None,
    *,
    special: bool = True,
    bos: Bos = "auto",
    limit: int | None = None,
    truncate: bool = False,
) -> Encoded:
    """Tokenize a text or a pair; one longer than `limit` is an error unless `truncate` is set."""
    check_bos(tokenizer, bos)
    for part, name in ((text, "text"), (pair, "pair")):
        if part is not None and not part.strip():
            raise ModelError(f"The {name} is empty: give at least one word.")
    most = None
    if truncate and limit is not None:
        most = limit - _added(tokenizer, bos, special=special)
    with tokenizing(tokenizer):
        make = _encode_fast if tokenizer.is_fast else encode_slowly
        made = with_bos(tokenizer, make(tokenizer, text, pair, special=special, limit=most), bos)
    check_length(len(made), limit)
    if not made.ids:
        raise ModelError(f"The tokenizer makes no token of {text[:40]!r}: give at least one word.")
    found, marks = encoded_of(tokenizer, text, made), markers(tokenizer)
    flags = zip(found.special, found.ids, strict=True)
    return replace(found, pair=pair, special=tuple(flag or index in marks for flag, index in flags))


def _encode_fast(
    tokenizer: PreTrainedTokenizerBase,
    text: str,
    pair: str | None,
    *,
    special: bool,
    limit: int | None,
) -> Tokenized:
    made = tokenizer(
        text,
        pair,
        add_special_tokens=special,
        truncation=limit is not None,
        max_length=limit,
        return_token_type_ids=True,
        verbose=False,
    )
    assert made.encodings is not None
    return made.encodings[0]


def _added(tokenizer: PreTrainedTokenizerBase, bos: Bos, *, special: bool) -> int:
    """How many tokens `with_bos` adds: 1, 0 or -1."""
    if not special:
        return int(bos == "always")
    return len(find_frame(tokenizer, bos)) - len(find_frame(tokenizer))


def with_bos(tokenizer: PreTrainedTokenizerBase, encoding: Tokenized, bos: Bos) -> Tokenized:
    """The tokens with or without the BOS token before them."""
    if bos == "auto":
        return encoding
    begins = encoding.ids[:1] == [tokenizer.bos_token_id]
    if bos == "never" and begins and encoding.special_tokens_mask[0]:
        return Placed(
            encoding.ids[1:],
            encoding.offsets[1:],
            encoding.type_ids[1:],
            encoding.special_tokens_mask[1:],
            encoding.sequence_ids[1:],
        )
    if bos == "always" and not begins:
        return Placed(
            [bos_id(tokenizer), *encoding.ids],
            [(0, 0), *encoding.offsets],
            [0, *encoding.type_ids],
            [1, *encoding.special_tokens_mask],
            [None, *encoding.sequence_ids],
        )
    return encoding


def encode_all(
    tokenizer: PreTrainedTokenizerBase, texts: Sequence[str], *, special: bool = True
) -> Sequence[Tokenized]:
    """The tokens of many texts in one call, however long; see `encoded_of`."""
    with tokenizing(tokenizer):
        if not tokenizer.is_fast:
            return [encode_slowly(tokenizer, text, special=special) for text in texts]
        made = tokenizer(
            list(texts),
            add_special_tokens=special,
            return_attention_mask=False,
            return_token_type_ids=False,
            verbose=False,
        )
    return made.encodings or []


def encoded_of(tokenizer: PreTrainedTokenizerBase, text: str, encoding: Tokenized) -> Encoded:
    """One of the texts of `encode_all` as `encode` would give it."""
    return Encoded(
        text=text,
        pair=None,
        ids=tuple(encoding.ids),
        tokens=display_text(tokenizer, encoding.ids),
        offsets=tuple(encoding.offsets),
        segments=tuple(encoding.type_ids),
        special=tuple(map(bool, encoding.special_tokens_mask)),
        sequence=tuple(encoding.sequence_ids),
    )


@contextmanager
def tokenizing(tokenizer: PreTrainedTokenizerBase) -> Iterator[None]:
    """Turn whatever a tokenizer raises into one sentence; a panic in Rust is no Exception."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit, GeneratorExit, ModelError):
        raise
    except BaseException as error:
        raise ModelError(
            f"The tokenizer {type(tokenizer).__name__} fails on this text "
            f"({brief(str(error))}); repair its tokenizer.json or take another model."
        ) from error


def take(encoded: Encoded, length: int) -> Encoded:
    """The first tokens only."""
    return select(encoded, [place < length for place in range(len(encoded))])


def select(encoded: Encoded, kept: Sequence[bool]) -> Encoded:
    """Some of the tokens."""
    parts = {name: tuple(compress(getattr(encoded, name), kept)) for name in BY_TOKEN}
    return replace(encoded, **parts)


def markers(tokenizer: PreTrainedTokenizerBase) -> dict[int, str]:
    """Tokens that are no text wherever they stand: "<|im_start|>", "</s>", "[SEP]".

    An unknown word and a masked one are text, unless their token has another use as well.
    """
    named = tokenizer.special_tokens_map
    uses = {name: str(token) for name, token in named.items() if isinstance(token, str)}
    text = {uses.pop(name, None) for name in ("unk_token", "mask_token")} - set(uses.values())
    added = tokenizer.added_tokens_decoder.items()
    found = [(index, token.content) for index, token in added if token.special]
    found += zip(tokenizer.all_special_ids, tokenizer.all_special_tokens, strict=True)
    return {index: token for index, token in found if token not in text}


def check_length(length: int, limit: int | None) -> None:
    """Refuse more tokens than the model has positions."""
    if limit is not None and length > limit:
        raise ModelError(
            f"The text has {length} tokens, but the model takes at most {limit}; shorten it, or "
            "ask for truncation (truncate=True)."
        )


def encode_target(
    network: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    text: str,
    *,
    limit: int | None,
    truncate: bool,
) -> Encoded:
    """The start token and the target text, without the end token: that is only ever predicted."""
    encoded = encode(tokenizer, text, limit=limit, truncate=truncate)
    if encoded.special[-1]:
        encoded = take(encoded, len(encoded) - 1)
    started = start_with(network, tokenizer, encoded)
    if truncate and limit is not None:
        started = take(started, limit)
    check_length(len(started), limit)
    return started


def start_with(
    network: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, encoded: Encoded
) -> Encoded:
    """The same tokens after the decoder's start token."""
    start = decoder_start(network)
    first = (start, str(tokenizer.convert_ids_to_tokens(start)), (0, 0), 0, True, None)
    parts = zip(BY_TOKEN, first, strict=True)
    return replace(encoded, **{name: (one, *getattr(encoded, name)) for name, one in parts})


def decoder_start(network: PreTrainedModel) -> int:
    """The id that a decoder reads first."""
    for config in (network.config, network.generation_config):
        for name in ("decoder_start_token_id", "bos_token_id"):
            found = getattr(config, name, None)
            if isinstance(found, int):
                return found
    raise ModelError(
        f"{network.config.model_type} does not say with which token its decoder starts; set "
        "decoder_start_token_id in its config.json."
    )


def words_of_tokens(
    text: str, offsets: Sequence[Span], special: Sequence[bool]
) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """The words of a text, and for every token the index of its word (-1 for none)."""
    spans = [
        (0, 0) if is_special else _trim(text, span)
        for span, is_special in zip(offsets, special, strict=True)
    ]
    words = _join(_cut(text, spans), spans)
    found = tuple(_index(words, span) for span in spans)
    used = sorted({index for index in found if index >= 0})
    place = {index: number for number, index in enumerate(used)}
    return (
        tuple(text[start:end] for start, end in (words[index] for index in used)),
        tuple(place.get(index, -1) for index in found),
    )


def _trim(text: str, span: Span) -> Span:
    """The span without the spaces at its ends, which some tokenizers count to the token."""
    start, end = span
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return start, end


def _cut(text: str, spans: Sequence[Span]) -> list[Span]:
    starts = {start for start, end in spans if start < end}
    words: list[Span] = []
    for run in re.finditer(r"\S+", text):
        cuts = [run.start()]
        cuts += [c for c in range(run.start() + 1, run.end()) if c in starts and _unspaced(text, c)]
        words += zip(cuts, [*cuts[1:], run.end()], strict=True)
    return words


def _unspaced(text: str, cut: int) -> bool:
    """Whether a word may end here without a space; never before a combining mark."""
    if unicodedata.combining(text[cut]):
        return False
    return bool(_UNSPACED.match(text[cut]) or _UNSPACED.match(text[cut - 1]))


def _join(words: list[Span], spans: Sequence[Span]) -> list[Span]:
    inside = {place for start, end in spans for place in range(start + 1, end)}
    joined: list[Span] = []
    for word in words:
        if joined and word[0] in inside:
            joined[-1] = (joined[-1][0], word[1])
        else:
            joined.append(word)
    return joined


def _index(words: Sequence[Span], span: Span) -> int:
    """A token with visible text starts inside a word, for only spaces lie between words."""
    if span[0] == span[1]:
        return -1
    return bisect_right(words, span[0], key=lambda word: word[0]) - 1
