"""Sums of attention and counts of pairs by offset, how far and in which direction a query looks.

The offset of a pair is i − j, query less key. Offsets up to a longest one are kept apart, all
others together in the last place:

```
causal           0  1 …  longest  | further
bidirectional   −longest … −1  0  1 …  longest | further
```

The separation of a pair is |i − j|, counted in powers of two:

```
separation  0  1  2 3  4 … 7  8 … 15
place       0  1  2    3      4
```
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headscope.observe.batch import AnnotatedBatch, pairs_of_queries


@dataclass(frozen=True)
class Spans:
    """How far attention reaches: kept weight by separation, and its first two moments."""

    weight: Float[Tensor, "*text head bin"]  # of the pairs at every separation
    distance: Float[Tensor, "*text head"]  # Σ a[i, j]·|i − j|
    squares: Float[Tensor, "*text head"]  # Σ a[i, j]·|i − j|²

    def __add__(self, other: "Spans") -> "Spans":
        return Spans(
            self.weight + other.weight,
            self.distance + other.distance,
            self.squares + other.squares,
        )


def offset_bins(longest: int, *, is_causal: bool) -> int:
    """Number of bins for offsets up to `longest`, the last bin for all others included."""
    return len(near_offsets(longest, is_causal=is_causal)) + 1


def near_offsets(longest: int, *, is_causal: bool) -> range:
    """The offsets that have a bin of their own."""
    return range(least_offset(longest, is_causal), longest + 1)


def least_offset(longest: int, is_causal: bool) -> int:
    """The smallest such offset: a causal query sees no later key."""
    return 0 if is_causal else -longest


def place_of(offset: Int[Tensor, "*any"], longest: int, is_causal: bool) -> Int[Tensor, "*any"]:
    """The bin of each offset."""
    near = offset - least_offset(longest, is_causal)
    last = offset_bins(longest, is_causal=is_causal) - 1
    return torch.where(offset.abs() <= longest, near, last)


def sum_by_offset(
    weights: Float[Tensor, "*text query key"],
    start: int,
    longest: int,
    is_causal: bool,
    *,
    is_lower: bool = False,
) -> Float[Tensor, "*text bin"]:
    """The weight of all pairs at every offset; the queries begin at token `start`."""
    diagonals, offset = sum_diagonals(weights, start, is_lower=is_lower)
    bins = offset_bins(longest, is_causal=is_causal)
    return _into(diagonals, place_of(offset, longest, is_causal), bins)


def sum_spans(
    weights: Float[Tensor, "*text query key"], start: int, bins: int, *, is_lower: bool = False
) -> Spans:
    """The weight of all pairs at every separation, and its moments, all in float64."""
    diagonals, offset = sum_diagonals(weights, start, is_lower=is_lower)
    wide, apart = diagonals.double(), offset.abs()
    far = apart.double()
    return Spans(_into(wide, separation_place(apart), bins), wide @ far, wide @ far.square())


def separation_bins(tokens: int) -> int:
    """Number of bins for the separations within an input of this many tokens."""
    return 1 + max(0, tokens - 1).bit_length()


def separation_starts(tokens: int) -> tuple[int, ...]:
    """The least separation of every bin."""
    return (0, *(1 << power for power in range(separation_bins(tokens) - 1)))


def separation_place(apart: Int[Tensor, "*any"]) -> Int[Tensor, "*any"]:
    """The bin of each separation: the number of its binary digits."""
    return torch.frexp(apart.double()).exponent.long()


def sum_diagonals(
    weights: Float[Tensor, "*text query key"], start: int, *, is_lower: bool = False
) -> tuple[Float[Tensor, "*text diagonal"], Int[Tensor, "diagonal"]]:
    """The sums of all diagonals, and the offset of each; the queries begin at token `start`.

    Above the diagonal of a whole matrix that `is_lower` there is nothing, so that it needs no room
    for a second copy.

    Rows are laid end to end and cut again one number later, so that each diagonal becomes a column:

    ```
    a b . .        a b . . .
    c d . .   →    c d . . .      a d | b . | … c
    ```
    """
    queries, keys = weights.shape[-2:]
    if is_lower and queries == keys and weights.is_contiguous():
        return _sum_lower(weights), torch.arange(queries, device=weights.device)
    width = queries + keys
    room = weights.new_zeros(*weights.shape[:-2], queries * (width + 1))
    room[..., : queries * width].unflatten(-1, (queries, width))[..., :keys] = weights
    diagonals = room.unflatten(-1, (queries, width + 1)).sum(-2)
    column = torch.arange(width + 1, device=weights.device)
    later = torch.where(column < keys, column, column - width - 1)  # key − query within the block
    return diagonals, start - later


def _sum_lower(weights: Float[Tensor, "*text query key"]) -> Float[Tensor, "*text offset"]:
    """The sums of the main diagonal and all below it.

    Cut again one number later, without padding, a diagonal below comes to lie behind the one above
    that is as long as it lacks, where only zeros are:

    ```
    a . .        a . . b
    b c .   →    c . d e      a c | . | d | b e        offsets 0, –, 2, 1; f is added to the first
    d e f
    ```
    """
    size = weights.shape[-1]
    flat = weights.flatten(-2)
    columns = flat[..., :-1].unflatten(-1, (size - 1, size + 1)).sum(-2) if size > 1 else None
    last = flat[..., -1:]
    if columns is None:
        return last
    return torch.cat([columns[..., :1] + last, columns[..., 2:].flip(-1)], dim=-1)


def _into(
    values: Float[Tensor, "*text some"], places: Int[Tensor, "some"], bins: int
) -> Float[Tensor, "*text bin"]:
    """Sum values by bin: a product with zeros and ones, because index_add has no fixed order."""
    every = torch.arange(bins, device=values.device)
    return values @ (places[:, None] == every).to(values.dtype)


def keys_by_offset(batch: AnnotatedBatch, longest: int) -> Float[Tensor, "batch query bin"]:
    """How many keys that count every query sees at every offset."""
    content, tokens = batch.content, batch.mask.shape[1]
    query = torch.arange(tokens, device=content.device)[:, None]
    offsets = near_offsets(longest, is_causal=batch.is_causal)
    key = query - torch.tensor(offsets, device=content.device)
    is_token = (key >= 0) & (key < tokens)
    near = content[:, key.clamp(0, tokens - 1)] & is_token & content[..., None]
    further = pairs_of_queries(batch) - near.sum(-1)
    return torch.cat([near.float(), further[..., None].float()], dim=-1)
