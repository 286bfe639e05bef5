"""Words of sentences and the tokens that spell them, and attention between words.

Words meet tokens in one of three ways:

```
text     We don't            words   We | do | n't

shared   "We" " don" "'t"    as the model reads any text; "do" and "n't" share a token: one word
words    "We" " do" "n't"    each word with the space before it on its own, as in the paper
strict   the same            a sentence whose words still share a token is skipped
```

Where a tokenizer begins every text with a space of its own, encoding words one by one would invent
spaces, so there the whole sentence is encoded as usual.

Attention *to* a split word is the sum over its pieces, attention *from* it the mean over them
(Clark et al. 2019, §4.1), so a row keeps its sum. Special tokens are units behind the words:

    tokens   [CLS]  play  ##ing  chess  [SEP]
    units      4     0      0      1      5        a batch whose longest sentence has 4 words
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Literal

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from headscope.model.attention import LayerAttention
from headscope.model.inputs.batch import Batch
from headscope.model.inputs.encode import encode_all, special_tokens
from headscope.model.inputs.frame import Bos, Frame, find_frame
from headscope.model.inputs.tokens import Characters, Tokens
from headscope.model.inputs.words import CharacterSpan
from headscope.model.model import Model
from headscope.model.writes import Reading, norm_weighted, norms_of
from headscope.observe.batch import AnnotatedBatch, Example
from headscope.observe.layer import Layer
from headscope.text.alignment import (
    JOINED,
    NO_WORD,
    SEVERAL,
    SPLIT,
    WORDS,
    Sharing,
    align,
    joined_runs,
    merge_runs,
)
from headscope.text.sentence import Sentence

TOO_LONG = "too long"
_SPACE_MARKS = ("▁", "Ġ")
From = Literal["mean", "first"]

# What stands behind the words: special tokens before the first word and after the last one, and
# tokens of no word in between (a token for a space, say).
START, END, BETWEEN = range(3)
EXTRA = 3
PADDING = -1
WORD = "word"  # the label of a token that says to which word it belongs


@dataclass(frozen=True)
class WordTokens:
    """One sentence as a model reads it, and which tokens spell which word."""

    sentence: Sentence  # words that share a token are one
    tokens: Tokens
    word_of_token: tuple[int, ...]  # NO_WORD for special tokens and for space between words
    names: tuple[str, ...]  # of every word; of joined ones that of their syntactic head
    words: int  # how many the corpus has
    several: int = 0  # tokens with characters of several of them
    joined: int = 0  # words that share a token with another one

    @cached_property
    def tokens_of_word(self) -> tuple[tuple[int, ...], ...]:
        """The tokens that spell every word."""
        tokens: list[list[int]] = [[] for _ in self.names]
        for token, word in enumerate(self.word_of_token):
            if word != NO_WORD:
                tokens[word].append(token)
        return tuple(map(tuple, tokens))

    @property
    def counts(self) -> dict[str, int]:
        """How words and tokens meet."""
        split = sum(len(tokens) > 1 for tokens in self.tokens_of_word)
        return {WORDS: self.words, SPLIT: split, SEVERAL: self.several, JOINED: self.joined}


class SkipError(Exception):
    """Why a sentence cannot be used, in a few words to count by."""


def settle_bos(tokenizer: PreTrainedTokenizerBase, bos: Bos) -> Bos:
    """`auto` is `always` where the tokenizer has a BOS token, but puts nothing around a text.

    Attention that goes nowhere rests on the first token. Without a special token there the first
    word would take its place and be the strongest candidate of most heads.
    """
    is_bare = len(find_frame(tokenizer)) == 0 and isinstance(tokenizer.bos_token_id, int)
    return "always" if bos == "auto" and is_bare else bos


def keeps_words_apart(tokenizer: PreTrainedTokenizerBase) -> bool:
    """Whether a word without a space before it is encoded without one."""
    return not tokenizer.tokenize("a")[0].startswith(_SPACE_MARKS)


def encode_words(
    model: Model,
    sentences: Sequence[Sentence],
    sharing: Sharing = "overlap",
    bos: Bos = "auto",
) -> list[WordTokens | SkipError]:
    """The tokens of every sentence, or why it has none."""
    frame = find_frame(model.tokenizer, bos)
    tokens = encode_sentences(model.tokenizer, sentences, frame, apart=sharing != "overlap")
    alignment = align(
        sentences,
        [of_sentence.offsets for of_sentence in tokens],
        [of_sentence.special for of_sentence in tokens],
        strict=sharing == "strict",
    )
    results: list[WordTokens | SkipError] = []
    end = 0
    for row, (sentence, of_sentence) in enumerate(zip(sentences, tokens, strict=True)):
        start, end = end, end + len(of_sentence)
        if model.max_length is not None and len(of_sentence) > model.max_length:
            results.append(SkipError(TOO_LONG))
        elif row in alignment.refused:
            results.append(SkipError(f"alignment: {alignment.refused[row]}"))
        else:
            first, last = alignment.first[start:end], alignment.last[start:end]
            results.append(_join_words(sentence, of_sentence, first, last))
    return results


def encode_sentences(
    tokenizer: PreTrainedTokenizerBase, sentences: Sequence[Sentence], frame: Frame, *, apart: bool
) -> list[Tokens]:
    """The tokens of every sentence, its words one by one if `apart` and the tokenizer can."""
    by_word = apart and keeps_words_apart(tokenizer)
    spans_of = [_cut(s) if by_word else [(0, len(s.text))] for s in sentences]
    texts: list[str] = []
    for sentence, spans in zip(sentences, spans_of, strict=True):
        texts += [sentence.text[start:end] for start, end in spans]
    # One call for the parts of all sentences.
    parts = iter(encode_all(tokenizer, texts, special=False) if texts else ())
    before = special_tokens(tokenizer, frame.before)
    after = special_tokens(tokenizer, frame.after)
    return [
        before + _rejoin(sentence.text, spans, list(islice(parts, len(spans)))) + after
        for sentence, spans in zip(sentences, spans_of, strict=True)
    ]


def _cut(sentence: Sentence) -> list[CharacterSpan]:
    """Spans of the text to encode one by one: each word with the space before it."""
    spans: list[CharacterSpan] = []
    end = 0
    for word in sentence.words:
        if spans and word.start < end:  # two words are written as one
            spans[-1] = (spans[-1][0], max(word.end, end))
        else:
            gap = sentence.text[end : word.start]
            start = word.start - (len(gap) - len(gap.rstrip()))
            spans.append((start, max(word.end, start)))
        end = spans[-1][1]
    return spans if sentence.words else [(0, len(sentence.text))]


def _rejoin(text: str, spans: Sequence[CharacterSpan], parts: Sequence[Tokens]) -> Tokens:
    """The tokens of spans of a text, which were encoded one by one, as tokens of the text."""
    ids: list[int] = []
    labels: list[str] = []
    places: list[Characters] = []
    for (first, _), part in zip(spans, parts, strict=True):
        ids += part.ids
        labels += part.labels
        places += [Characters(first + start, first + end) for start, end in part.offsets]
    return Tokens(
        ids=tuple(ids),
        labels=tuple(labels),
        places=tuple(places),
        special=(False,) * len(ids),
        segments=(0,) * len(ids),
        texts=(text,),
    )


def _join_words(
    sentence: Sentence,
    tokens: Tokens,
    first: Int[np.ndarray, "token"],
    last: Int[np.ndarray, "token"],
) -> WordTokens | SkipError:
    """The sentence with one word for all that share a token, from the words of every token."""
    spelled = [word.text for word in sentence.words]
    if spelled and (first == NO_WORD).all():
        return SkipError("alignment: uncovered")
    runs = joined_runs(len(spelled), first, last)
    merged = merge_runs(sentence.text, sentence.words, sentence.mentions, runs)
    place = np.repeat(np.arange(len(runs)), [len(run) for run in runs])
    return WordTokens(
        replace(sentence, words=merged.words, mentions=merged.mentions),
        tokens,
        tuple(np.append(place, NO_WORD)[first].tolist()),  # the last place is for NO_WORD, -1
        names=tuple(spelled[top] for top in merged.tops),
        words=len(spelled),
        several=int((last > first).sum()),
        joined=sum(len(run) for run in runs if len(run) > 1),
    )


@dataclass(frozen=True)
class Units:
    """Which tokens make up which unit, ready for matrix products."""

    keys: Float[Tensor, "batch token unit"]  # 1 where the token belongs to the unit
    queries: Float[Tensor, "batch unit token"]  # the share of the token in the unit's row
    words: Bool[Tensor, "batch word"]  # which of the first units are words, not padding

    @property
    def width(self) -> int:
        """How many words the longest sentence has; the units behind them are the extra ones."""
        return self.words.shape[1]

    @cached_property
    def padding(self) -> Bool[Tensor, "batch token"]:
        """Tokens that are part of no unit."""
        return ~self.keys.any(-1)


def units_of(word_of_token: Sequence[int]) -> list[int]:
    """The unit of every token of one sentence, with START − EXTRA … for tokens of no word.

    Negative numbers count from the end of a batch's units, as indices of lists do.
    """
    spelling = [token for token, word in enumerate(word_of_token) if word >= 0]
    first, last = (spelling[0], spelling[-1]) if spelling else (len(word_of_token),) * 2
    units: list[int] = []
    for token, word in enumerate(word_of_token):
        if word >= 0:
            units.append(word)
        elif token < first:
            units.append(START - EXTRA)
        elif token > last:
            units.append(END - EXTRA)
        else:
            units.append(BETWEEN - EXTRA)
    return units


def make_units(
    word_of_token: Sequence[Sequence[int]],
    words: Sequence[int],
    *,
    tokens: int | None = None,
    side: Literal["left", "right"] = "right",
    row: From = "mean",
    device: torch.device | str = "cpu",
) -> Units:
    """Units of a batch: for each sentence the word of every token (-1: none) and how many words.

    `tokens` is the padded length, `side` where the padding is, `row` whether a split word attends
    like the mean of its pieces or like the first (what the paper's released code does).
    """
    width = max(words, default=0)
    length = max(map(len, word_of_token), default=0) if tokens is None else tokens
    unit_of_token = torch.full((len(word_of_token), length), PADDING)
    for index, sentence in enumerate(word_of_token):
        units = torch.tensor(units_of(sentence), dtype=torch.long)
        start = length - len(units) if side == "left" else 0
        placed = torch.where(units < 0, units + width + EXTRA, units)
        unit_of_token[index, start : start + len(units)] = placed
    places = torch.arange(width + EXTRA, device=device)
    keys = (unit_of_token.to(device)[..., None] == places).float()
    pieces = keys if row == "mean" else keys * (keys.cumsum(1) == 1)  # the first of every unit
    queries = pieces.transpose(1, 2)
    queries = queries / queries.sum(-1, keepdim=True).clamp(min=1)
    is_word = places[:width] < torch.tensor(list(words), device=device)[:, None]
    return Units(keys, queries.contiguous(), is_word)


def word_maps(
    weights: Float[Tensor, "batch head query key"], units: Units
) -> Float[Tensor, "batch head unit unit"]:
    """Attention between units: two matrix products for all heads of a layer.

    The first `units.width` rows and columns are words, then START, END and BETWEEN. Rows of padding
    may hold anything, NaN included.
    """
    batch, heads, queries, keys = weights.shape
    to_units = weights.reshape(batch, heads * queries, keys) @ units.keys.to(weights.dtype)
    from_tokens = to_units.reshape(batch, heads, queries, -1).transpose(1, 2)
    from_tokens = from_tokens.reshape(batch, queries, -1)
    from_tokens.masked_fill_(units.padding[..., None], 0.0)
    maps = units.queries.to(weights.dtype) @ from_tokens
    return maps.reshape(batch, maps.shape[1], heads, -1).transpose(1, 2)


def word_example(
    number: int, words: WordTokens, *, is_causal: bool, group: int | None = None
) -> Example:
    """An input whose words are known; null are special tokens and what a causal model sinks to."""
    special = words.tokens.special
    return Example(
        number,
        words.tokens,
        null=(special[0] or is_causal, *special[1:]),
        labels={WORD: words.word_of_token},
        sentence=words.sentence,
        group=group,
    )


def word_layer(layer: Layer, row: From = "mean") -> Float[Tensor, "batch head word word"]:
    """Attention between the words of a batch; special tokens are dropped, nothing renormalised."""
    units = units_in(layer.batch, row)
    weights = layer.weights(0, layer.batch.mask.shape[1])
    return word_maps(weights, units)[..., : units.width, : units.width]


def units_in(batch: AnnotatedBatch, row: From = "mean") -> Units:
    """The units of a batch that was padded on the right, made once for all layers."""

    def make() -> Units:
        lengths, words = batch.mask.sum(1).tolist(), batch.labels[WORD].tolist()
        return make_units(
            [words[text][:length] for text, length in enumerate(lengths)],
            [len(sentence.words) for sentence in batch.sentences],
            tokens=batch.mask.shape[1],
            row=row,
            device=batch.mask.device,
        )

    return batch.once(f"units {row}", make)


def token_units(tokens: Sequence[WordTokens], batch: Batch, row: From = "mean") -> Units:
    """The units of a batch of tokenized sentences."""
    return make_units(
        [sentence.word_of_token for sentence in tokens],
        [len(sentence.sentence.words) for sentence in tokens],
        tokens=batch.ids.shape[1],
        side=batch.side,
        row=row,
        device=batch.ids.device,
    )


def all_word_maps(
    network: Model, batch: Batch, units: Units, reading: Reading = "raw"
) -> Float[Tensor, "batch head unit unit"]:
    """The word maps of all heads of all layers, in order; of both readings the raw one."""
    maps: list[Tensor] = []

    def keep(attention: LayerAttention) -> None:
        weights = attention.weights.float()
        if reading == "norm":
            weights = norm_weighted(weights, norms_of(network.plan, attention))
        maps.append(word_maps(weights, units))

    with torch.no_grad():
        network.forward(batch, keep, logits=False)
    return torch.cat(maps, dim=1)
