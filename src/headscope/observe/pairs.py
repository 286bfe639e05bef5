"""Counting the pairs that stay after the null filter, in time and memory linear in the length.

All numbers are whole, so they are the same as counts over `AnnotatedBatch.pairs`.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import pad

from headscope.observe.batch import AnnotatedBatch


def pairs_of_keys(batch: AnnotatedBatch) -> Float[Tensor, "batch key"]:
    """How many pairs every key is part of; in a causal model only later queries see it."""
    return _pairs(batch, batch.content.double().flip(1).cumsum(1).flip(1))


def pairs_of_queries(batch: AnnotatedBatch) -> Float[Tensor, "batch query"]:
    """How many pairs every query is part of; in a causal model it sees only earlier keys."""
    return _pairs(batch, batch.content.double().cumsum(1))


def _pairs(
    batch: AnnotatedBatch, visible: Float[Tensor, "batch token"]
) -> Float[Tensor, "batch token"]:
    content = batch.content.double()
    return content * (visible if batch.is_causal else content.sum(1, keepdim=True))


def related_pairs(batch: AnnotatedBatch) -> tuple[Int[Tensor, "pair 3"], Int[Tensor, "pair 3"]]:
    """Pairs (input, query, key) of the two directed forms of Eq. 4 that count."""
    return batch.once("related_pairs", lambda: _related_pairs(batch))


def _related_pairs(batch: AnnotatedBatch) -> tuple[Tensor, Tensor]:
    if batch.arcs is None:
        none = torch.zeros(0, 3, dtype=torch.long, device=batch.mask.device)
        return none, none
    arcs = each_once(batch.arcs, batch.mask.shape[1])
    return _that_count(batch, arcs), _that_count(batch, arcs[:, [0, 2, 1]])


def each_once(arcs: Int[Tensor, "arc 3"], size: int) -> Int[Tensor, "some 3"]:
    """Every arc once; as single numbers, for whole rows are compared far more slowly."""
    row, parent, dependent = arcs.unbind(-1)
    code = ((row * size + parent) * size + dependent).unique()
    return torch.stack([code // size**2, code // size % size, code % size], dim=-1)


def _that_count(batch: AnnotatedBatch, pairs: Int[Tensor, "pair 3"]) -> Int[Tensor, "some 3"]:
    row, query, key = pairs.unbind(-1)
    count = batch.content[row, query] & batch.content[row, key]
    return pairs[count & (key <= query) if batch.is_causal else count]


def count_related(batch: AnnotatedBatch) -> Float[Tensor, "batch form"]:
    """How many pairs of every input are related, in the two directed forms."""
    counts = [
        torch.bincount(pairs[:, 0], minlength=len(batch.rows)) for pairs in related_pairs(batch)
    ]
    return torch.stack(counts, dim=-1).double()


def count_by_separation(batch: AnnotatedBatch, longest: int) -> Float[Tensor, "separation"]:
    """How many pairs of two tokens lie 0, 1 … `longest` apart, each pair once."""
    content = batch.content.double()
    far = min(longest, content.shape[1] - 1)
    before = pad(content, (far, 0)).unfold(1, far + 1, 1)  # batch token, far … 0 before
    counts = torch.einsum("bt,bts->s", content, before).flip(0)
    counts[0] = 0
    return pad(counts, (0, longest - far))
