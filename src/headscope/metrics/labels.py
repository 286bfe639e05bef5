"""Which tags and which relations attention goes to and comes from (Vig & Belinkov 2019, Eq. 3).

A tag belongs to a word and is copied to each of its pieces. Each share stands next to how often the
label occurs among the tokens, and to what a head would give it that spread its attention evenly.
"""

from functools import partial

import torch

from headscope.metrics import text_ratio
from headscope.metrics.head_ratio import HeadRatio, Terms
from headscope.metrics.metric import Axis, Grid
from headscope.metrics.text_ratio import TextRatio
from headscope.observe.batch import AnnotatedBatch
from headscope.observe.layer import ObservedLayer
from headscope.observe.pairs import pairs_of_keys, pairs_of_queries


def label_to_terms(layer: ObservedLayer, label: str, size: int) -> Terms:
    """Σ a[i,j]·[label(j) = l] for every label l, and Σ a[i,j]."""
    return layer.columns @ layer.batch.one_hot(label, size), layer.total[..., None]


def label_from_terms(layer: ObservedLayer, label: str, size: int) -> Terms:
    """Σ a[i,j]·[label(i) = l] for every label l, and Σ a[i,j]."""
    return layer.rows @ layer.batch.one_hot(label, size), layer.total[..., None]


def frequency_terms(batch: AnnotatedBatch, label: str, size: int) -> text_ratio.Terms:
    """How many content tokens carry each label, and how many there are."""
    return batch.one_hot(label, size).sum(1), batch.content.sum(1, keepdim=True).float()


def even_to_terms(batch: AnnotatedBatch, label: str, size: int) -> text_ratio.Terms:
    """The terms of `label_to_terms` with every weight 1 over the same pairs."""
    received = pairs_of_keys(batch)
    shares = torch.einsum("bk,bkl->bl", received, batch.one_hot(label, size).double())
    return shares, received.sum(1, keepdim=True)


def even_from_terms(batch: AnnotatedBatch, label: str, size: int) -> text_ratio.Terms:
    """The terms of `label_from_terms` with every weight 1 over the same pairs."""
    paid = pairs_of_queries(batch)
    shares = torch.einsum("bq,bql->bl", paid, batch.one_hot(label, size).double())
    return shares, paid.sum(1, keepdim=True)


def label_to(name: str, grid: Grid, axis: Axis) -> HeadRatio:
    """Share of attention that each label receives.

    Variables: pos_to, pos_to_*, deprel_to, deprel_to_*
    Formula: Σ a[i, j]·[label(j) = l] / Σ a[i, j]
    Reference: Vig & Belinkov 2019, Eq. 3, Figs. 6 and 9
    Range: 0 to 1; sums to 1 over the labels if every token has one
    Cost: n·labels, from the column sums that other metrics share
    """
    terms = partial(label_to_terms, label=axis.name, size=len(axis))
    return HeadRatio(name, grid, terms, axis, f"attention to each {axis.name}")


def label_from(name: str, grid: Grid, axis: Axis) -> HeadRatio:
    """Share of attention that each label pays.

    Variables: pos_from, pos_from_*
    Formula: Σ a[i, j]·[label(i) = l] / Σ a[i, j]
    Reference: Vig & Belinkov 2019, Eq. 3, Fig. 7
    Range: 0 to 1
    Cost: n·labels, from the row sums that other metrics share
    """
    terms = partial(label_from_terms, label=axis.name, size=len(axis))
    return HeadRatio(name, grid, terms, axis, f"attention from each {axis.name}")


def label_frequency(axis: Axis) -> TextRatio:
    """Share of the content tokens that carry each label.

    Variables: tag_frequency, tag_frequency_se, deprel_frequency, deprel_frequency_se
    Formula: tokens with the label / tokens that are not null
    Reference: Vig & Belinkov 2019, what Figs. 6 and 7 are held against
    Range: 0 to 1
    Cost: n, once for all heads
    """
    terms = partial(frequency_terms, label=axis.name, size=len(axis))
    return TextRatio(f"{axis.name}_frequency", terms, axis, f"share of tokens per {axis.name}")


def even_to(name: str, axis: Axis) -> TextRatio:
    """What each label would receive from a head that spreads its attention evenly.

    Variables: pos_to_even, pos_to_even_se, deprel_to_even, deprel_to_even_se
    Formula: the one of pos_to with a := 1 over the same pairs
    Reference: Vig & Belinkov 2019, Fig. 8, its baseline applied to Eq. 3
    Range: 0 to 1
    Cost: n·labels, once for all heads
    """
    return TextRatio(name, partial(even_to_terms, label=axis.name, size=len(axis)), axis)


def even_from(name: str, axis: Axis) -> TextRatio:
    """What each label would pay in a head that spreads its attention evenly.

    Variables: pos_from_even, pos_from_even_se
    Formula: the one of pos_from with a := 1 over the same pairs
    Reference: Vig & Belinkov 2019, Fig. 8, its baseline applied to Eq. 3
    Range: 0 to 1
    Cost: n·labels, once for all heads
    """
    return TextRatio(name, partial(even_from_terms, label=axis.name, size=len(axis)), axis)
