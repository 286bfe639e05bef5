"""Tokens of sentences whose words stay apart: each word is tokenized on its own, as in the paper.

Natural tokenization may cut across words ("don" + "'t" over "do" + "n't"), and such a sentence
would be lost. Here a word is encoded together with the space before it, and its tokens are put side
by side:

    text     We don't            words   We | do | n't
    encoded  "We" " do" "n't"

Where a tokenizer begins every text with a space of its own this would invent spaces, so there the
whole sentence is encoded as usual.
"""

from collections.abc import Mapping, Sequence
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
    tokenizer = model.tokenizer
    apart = keeps_words_apart(tokenizer)
    cuts = [_cuts(each) if apart else [(0, len(each.text))] for each in sentences]
    pieces = _pieces(tokenizer, sentences, cuts)
    frame = find_frame(tokenizer)
    used = sorted({*frame.before, *frame.after, *(i for each in pieces for i in each.ids)})
    # Readable names cost more than the tokens themselves, and most tokens are repeated.
    names = dict(zip(used, display(tokenizer, used), strict=True))
    return [
        _word_tokens(each, piece, frame, names, model.max_length)
        for each, piece in zip(sentences, pieces, strict=True)
    ]


@dataclass(frozen=True)
class _Pieces:
    """The tokens of one sentence without the special ones."""

    ids: list[int]
    offsets: list[tuple[int, int]]


def _cuts(sentence: Sentence) -> list[tuple[int, int]]:
    """Spans of the text to encode one by one: each word with the space before it."""
    cuts, end = [], 0
    for word in sentence.words:
        gap = sentence.text[end : word.start]
        start = word.start - (len(gap) - len(gap.rstrip()))
        cuts.append((start, max(word.end, start)))
        end = cuts[-1][1]
    return cuts


def _pieces(
    tokenizer: PreTrainedTokenizerBase,
    sentences: Sequence[Sentence],
    cuts: Sequence[Sequence[tuple[int, int]]],
) -> list[_Pieces]:
    """The tokens of every sentence, all spans encoded in one call."""
    spans = [(each.text, a, b) for each, own in zip(sentences, cuts, strict=True) for a, b in own]
    if not spans:
        return [_Pieces([], []) for _ in sentences]
    texts = [text[a:b] for text, a, b in spans]
    encoding: Any = tokenizer(
        texts, add_special_tokens=False, return_offsets_mapping=True, verbose=False
    )
    made = iter(zip(encoding["input_ids"], encoding["offset_mapping"], strict=True))
    found: list[_Pieces] = []
    for own in cuts:
        piece = _Pieces([], [])
        for start, _ in own:
            ids, offsets = next(made)
            piece.ids.extend(ids)
            piece.offsets.extend((start + a, start + b) for a, b in offsets)
        found.append(piece)
    return found


def _word_tokens(
    sentence: Sentence, piece: _Pieces, frame: Frame, names: Mapping[int, str], limit: int | None
) -> WordTokens | SkipError:
    if limit is not None and len(piece.ids) + len(frame) > limit:
        return SkipError(TOO_LONG)
    encoded = _framed(sentence.text, piece, frame, names)
    try:
        alignment = align(sentence.words, sentence.text, encoded.offsets, encoded.special)
    except AlignmentError as error:
        return SkipError(f"alignment: {error.reason}")
    return WordTokens(sentence, encoded, alignment)


def _framed(text: str, piece: _Pieces, frame: Frame, names: Mapping[int, str]) -> Encoded:
    """The tokens with the special ones around them."""
    before, inside, after = len(frame.before), len(piece.ids), len(frame.after)
    ids = (*frame.before, *piece.ids, *frame.after)
    return Encoded(
        text=text,
        pair=None,
        ids=ids,
        tokens=tuple(names[index] for index in ids),
        offsets=((0, 0),) * before + tuple(piece.offsets) + ((0, 0),) * after,
        segments=(0,) * len(ids),
        special=(True,) * before + (False,) * inside + (True,) * after,
        sequence=(None,) * before + (0,) * inside + (None,) * after,
    )
