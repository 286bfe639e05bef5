"""Attention between words instead of tokens (Clark et al. 2019, §4.1).

Attention *to* a split word is the sum over its pieces, attention *from* it the mean over them, so a
row keeps its sum. Special tokens become units of their own behind the words of the batch:

    tokens   [CLS]  play  ##ing  chess  [SEP]
    units      4     0      0      1      5        a batch whose longest sentence has 4 words
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headscope.model.attention import LayerAttention
from headscope.model.inputs.batch import Batch
from headscope.model.model import Model
from headscope.model.writes import Reading, norm_weighted, norms_of
from headscope.observe.batch import AnnotatedBatch
from headscope.observe.dense import DenseLayer
from headscope.observe.inputs import Example
from headscope.probes.encoding import WordTokens

From = Literal["mean", "first"]

# What stands behind the words: special tokens before the first word and after the last one, and
# tokens of no word in between (a token for a space, say).
START, END, BETWEEN = range(3)
EXTRA = 3
PADDING = -1
WORD = "word"  # the label of a token that says to which word it belongs


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


def units_of(word_of_token: Sequence[int]) -> list[int]:
    """The unit of every token of one sentence, with START − EXTRA … for tokens of no word.

    Negative numbers count from the end of a batch's units, as indices of lists do.
    """
    tokens = [token for token, word in enumerate(word_of_token) if word >= 0]
    first, last = (tokens[0], tokens[-1]) if tokens else (len(word_of_token), len(word_of_token))

    def extra(token: int) -> int:
        return (START if token < first else END if token > last else BETWEEN) - EXTRA

    return [word if word >= 0 else extra(token) for token, word in enumerate(word_of_token)]


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
    unit = torch.full((len(word_of_token), length), PADDING)
    for index, sentence in enumerate(word_of_token):
        placed = [u if u >= 0 else width + EXTRA + u for u in units_of(sentence)]
        start = length - len(placed) if side == "left" else 0
        unit[index, start : start + len(placed)] = torch.tensor(placed, dtype=torch.long)
    return _units(unit.to(device), torch.tensor(list(words), device=device), width, row)


def word_maps(
    weights: Float[Tensor, "batch head query key"], units: Units
) -> Float[Tensor, "batch head unit unit"]:
    """Attention between units: two matrix products for all heads of a layer.

    The first `units.width` rows and columns are words, then START, END and BETWEEN.
    """
    batch, heads, queries, keys = weights.shape
    to_units = weights.reshape(batch, heads * queries, keys) @ units.keys.to(weights.dtype)
    from_tokens = to_units.reshape(batch, heads, queries, -1).transpose(1, 2)
    maps = units.queries.to(weights.dtype) @ from_tokens.reshape(batch, queries, -1)
    return maps.reshape(batch, maps.shape[1], heads, -1).transpose(1, 2)


def word_example(
    number: int, tokens: WordTokens, *, is_causal: bool, group: int | None = None
) -> Example:
    """An input whose words are known; null are special tokens and what a causal model sinks to."""
    special = tokens.encoded.special
    return Example(
        number,
        tokens.encoded,
        null=(special[0] or is_causal, *special[1:]),
        labels={WORD: tokens.alignment.word_of_token},
        sentence=tokens.sentence,
        group=group,
    )


def word_layer(layer: DenseLayer, row: From = "mean") -> Float[Tensor, "batch head word word"]:
    """Attention between the words of a batch; special tokens are dropped, nothing renormalised."""
    units = units_in(layer.batch, row)
    return word_maps(layer.weights.float(), units)[..., : units.width, : units.width]


def units_in(batch: AnnotatedBatch, row: From = "mean") -> Units:
    """The units of a batch, made once for all layers."""
    return batch.once(f"units {row}", lambda: batch_units(batch, row))


def batch_units(batch: AnnotatedBatch, row: From = "mean") -> Units:
    """The units of a batch that was padded on the right."""
    lengths = batch.mask.sum(1).tolist()
    words = batch.labels[WORD].tolist()
    return make_units(
        [row_words[:length] for row_words, length in zip(words, lengths, strict=True)],
        [len(sentence.words) for sentence in batch.sentences],
        tokens=batch.mask.shape[1],
        row=row,
        device=batch.mask.device,
    )


def token_units(tokens: Sequence[WordTokens], batch: Batch, row: From = "mean") -> Units:
    """The units of a batch of tokenized sentences."""
    return make_units(
        [each.alignment.word_of_token for each in tokens],
        [len(each.sentence.words) for each in tokens],
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


def _units(
    unit: Int[Tensor, "batch token"], words: Int[Tensor, "batch"], width: int, row: From
) -> Units:
    places = torch.arange(width + EXTRA, device=unit.device)
    keys = (unit[..., None] == places).float()
    queries = (keys if row == "mean" else _first_pieces(keys)).transpose(1, 2)
    queries = queries / queries.sum(-1, keepdim=True).clamp(min=1)
    return Units(keys, queries.contiguous(), places[:width] < words[:, None])


def _first_pieces(
    keys: Float[Tensor, "batch token unit"],
) -> Float[Tensor, "batch token unit"]:
    """Only the first token of every unit."""
    return keys * (keys.cumsum(1) == 1)
