"""Text as a model sees it: token ids with display strings, character spans and segments."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise

from tokenizers import Encoding
from transformers import BatchEncoding, PreTrainedModel, PreTrainedTokenizerBase

from headscope.errors import ModelError
from headscope.model.display import brief, display_text

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Encoded:
    """The tokens of one text, or of a pair of texts."""

    text: str
    pair: str | None
    ids: tuple[int, ...]
    tokens: tuple[str, ...]  # readable: " cat", "##ing", "[CLS]"
    offsets: tuple[
        Span, ...
    ]  # character spans into the token's own text; (0, 0) for special tokens
    segments: tuple[int, ...]
    special: tuple[bool, ...]  # added by the tokenizer, part of no text
    sequence: tuple[int | None, ...]  # 0 for the text, 1 for its pair, None for special tokens

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
    limit: int | None = None,
    truncate: bool = False,
) -> Encoded:
    """Tokenize a text or a pair; one longer than `limit` is an error unless `truncate` is set."""
    _check_text(text, pair)
    check_tokenizer(tokenizer)
    cut = truncate and limit is not None
    with tokenizing(tokenizer):
        encoding = tokenizer(
            text,
            pair,
            add_special_tokens=special,
            truncation=cut,
            max_length=limit if cut else None,
            return_offsets_mapping=True,
            return_special_tokens_mask=True,
            return_token_type_ids=True,
            verbose=False,
        )
    return _encoded(tokenizer, encoding, text, pair, limit)


def encode_all(
    tokenizer: PreTrainedTokenizerBase, texts: Sequence[str], *, special: bool = True
) -> list[Encoding]:
    """The tokens of many texts in one call, however long; see `encoded_of`."""
    check_tokenizer(tokenizer)
    with tokenizing(tokenizer):
        made = tokenizer(
            list(texts),
            add_special_tokens=special,
            return_attention_mask=False,
            return_token_type_ids=False,
            verbose=False,
        )
    return made.encodings or []


def encoded_of(tokenizer: PreTrainedTokenizerBase, text: str, encoding: Encoding) -> Encoded:
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


def check_tokenizer(tokenizer: PreTrainedTokenizerBase) -> None:
    """Refuse tokenizers that do not say which characters a token stands for."""
    if not tokenizer.is_fast:
        raise ModelError(
            f"The tokenizer {type(tokenizer).__name__} does not report character positions, so its "
            "tokens cannot be placed in the text; use a model with a tokenizer.json."
        )


def prefix_special(encoded: Encoded, start: int, token: str) -> Encoded:
    """The same tokens with one special token before them, as decoders start."""
    return Encoded(
        text=encoded.text,
        pair=encoded.pair,
        ids=(start, *encoded.ids),
        tokens=(token, *encoded.tokens),
        offsets=((0, 0), *encoded.offsets),
        segments=(0, *encoded.segments),
        special=(True, *encoded.special),
        sequence=(None, *encoded.sequence),
    )


def take(encoded: Encoded, length: int) -> Encoded:
    """The first tokens only."""
    return Encoded(
        text=encoded.text,
        pair=encoded.pair,
        ids=encoded.ids[:length],
        tokens=encoded.tokens[:length],
        offsets=encoded.offsets[:length],
        segments=encoded.segments[:length],
        special=encoded.special[:length],
        sequence=encoded.sequence[:length],
    )


def _check_text(text: str, pair: str | None) -> None:
    for part, name in ((text, "text"), (pair, "pair")):
        if part is not None and not part.strip():
            raise ModelError(f"The {name} is empty: give at least one word.")


def _encoded(
    tokenizer: PreTrainedTokenizerBase,
    encoding: BatchEncoding,
    text: str,
    pair: str | None,
    limit: int | None,
) -> Encoded:
    ids: Sequence[int] = encoding["input_ids"]  # pyright: ignore[reportAssignmentType]
    check_length(len(ids), limit)
    if not ids:
        raise ModelError(f"The tokenizer makes no token of {text[:40]!r}: give at least one word.")
    special = [bool(flag) for flag in encoding["special_tokens_mask"]]
    return Encoded(
        text=text,
        pair=pair,
        ids=tuple(ids),
        tokens=display_text(tokenizer, ids),
        offsets=tuple((start, end) for start, end in encoding["offset_mapping"]),
        segments=tuple(encoding["token_type_ids"]),
        special=tuple(special),
        sequence=tuple(encoding.sequence_ids(0)),
    )


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
    return prefix_special(encoded, start, str(tokenizer.convert_ids_to_tokens(start)))


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
