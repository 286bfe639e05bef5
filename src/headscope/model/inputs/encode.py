"""Text as a model sees it: tokens with display strings, places and segments."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise

import numpy as np
from jaxtyping import Int
from tokenizers import Encoding
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from headscope.errors import ModelError
from headscope.model.inputs.frame import Bos, bos_id, check_bos, find_frame
from headscope.model.inputs.labels import brief, display, display_text
from headscope.model.inputs.slow import encode_slowly
from headscope.model.inputs.tokens import Characters, Tokens


def encode(
    tokenizer: PreTrainedTokenizerBase,
    text: str,
    pair: str | None = None,
    *,
    special: bool = True,
    bos: Bos = "auto",
    limit: int | None = None,
    truncate: bool = False,
) -> Tokens:
    """Tokenize a text or a pair; one longer than `limit` is an error unless `truncate` is set."""
    texts = (text,) if pair is None else (text, pair)
    for part, name in zip(texts, ("text", "pair"), strict=False):
        if not part.strip():
            raise ModelError(f"The {name} is empty: give at least one word.")
    most = None
    if truncate and limit is not None:
        most = limit - _count_added(tokenizer, bos, special=special)
    with tokenizing(tokenizer):
        make = _encode_fast if tokenizer.is_fast else encode_slowly
        tokens = with_bos(tokenizer, make(tokenizer, texts, special=special, limit=most), bos)
    check_length(len(tokens), limit)
    if not tokens.ids:
        raise ModelError(f"The tokenizer makes no token of {text[:40]!r}: give at least one word.")
    marks = markers(tokenizer)
    flags = zip(tokens.special, tokens.ids, strict=True)
    return replace(tokens, special=tuple(flag or index in marks for flag, index in flags))


def encode_all(
    tokenizer: PreTrainedTokenizerBase,
    texts: Sequence[str],
    *,
    special: bool = True,
    bos: Bos = "auto",
) -> list[Tokens]:
    """The tokens of many texts, however long, in one call; markers within a text are text."""
    with tokenizing(tokenizer):
        if tokenizer.is_fast:
            made = tokenizer(
                list(texts),
                add_special_tokens=special,
                return_attention_mask=False,
                return_token_type_ids=False,
                verbose=False,
            )
            encodings = zip(texts, made.encodings or [], strict=True)
            tokens = [_tokens_of(tokenizer, (text,), encoding) for text, encoding in encodings]
        else:
            tokens = [encode_slowly(tokenizer, (text,), special=special) for text in texts]
    return [with_bos(tokenizer, each, bos) for each in tokens]


def encode_ids(
    tokenizer: PreTrainedTokenizerBase, texts: Sequence[str]
) -> list[tuple[Int[np.ndarray, "token"], Int[np.ndarray, "token 2"]]]:
    """Ids and characters of all tokens of many texts, special ones aside, without their words."""
    if not tokenizer.is_fast:
        tokens = encode_all(tokenizer, texts, special=False)
        return [(np.array(each.ids), _spans(each.offsets)) for each in tokens]
    with tokenizing(tokenizer):
        made = tokenizer(list(texts), add_special_tokens=False, verbose=False)
        encodings = made.encodings or []
        return [(np.array(each.ids, np.int64), _spans(each.offsets)) for each in encodings]


def _spans(offsets: Sequence[tuple[int, int]]) -> Int[np.ndarray, "token 2"]:
    return np.array(offsets, dtype=np.int64).reshape(-1, 2)


def _encode_fast(
    tokenizer: PreTrainedTokenizerBase, texts: Sequence[str], *, special: bool, limit: int | None
) -> Tokens:
    made = tokenizer(
        *texts,
        add_special_tokens=special,
        truncation=limit is not None,
        max_length=limit,
        return_token_type_ids=True,
        verbose=False,
    )
    assert made.encodings is not None
    return _tokens_of(tokenizer, tuple(texts), made.encodings[0])


def _tokens_of(
    tokenizer: PreTrainedTokenizerBase, texts: tuple[str, ...], encoding: Encoding
) -> Tokens:
    special = tuple(map(bool, encoding.special_tokens_mask))
    tokens = zip(encoding.offsets, encoding.sequence_ids, special, strict=True)
    places = tuple(
        None if is_special else Characters(start, end, number or 0)
        for (start, end), number, is_special in tokens
    )
    return Tokens(
        ids=tuple(encoding.ids),
        labels=display_text(tokenizer, encoding.ids, texts, places),
        places=places,
        special=special,
        segments=tuple(encoding.type_ids),
        texts=texts,
    )


def special_tokens(
    tokenizer: PreTrainedTokenizerBase, ids: Sequence[int], segment: int = 0
) -> Tokens:
    """Tokens that no text has, to stand around one."""
    return Tokens(
        ids=tuple(ids),
        labels=display(tokenizer, ids),
        places=(None,) * len(ids),
        special=(True,) * len(ids),
        segments=(segment,) * len(ids),
    )


def _count_added(tokenizer: PreTrainedTokenizerBase, bos: Bos, *, special: bool) -> int:
    """How many tokens `with_bos` adds: 1, 0 or -1."""
    if not special:
        return int(bos == "always")
    return len(find_frame(tokenizer, bos)) - len(find_frame(tokenizer))


def with_bos(tokenizer: PreTrainedTokenizerBase, tokens: Tokens, bos: Bos) -> Tokens:
    """The tokens with or without the BOS token before them."""
    if bos == "auto":
        return tokens
    check_bos(tokenizer, bos)
    begins = tokens.ids[:1] == (tokenizer.bos_token_id,)
    if bos == "never" and begins and tokens.special[0]:
        return tokens[1:]
    if bos == "always" and not begins:
        return special_tokens(tokenizer, (bos_id(tokenizer),)) + tokens
    return tokens


def is_parted(tokens: Tokens) -> bool:
    """Whether a special token stands between the two texts of a pair."""
    numbers = [None if place is None else place.text for place in tokens.places]
    return (0, 1) not in pairwise(numbers)


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


def markers(tokenizer: PreTrainedTokenizerBase) -> dict[int, str]:
    """Tokens that are no text wherever they stand: "<|im_start|>", "</s>", "[SEP]".

    An unknown word and a masked one are text, unless their token has another use as well.
    """
    named = tokenizer.special_tokens_map
    uses = {name: str(token) for name, token in named.items() if isinstance(token, str)}
    text = {uses.pop(name, None) for name in ("unk_token", "mask_token")} - set(uses.values())
    added = tokenizer.added_tokens_decoder.items()
    special = [(index, token.content) for index, token in added if token.special]
    special += zip(tokenizer.all_special_ids, tokenizer.all_special_tokens, strict=True)
    return {index: token for index, token in special if token not in text}


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
) -> Tokens:
    """The start token and the target text, without the end token: that is only ever predicted."""
    tokens = encode(tokenizer, text, limit=limit, truncate=truncate)
    if tokens.special[-1]:
        tokens = tokens[:-1]
    tokens = start_token(network, tokenizer) + tokens
    if truncate and limit is not None:
        tokens = tokens[:limit]
    check_length(len(tokens), limit)
    return tokens


def start_token(network: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> Tokens:
    """What a decoder reads first."""
    return special_tokens(tokenizer, (decoder_start(network),))


def decoder_start(network: PreTrainedModel) -> int:
    """The id that a decoder reads first."""
    for config in (network.config, network.generation_config):
        for name in ("decoder_start_token_id", "bos_token_id"):
            index = getattr(config, name, None)
            if isinstance(index, int):
                return index
    raise ModelError(
        f"{network.config.model_type} does not say with which token its decoder starts; set "
        "decoder_start_token_id in its config.json."
    )
