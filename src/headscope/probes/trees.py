"""Undirected trees from attention: how many dependency arcs each head's strongest tree has (UUAS).

Every head gives a graph over the words of a sentence. An edge weighs as much as the stronger of its
two directions: a head that looks from dependent to governor says nothing in the other direction,
and adding what it says there would add noise. The maximum spanning tree is grown by Prim's
algorithm, for all heads and sentences at once: as many steps as the longest sentence has words.
"""

from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headscope.probes.gold import GoldTrees

Symmetry = Literal["max", "sum"]


def spanning_parents(
    weights: Float[Tensor, "graph word word"], words: Bool[Tensor, "graph word"]
) -> Int[Tensor, "graph word"]:
    """Maximum spanning tree of symmetric graphs: for each word the word it was joined to.

    The first word starts the tree and has the parent −1, as has padding. Of equal edges the one to
    the first word wins, and of those the one that entered the tree first.
    """
    graphs, size = words.shape
    rows = torch.arange(graphs, device=weights.device)
    parents = torch.full_like(words, -1, dtype=torch.long)
    outside = words.clone()
    outside[:, :1] = False
    strongest = weights[:, 0].clone()
    joined = torch.zeros_like(parents)
    for _ in range(size - 1):
        new = strongest.masked_fill(~outside, -torch.inf).argmax(-1)
        growing = outside[rows, new]
        parents[rows[growing], new[growing]] = joined[rows, new][growing]
        outside[rows, new] = False
        edges = weights[rows, new]
        stronger = (edges > strongest) & growing[:, None]
        joined = torch.where(stronger, new[:, None], joined)
        strongest = torch.where(stronger, edges, strongest)
    return parents


def symmetric(
    maps: Float[Tensor, "*batch word word"], symmetry: Symmetry = "max"
) -> Float[Tensor, "*batch word word"]:
    """One weight for every pair of words."""
    other = maps.transpose(-1, -2)
    return torch.maximum(maps, other) if symmetry == "max" else maps + other


def count_arcs(
    maps: Float[Tensor, "batch head word word"], gold: GoldTrees, symmetry: Symmetry = "max"
) -> Float[Tensor, "batch head"]:
    """Gold arcs of each sentence in each head's tree; arcs to punctuation do not count."""
    batch, heads, size, _ = maps.shape
    words = gold.words[:, None].expand(-1, heads, -1).reshape(-1, size)
    parents = spanning_parents(symmetric(maps, symmetry).reshape(-1, size, size), words)
    parents = parents.reshape(batch, heads, size)
    return (_is_edge(parents, gold.heads) & counted_arcs(gold)[:, None]).sum(2).double()


def counted_arcs(gold: GoldTrees) -> Bool[Tensor, "batch word"]:
    """Words whose arc to their governor counts."""
    return (gold.heads >= 0) & ~gold.punctuation


def count_neighbours(gold: GoldTrees) -> Float[Tensor, "batch"]:
    """Arcs of each sentence between neighbours: what the tree of a chain of words has."""
    place = torch.arange(gold.heads.shape[1], device=gold.heads.device)
    return (((gold.heads - place).abs() == 1) & counted_arcs(gold)).sum(1).double()


def _is_edge(
    parents: Int[Tensor, "batch head word"], heads: Int[Tensor, "batch word"]
) -> Bool[Tensor, "batch head word"]:
    """Whether word and governor are joined in the tree, whichever of them was joined first."""
    place = torch.arange(heads.shape[1], device=heads.device)
    governor = heads.clamp(min=0)[:, None].expand_as(parents)
    return (parents == governor) | (parents.gather(-1, governor) == place)
