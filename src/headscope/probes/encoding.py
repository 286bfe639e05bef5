"""Tokens of sentences whose words stay apart: each word is tokenized on its own, as in the paper.

Natural tokenization may cut across words ("don" + "'t" over "do" + "n't"), and such a sentence
would be lost. Here a word is encoded together with the space before it, and its tokens are put side
by side:

    text     We don't            words   We | do | n't
    encoded  "We" " do" "n't"

Where a tokenizer begins every text with a space of its own this would invent spaces, so there the
whole sentence is encoded as usual.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from transformers import PreTrainedTokenizerBase

from headscope.errors import AlignmentError
from headscope.model.display import display
from headscope.model.encode import Encoded
from headscope.model.model import Model
from headscope.text.alignment import Alignment, align
from headscope.text.sentence import Sentence

TOO_LONG = "too long"
_SPACE_MARKS = ("▁", "Ġ")


@dataclass(frozen=True)
class WordTokens:
    """One sentence as a model reads it, and which tokens spell which word."""

    sentence: Sentence
    encoded: Encoded
    alignment: Alignment


@dataclass(frozen=True)
class Frame:
    """The special tokens before and after a text."""

    before: tuple[int, ...]
    after: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.before) + len(self.after)


class SkipError(Exception):
    """Why a sentence cannot be used, in a few words to count by."""


def find_frame(tokenizer: PreTrainedTokenizerBase) -> Frame:
    """What the tokenizer puts around a text; if nothing, its BOS token before it.

    Attention that goes nowhere rests on the first token. Without a special token there the first
    word would take its place and be the strongest candidate of most heads.
    """
    encoding: Any = tokenizer("a", return_special_tokens_mask=True)
    ids, special = list(encoding["input_ids"]), list(encoding["special_tokens_mask"])
    first = special.index(0)
    last = len(special) - special[::-1].index(0)
    frame = Frame(tuple(ids[:first]), tuple(ids[last:]))
    bos = tokenizer.bos_token_id
    return Frame((bos,), ()) if len(frame) == 0 and isinstance(bos, int) else frame


def keeps_words_apart(tokenizer: PreTrainedTokenizerBase) -> bool:
    """Whether a word without a space before it is encoded without one."""
    return not tokenizer.tokenize("a")[0].startswith(_SPACE_MARKS)


def encode_words(model: Model, sentences: Sequence[Sentence]) -> list[WordTokens | SkipError]:
    """The tokens of every sentence, or why it has none."""
    tokenizer, frame = model.tokenizer, find_frame(model.tokenizer)
    chunks = [_chunks(tokenizer, sentence) for sentence in sentences]
    flat = [
        sentence.text[a:b]
        for sentence, cuts in zip(sentences, chunks, strict=True)
        for a, b in cuts
    ]
    encoding: Any = (
        tokenizer(flat, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
        if flat
        else {"input_ids": [], "offset_mapping": []}
    )
    pieces = iter(zip(encoding["input_ids"], encoding["offset_mapping"], strict=True))
    found: list[WordTokens | SkipError] = []
    for sentence, cuts in zip(sentences, chunks, strict=True):
        parts = [(start, *next(pieces)) for start, _ in cuts]
        found.append(_word_tokens(model, sentence, parts, frame))
    return found


def _chunks(tokenizer: PreTrainedTokenizerBase, sentence: Sentence) -> list[tuple[int, int]]:
    """Spans of the text to encode one by one: each word with the space before it."""
    if not keeps_words_apart(tokenizer):
        return [(0, len(sentence.text))]
    cuts, end = [], 0
    for word in sentence.words:
        start = end if not sentence.text[end : word.start].strip() else word.start
        cuts.append((start, max(word.end, start)))
        end = cuts[-1][1]
    return cuts


def _word_tokens(
    model: Model, sentence: Sentence, parts: list[tuple[int, list[int], list]], frame: Frame
) -> WordTokens | SkipError:
    ids = [index for _, piece, _ in parts for index in piece]
    offsets = [(start + a, start + b) for start, _, spans in parts for a, b in spans]
    if model.max_length is not None and len(ids) + len(frame) > model.max_length:
        return SkipError(TOO_LONG)
    encoded = _framed(model.tokenizer, sentence.text, ids, offsets, frame)
    try:
        alignment = align(sentence.words, sentence.text, encoded.offsets, encoded.special)
    except AlignmentError as error:
        return SkipError(f"alignment: {error.reason}")
    return WordTokens(sentence, encoded, alignment)


def _framed(
    tokenizer: PreTrainedTokenizerBase,
    text: str,
    ids: list[int],
    offsets: list[tuple[int, int]],
    frame: Frame,
) -> Encoded:
    """The tokens with the special ones around them."""
    before, after = len(frame.before), len(frame.after)
    whole = (*frame.before, *ids, *frame.after)
    return Encoded(
        text=text,
        pair=None,
        ids=whole,
        tokens=display(tokenizer, whole),
        offsets=((0, 0),) * before + tuple(offsets) + ((0, 0),) * after,
        segments=(0,) * len(whole),
        special=(True,) * before + (False,) * len(ids) + (True,) * after,
        sequence=(None,) * before + (0,) * len(ids) + (None,) * after,
    )
