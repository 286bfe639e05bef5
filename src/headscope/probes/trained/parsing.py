"""Finding each word's governor: what every probe is given, and how its scores are judged.

A probe scores ROOT and all words as governors of every word (Clark et al. 2019, §5). Training is
cross-entropy over all words; parsing is greedy, the arg-max for every word on its own; UAS leaves
gold punctuation out.

Several seeds are trained side by side: each parameter has a leading `seed` axis, and because
the loss is a sum over seeds and Adam works on every number alone, this equals separate runs.
"""

from dataclasses import dataclass, replace
from typing import Protocol

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from headscope.probes.gold import NO_HEAD, GoldTrees
from headscope.probes.words import EXTRA

ROOT_PLACE = 0  # candidates are ROOT, then the words
IGNORED = -100  # the label of padding: cross-entropy leaves it out


@dataclass(frozen=True)
class ParseBatch:
    """Sentences as a probe sees them.

    `maps` holds every head's attention twice, `maps[b, x, k, y]` = a^k[x, y] for the first half of
    the maps and a^k[y, x] for the second, over words and the units START, END and BETWEEN.
    """

    maps: Float[Tensor, "batch unit map unit"] | None
    vectors: Float[Tensor, "batch word dim"] | None
    heads: Int[Tensor, "batch word"]  # ROOT for roots, NO_HEAD for padding
    punctuation: Bool[Tensor, "batch word"]
    control: Int[Tensor, "batch word"] | None = None  # what the control task has for heads

    @property
    def words(self) -> Bool[Tensor, "batch word"]:
        """True for words, False for padding."""
        return self.heads != NO_HEAD

    @property
    def labels(self) -> Int[Tensor, "batch word"]:
        """The place of each word's governor among the candidates."""
        return torch.where(self.words, self.heads + 1, IGNORED)


class Probe(Protocol):
    """A scorer of governors."""

    def __call__(self, batch: ParseBatch) -> Float[Tensor, "seed batch word candidate"]:
        """Scores of ROOT and of every word; padding is for the caller to mask."""
        ...

    def parameters(self) -> list[nn.Parameter]:
        """Everything that is learned."""
        ...


def make_parse_batch(
    gold: GoldTrees,
    maps: Float[Tensor, "batch head unit unit"] | None,
    vectors: Float[Tensor, "batch word dim"] | None,
    control: Int[Tensor, "batch word"] | None = None,
) -> ParseBatch:
    """A batch from the word maps of all heads of all layers."""
    both = None
    if maps is not None:
        both = torch.cat([maps.permute(0, 2, 1, 3), maps.permute(0, 3, 1, 2)], dim=2)
    return ParseBatch(both, vectors, gold.heads, gold.punctuation, control)


def take_sentences(batch: ParseBatch, rows: Int[Tensor, "row"]) -> ParseBatch:
    """Some sentences of a batch, without the padding that only the others needed."""
    heads = batch.heads[rows]
    width = int((heads != NO_HEAD).sum(1).max())
    units = [*range(width), *range(batch.heads.shape[1], batch.heads.shape[1] + EXTRA)]
    maps = batch.maps
    return ParseBatch(
        None if maps is None else maps[rows][:, units][..., units],
        None if batch.vectors is None else batch.vectors[rows, :width],
        heads[:, :width],
        batch.punctuation[rows, :width],
        None if batch.control is None else batch.control[rows, :width],
    )


def as_control(batch: ParseBatch) -> ParseBatch:
    """The batch with the governors of the control task in place of the tree's."""
    assert batch.control is not None
    return replace(batch, heads=batch.control)


def loss(
    scores: Float[Tensor, "seed batch word candidate"], batch: ParseBatch
) -> Float[Tensor, ""]:
    """Cross-entropy of the governors, summed over words and seeds."""
    labels = batch.labels.expand(scores.shape[:-1])
    masked = _mask(scores, batch.words)
    return nn.functional.cross_entropy(
        masked.flatten(0, 2), labels.flatten(), ignore_index=IGNORED, reduction="sum"
    )


def parse(
    scores: Float[Tensor, "seed batch word candidate"], batch: ParseBatch
) -> Int[Tensor, "seed batch word"]:
    """The best governor of every word: ROOT is −1."""
    return _mask(scores, batch.words).argmax(-1) - 1


def right_branching(words: Bool[Tensor, "batch word"]) -> Int[Tensor, "1 batch word"]:
    """Every word hangs on the next one, the last on ROOT."""
    place = torch.arange(words.shape[1], device=words.device)
    last = words.sum(1, keepdim=True) - 1
    return torch.where(place < last, place + 1, -1)[None]


def count_attached(
    predicted: Int[Tensor, "seed batch word"], batch: ParseBatch
) -> tuple[Float[Tensor, "seed batch"], Float[Tensor, "batch"]]:
    """How many words of every sentence have the right governor, and how many there are.

    Punctuation is left out.
    """
    counted = batch.words & ~batch.punctuation
    right = (predicted == batch.heads) & counted
    return right.sum(2).double(), counted.sum(1).double()


def _mask(
    scores: Float[Tensor, "seed batch word candidate"], words: Bool[Tensor, "batch word"]
) -> Float[Tensor, "seed batch word candidate"]:
    allowed = nn.functional.pad(words, (1, 0), value=True)
    return scores.masked_fill(~allowed[None, :, None], -torch.inf)
