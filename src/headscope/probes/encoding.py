"""Tokens of sentences and the words they spell, in one of three ways.

```
text     We don't            words   We | do | n't

shared   "We" " don" "'t"    as the model reads any text; "do" and "n't" share a token: one word
words    "We" " do" "n't"    each word with the space before it on its own, as in the paper
strict   the same            a sentence whose words still share a token is skipped
```

Where a tokenizer begins every text with a space of its own, encoding words one by one would invent
spaces, so there the whole sentence is encoded as usual.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from transformers import PreTrainedTokenizerBase

from headscope.errors import AlignmentError
from headscope.model.inputs.encode import Encoded, encode_all
from headscope.model.inputs.tokens import display
from headscope.model.model import Model
from headscope.text.alignment import Alignment, align
from headscope.text.sentence import Sentence
from headscope.text.sharing import JOINED, SEVERAL, SPLIT, WORDS, Sharing, join

TOO_LONG = "too long"
_SPACE_MARKS = ("▁", "Ġ")


@dataclass(frozen=True)
class WordTokens:
    """One sentence as a model reads it, and which tokens spell which word."""

    sentence: Sentence  # words that share a token are one
    encoded: Encoded
    alignment: Alignment
    names: tuple[str, ...]  # of every word; of joined ones that of their syntactic head
    words: int  # how many the corpus has
    several: int = 0  # tokens with characters of several of them
    joined: int = 0  # words that share a token with another one

    @property
    def counts(self) -> dict[str, int]:
        """How words and tokens meet."""
        split = sum(len(tokens) > 1 for tokens in self.alignment.tokens_of_word)
        return {WORDS: self.words, SPLIT: split, SEVERAL: self.several, JOINED: self.joined}


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
    frame, bos = own_frame(tokenizer), tokenizer.bos_token_id
    return Frame((bos,), ()) if len(frame) == 0 and isinstance(bos, int) else frame


def own_frame(tokenizer: PreTrainedTokenizerBase) -> Frame:
    """What the tokenizer itself puts around a text."""
    encoding: Any = tokenizer("a", return_special_tokens_mask=True)
    ids, special = list(encoding["input_ids"]), list(encoding["special_tokens_mask"])
    first = special.index(0)
    last = len(special) - special[::-1].index(0)
    return Frame(tuple(ids[:first]), tuple(ids[last:]))


def keeps_words_apart(tokenizer: PreTrainedTokenizerBase) -> bool:
    """Whether a word without a space before it is encoded without one."""
    return not tokenizer.tokenize("a")[0].startswith(_SPACE_MARKS)


def encode_words(
    model: Model, sentences: Sequence[Sentence], sharing: Sharing = "overlap"
) -> list[WordTokens | SkipError]:
    """The tokens of every sentence, or why it has none."""
    tokenizer, frame = model.tokenizer, find_frame(model.tokenizer)
    pieces = encode_pieces(tokenizer, sentences, frame, apart=sharing != "overlap")
    used = sorted({index for each in pieces for index in each.ids})
    # Readable names cost more than the tokens themselves, and most tokens are repeated.
    names = dict(zip(used, display(tokenizer, used), strict=True))
    return [
        _word_tokens(each, piece, names, model.max_length, sharing)
        for each, piece in zip(sentences, pieces, strict=True)
    ]


@dataclass(frozen=True)
class Pieces:
    """The tokens of one sentence between special ones, by the names that an `Encoding` has."""

    ids: list[int]
    offsets: list[tuple[int, int]]
    special_tokens_mask: list[int]

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def type_ids(self) -> list[int]:
        """All of it is one text."""
        return [0] * len(self)

    @property
    def sequence_ids(self) -> list[int | None]:
        """0 for the text, None for special tokens."""
        return [None if flag else 0 for flag in self.special_tokens_mask]


def encode_pieces(
    tokenizer: PreTrainedTokenizerBase,
    sentences: Sequence[Sentence],
    frame: Frame,
    *,
    apart: bool,
) -> list[Pieces]:
    """The tokens of every sentence, its words one by one if `apart` and the tokenizer can."""
    by_word = apart and keeps_words_apart(tokenizer)
    cuts = [_cuts(each) if by_word else [(0, len(each.text))] for each in sentences]
    return [_framed(ids, offsets, frame) for ids, offsets in _encode(tokenizer, sentences, cuts)]


def _cuts(sentence: Sentence) -> list[tuple[int, int]]:
    """Spans of the text to encode one by one: each word with the space before it."""
    cuts: list[tuple[int, int]] = []
    end = 0
    for word in sentence.words:
        if cuts and word.start < end:  # two words are written as one
            cuts[-1] = (cuts[-1][0], max(word.end, end))
        else:
            gap = sentence.text[end : word.start]
            start = word.start - (len(gap) - len(gap.rstrip()))
            cuts.append((start, max(word.end, start)))
        end = cuts[-1][1]
    return cuts if sentence.words else [(0, len(sentence.text))]


def _encode(
    tokenizer: PreTrainedTokenizerBase,
    sentences: Sequence[Sentence],
    cuts: Sequence[Sequence[tuple[int, int]]],
) -> Iterator[tuple[list[int], list[tuple[int, int]]]]:
    """Ids and spans of every sentence, all pieces of text encoded in one call."""
    texts = [
        each.text[start:end]
        for each, own in zip(sentences, cuts, strict=True)
        for start, end in own
    ]
    made = iter(encode_all(tokenizer, texts, special=False) if texts else ())
    for own in cuts:
        ids: list[int] = []
        offsets: list[tuple[int, int]] = []
        for start, _ in own:
            piece = next(made)
            ids += piece.ids
            offsets += [(start + a, start + b) for a, b in piece.offsets]
        yield ids, offsets


def _framed(ids: list[int], offsets: list[tuple[int, int]], frame: Frame) -> Pieces:
    before, after = len(frame.before), len(frame.after)
    return Pieces(
        [*frame.before, *ids, *frame.after],
        [*[(0, 0)] * before, *offsets, *[(0, 0)] * after],
        [*[1] * before, *[0] * len(ids), *[1] * after],
    )


def _word_tokens(
    sentence: Sentence,
    piece: Pieces,
    names: Mapping[int, str],
    limit: int | None,
    sharing: Sharing,
) -> WordTokens | SkipError:
    if limit is not None and len(piece) > limit:
        return SkipError(TOO_LONG)
    encoded = _encoded(sentence.text, piece, names)
    spelled = tuple(word.text for word in sentence.words)
    try:
        alignment = align(sentence.words, sentence.text, encoded.offsets, encoded.special)
        return WordTokens(sentence, encoded, alignment, spelled, len(spelled))
    except AlignmentError as error:
        if sharing == "strict":
            return SkipError(f"alignment: {error.reason}")
    try:
        made = join(sentence, encoded.offsets, encoded.special)
    except AlignmentError as error:
        return SkipError(f"alignment: {error.reason}")
    tops = tuple(spelled[top] for top in made.tops)
    counts = {"words": len(spelled), "several": made.several, "joined": made.merged}
    return WordTokens(made.sentence, encoded, made.alignment, tops, **counts)


def _encoded(text: str, piece: Pieces, names: Mapping[int, str]) -> Encoded:
    return Encoded(
        text=text,
        pair=None,
        ids=tuple(piece.ids),
        tokens=tuple(names[index] for index in piece.ids),
        offsets=tuple(piece.offsets),
        segments=tuple(piece.type_ids),
        special=tuple(map(bool, piece.special_tokens_mask)),
        sequence=tuple(piece.sequence_ids),
    )
