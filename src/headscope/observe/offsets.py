"""Sums of attention and counts of pairs by offset, how far and in which direction a query looks.

The offset of a pair is i − j, query less key. Offsets up to a longest one are kept apart, all
others together in the last place:

```
causal           0  1 …  longest  | further
bidirectional   −longest … −1  0  1 …  longest | further
```
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import pad

from headscope.observe.batch import (
    AnnotatedBatch,
    count_by_separation,
    pairs_of_queries,
    related_pairs,
)


def offset_bins(longest: int, *, is_causal: bool) -> int:
    """How many places there are."""
    return len(near_offsets(longest, is_causal=is_causal)) + 1


def near_offsets(longest: int, *, is_causal: bool) -> range:
    """The offsets that are kept apart."""
    return range(least_offset(longest, is_causal), longest + 1)


def least_offset(longest: int, is_causal: bool) -> int:
    """The first of them: a causal query sees no later key."""
    return 0 if is_causal else -longest


def place_of(offset: Int[Tensor, "*any"], longest: int, is_causal: bool) -> Int[Tensor, "*any"]:
    """Where each offset is counted."""
    near = offset - least_offset(longest, is_causal)
    last = offset_bins(longest, is_causal=is_causal) - 1
    return torch.where(offset.abs() <= longest, near, last)


def sum_by_offset(
    kept: Float[Tensor, "*text query key"], start: int, longest: int, is_causal: bool
) -> Float[Tensor, "*text bin"]:
    """The weight of all pairs at every offset; the queries begin at token `start`.

    Rows are laid end to end and cut again one number later, so that each diagonal becomes a column:

    ```
    a b . .        a b . . .
    c d . .   →    c d . . .      a d | b . | … c
    ```
    """
    queries, keys = kept.shape[-2:]
    width = queries + keys
    flat = pad(kept, (0, queries)).flatten(-2)
    diagonals = pad(flat, (0, queries)).unflatten(-1, (queries, width + 1)).sum(-2)
    column = torch.arange(width + 1, device=kept.device)
    later = torch.where(column < keys, column, column - width - 1)  # key − query within the block
    places = place_of(start - later, longest, is_causal)
    # A product with zeros and ones: index_add has no fixed order on a GPU.
    bins = torch.arange(offset_bins(longest, is_causal=is_causal), device=kept.device)
    return diagonals @ (places[:, None] == bins).to(diagonals.dtype)


def count_pairs_by_offset(batch: AnnotatedBatch, longest: int) -> Float[Tensor, "batch bin"]:
    """How many pairs of every input that count are at every offset."""
    apart = count_by_separation(batch, longest)[:, 1:]
    own = batch.content.double().sum(1, keepdim=True)
    near = [own, apart] if batch.is_causal else [apart.flip(1), own, apart]
    found = torch.cat(near, dim=1)
    further = pairs_of_queries(batch).sum(1, keepdim=True) - found.sum(1, keepdim=True)
    return torch.cat([found, further], dim=1)


def count_arcs_by_offset(batch: AnnotatedBatch, longest: int) -> Float[Tensor, "batch two bin"]:
    """How many of them are related: the query is the parent, the key is the parent."""
    bins = offset_bins(longest, is_causal=batch.is_causal)
    found = []
    for pairs in related_pairs(batch):
        place = place_of(pairs[:, 1] - pairs[:, 2], longest, batch.is_causal)
        counts = torch.bincount(pairs[:, 0] * bins + place, minlength=len(batch.rows) * bins)
        found.append(counts.view(len(batch.rows), bins))
    return torch.stack(found, dim=1).double()
