"""Heads as dependency classifiers (Clark et al. 2019, §4.2, Table 1), as counts that add.

For word i the prediction of a head is the word it attends to most (dependent → head), or the word
that attends to it most (head → dependent). Special tokens are dropped without renormalising, the
diagonal is zeroed, and of equal weights the first word wins.

A causal head cannot see what follows. A word is *scored* if the pair of word and governor is one
that the head could see; the share of scored words is the coverage that stands next to accuracy.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headscope.probes.gold import GoldTrees
from headscope.text.sentence import ROOT

DIRECTIONS = ("dependent_to_head", "head_to_dependent")
OFFSETS = (-3, -2, -1, 1, 2, 3)
HALVES = 2


@dataclass(frozen=True)
class OffsetCounts:
    """What depends on the trees alone."""

    words: Float[Tensor, "half class"]
    scored: Float[Tensor, "half direction class"]
    correct: Float[Tensor, "half direction offset class"]


def predict(
    maps: Float[Tensor, "batch head word word"], words: Bool[Tensor, "batch word"]
) -> Int[Tensor, "direction batch head word"]:
    """The word that every head points at from each word, in both directions."""
    others = 1 - torch.eye(maps.shape[-1], dtype=maps.dtype, device=maps.device)
    # Padding must lose against words of weight zero.
    absent = torch.where(words, 0.0, -1.0).to(maps.dtype)[:, None, None, :]
    zeroed = maps * others
    attended = (zeroed + absent).argmax(-1)
    # Copied first: arg-max along the last, contiguous axis is three times as fast.
    attending = (zeroed.transpose(-1, -2).contiguous() + absent).argmax(-1)
    return torch.stack([attended, attending])


def scored_words(
    heads: Int[Tensor, "batch word"], words: Bool[Tensor, "batch word"], *, is_causal: bool
) -> Bool[Tensor, "direction batch word"]:
    """Words whose governor a head could point at; the root of a sentence is scored, and missed.

    A causal head sees dependent → governor if the governor comes first, governor → dependent if it
    comes last. Roots have no governor to see: causal models are not asked for it.
    """
    if not is_causal:
        return words.expand(len(DIRECTIONS), *words.shape)
    place = torch.arange(heads.shape[1], device=heads.device)
    is_word = words & (heads != ROOT)
    return torch.stack([is_word & (heads < place), is_word & (heads > place)])


def count_correct(
    predicted: Int[Tensor, "direction batch head word"],
    gold: GoldTrees,
    scored: Bool[Tensor, "direction batch word"],
) -> Float[Tensor, "half head direction class"]:
    """How many words of each class every head gets right."""
    correct = _class_counts(predicted == gold.heads[:, None], gold.own, scored)
    if gold.following.any():
        heads = gold.heads[:, None]
        # The last word has no next one; -1 is no governor that a word of the class could have.
        shifted = torch.nn.functional.pad(predicted[..., 1:], (0, 1), value=-1)
        correct = correct + _class_counts(shifted == heads, gold.following, scored)
    return _by_half(correct, gold.half)


def count_offsets(
    gold: GoldTrees,
    scored: Bool[Tensor, "direction batch word"],
    offsets: Sequence[int] = OFFSETS,
) -> OffsetCounts:
    """Words per class, how many are scored, and how many the word at a fixed offset gets right."""
    place = torch.arange(gold.heads.shape[1], device=gold.heads.device)
    shifts = torch.tensor(list(offsets), device=gold.heads.device)
    # A root is −1, which is also the place before the first word: it must not count as a hit.
    distance = torch.where(gold.heads >= 0, gold.heads - place, 0)
    hits = distance[:, None] == shifts[:, None]
    classes = gold.classes
    scored_counts = torch.einsum("dbw,bwc->bdc", scored.float(), classes)
    correct = torch.einsum("dbw,bow,bwc->bdoc", scored.float(), hits.float(), classes)
    return OffsetCounts(
        _by_half(torch.einsum("bw,bwc->bc", gold.words.float(), classes), gold.half),
        _by_half(scored_counts, gold.half),
        _by_half(correct, gold.half),
    )


def _class_counts(
    hits: Bool[Tensor, "direction batch head word"],
    classes: Float[Tensor, "batch word class"],
    scored: Bool[Tensor, "direction batch word"],
) -> Float[Tensor, "batch head direction class"]:
    counted = (hits & scored[:, :, None]).float()
    return (counted @ classes).permute(1, 2, 0, 3)


def _by_half(
    counts: Float[Tensor, "batch *item"], half: Int[Tensor, "batch"]
) -> Float[Tensor, "half *item"]:
    """Counts of a batch, summed within each half of the corpus."""
    sums = torch.zeros(HALVES, *counts.shape[1:], device=counts.device, dtype=counts.dtype)
    return sums.index_add(0, half, counts)
