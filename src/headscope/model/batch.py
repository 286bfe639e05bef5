"""Batches of encoded texts: bucketed by length under a token budget, padded on either side.

```
  lengths   2 3 3 7 8        budget 16 tokens
  buckets  [2 3 3] [7 8]     each bucket: texts × longest ≤ budget
```
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from headscope.errors import ModelError
from headscope.model.encode import Encoded

Side = Literal["left", "right"]


@dataclass(frozen=True, slots=True)
class Batch:
    """Several encoded texts as one rectangle of ids."""

    ids: Int[Tensor, "batch token"]
    mask: Bool[Tensor, "batch token"]  # True for tokens, False for padding
    segments: Int[Tensor, "batch token"]
    rows: tuple[int, ...]  # where each text stands in the caller's list
    lengths: tuple[int, ...]
    side: Side = "right"
    target: "Batch | None" = None  # what the decoder of an encoder–decoder model reads

    def __len__(self) -> int:
        return len(self.rows)

    def span(self, row: int) -> slice:
        """The columns of one text without its padding."""
        length, width = self.lengths[row], self.ids.shape[1]
        return slice(0, length) if self.side == "right" else slice(width - length, width)


def buckets(lengths: Sequence[int], budget: int, *, equal: bool = False) -> list[list[int]]:
    """Indices grouped by similar length, so that texts × longest stays within the budget.

    A text longer than the budget is alone in its bucket. The same lengths give the same buckets.
    `equal` puts only texts of the same length together, for networks that cannot be padded.
    """
    if budget < 1:
        raise ModelError(f"The token budget of a batch must be positive, not {budget}.")
    found: list[list[int]] = []
    for index in sorted(range(len(lengths)), key=lambda i: (lengths[i], i)):
        # Lengths ascend, so the newcomer is the longest of its bucket.
        fits = found and (len(found[-1]) + 1) * lengths[index] <= budget
        if fits and not (equal and lengths[found[-1][0]] != lengths[index]):
            found[-1].append(index)
        else:
            found.append([index])
    return found


def make_batch(
    encoded: Sequence[Encoded],
    rows: Sequence[int],
    *,
    pad: int,
    side: Side = "right",
    device: torch.device | str = "cpu",
) -> Batch:
    """Pad the chosen texts to one rectangle."""
    chosen = [encoded[row] for row in rows]
    if not chosen:
        raise ModelError("A batch needs at least one text.")
    lengths = tuple(len(text) for text in chosen)
    ids = _rectangle([text.ids for text in chosen], pad, side)
    segments = _rectangle([text.segments for text in chosen], 0, side)
    mask = _rectangle([(1,) * length for length in lengths], 0, side).bool()
    return Batch(
        ids=ids.to(device),
        mask=mask.to(device),
        segments=segments.to(device),
        rows=tuple(rows),
        lengths=lengths,
        side=side,
    )


def _rectangle(rows: Sequence[Sequence[int]], fill: int, side: Side) -> Int[Tensor, "batch token"]:
    width = max(len(row) for row in rows)
    padded = [
        [*row, *[fill] * (width - len(row))]
        if side == "right"
        else [*[fill] * (width - len(row)), *row]
        for row in rows
    ]
    return torch.tensor(padded, dtype=torch.long)
