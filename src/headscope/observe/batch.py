"""A batch of inputs with everything that metrics know about its tokens besides attention.

pairs, causal (token 0 is null)      pairs, bidirectional ([CLS] … [SEP] are null)

  key  0 1 2 3                         key  0 1 2 3
q 0    · · · ·                       q 0    · · · ·
  1    · x · ·                         1    · x x ·
  2    · x x ·                         2    · x x ·
  3    · x x x                         3    · · · ·
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headscope.text.sentence import Sentence

Made = TypeVar("Made")
FORMS = ("attender_is_parent", "receiver_is_parent", "either")


@dataclass(frozen=True)
class AnnotatedBatch:
    """Tokens of a batch: which are real, which are null, their labels, and the dependency arcs.

    A label is the place of a token's tag in the study's list of tags, -1 where it has none. An arc
    is a row (place in the batch, token of the parent, token of the dependent), one for every pair
    of their word pieces; None where the corpus has no trees.
    """

    numbers: Int[np.ndarray, "batch"]  # of every input in the corpus
    rows: Int[np.ndarray, "batch"]  # of every input among the inputs of its shard
    mask: Bool[Tensor, "batch token"]
    null: Bool[Tensor, "batch token"]
    is_causal: bool
    labels: Mapping[str, Int[Tensor, "batch token"]] = field(default_factory=dict)
    arcs: Int[Tensor, "arc 3"] | None = None
    sentences: tuple[Sentence, ...] = ()  # of every input, where a study needs whole sentences

    @cached_property
    def content(self) -> Bool[Tensor, "batch token"]:
        """Tokens that are neither padding nor null."""
        return self.mask & ~self.null

    @cached_property
    def null_is_first(self) -> bool:
        """Whether the first column of every input is its only null token."""
        first = torch.zeros_like(self.null)
        first[:, 0] = True
        return torch.equal(self.null, first)

    @cached_property
    def pairs(self) -> Bool[Tensor, "batch query key"]:
        """Pairs that stay after the null filter (Vig & Belinkov 2019, §5.2.3)."""
        return self.pairs_of(0, self.mask.shape[1])

    def pairs_of(self, start: int, stop: int) -> Bool[Tensor, "batch query key"]:
        """The rows of `pairs` that belong to some queries."""
        pairs = self.content[:, start:stop, None] & self.content[:, None, :]
        return pairs.tril(start) if self.is_causal else pairs

    @cached_property
    def separation(self) -> Float[Tensor, "query key"]:
        """|i − j| in tokens."""
        place = torch.arange(self.mask.shape[1], device=self.mask.device, dtype=torch.float32)
        return (place[:, None] - place[None, :]).abs()

    @cached_property
    def parent_attends(self) -> Bool[Tensor, "batch query key"]:
        """Pairs whose query belongs to the parent of the key's word; empty without trees."""
        relation = torch.zeros_like(self.pairs)
        if self.arcs is not None:
            row, parent, dependent = self.arcs.unbind(-1)
            relation[row, parent, dependent] = True
        return relation

    @cached_property
    def related(self) -> Bool[Tensor, "batch query key form"]:
        """The pairs of the two directed forms of Eq. 4, null filter applied."""
        forms = torch.stack([self.parent_attends, self.parent_attends.transpose(1, 2)], dim=-1)
        return forms & self.pairs[..., None]

    @cached_property
    def pair_features(self) -> Float[Tensor, "batch pair feature"]:
        """Per pair: attender is parent, receiver is parent, separation: one matrix product each."""
        separation = self.separation.expand(len(self.rows), -1, -1)
        return torch.cat([self.related.float(), separation[..., None]], dim=-1).flatten(1, 2)

    def one_hot(self, label: str, size: int) -> Float[Tensor, "batch token label"]:
        """The label of every content token as a row of zeros and a one; computed once."""
        key = (label, size)
        if key not in self._one_hot:
            codes = self.labels[label].masked_fill(~self.content, -1)
            classes = torch.arange(size, device=codes.device)
            self._one_hot[key] = (codes[..., None] == classes).float()
        return self._one_hot[key]

    def once(self, name: str, make: Callable[[], Made]) -> Made:
        """What a metric makes of the batch for all layers; made when first asked for."""
        if name not in self._made:
            self._made[name] = make()
        return self._made[name]

    @cached_property
    def _made(self) -> dict[str, Any]:
        return {}

    @cached_property
    def _one_hot(self) -> dict[tuple[str, int], Tensor]:
        return {}
