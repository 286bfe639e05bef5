"""One input of a study and its annotation per token; several of them as an annotated batch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from headscope.metrics.batch import AnnotatedBatch
from headscope.model.batch import Batch
from headscope.model.encode import Encoded
from headscope.text.sentence import Sentence

NO_LABEL = -1
Arcs = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Example:
    """One input: its tokens, which of them are null, their labels, and arcs between tokens."""

    number: int  # of the sentence in the corpus (the first one, if an input has several)
    encoded: Encoded
    null: tuple[bool, ...]
    labels: Mapping[str, Sequence[int]] = field(default_factory=dict)
    arcs: Arcs | None = None  # (token of the parent, token of the dependent)
    sentence: Sentence | None = None  # where a metric needs all of it


def annotate(examples: Sequence[Example], batch: Batch, *, is_causal: bool) -> AnnotatedBatch:
    """The annotation of the examples that make up a batch."""
    chosen = [examples[row] for row in batch.rows]
    width, device = batch.ids.shape[1], batch.mask.device
    first = chosen[0]
    return AnnotatedBatch(
        numbers=np.array([example.number for example in chosen]),
        rows=np.array(batch.rows),
        mask=batch.mask,
        null=_rectangle([example.null for example in chosen], width, False).to(device),
        is_causal=is_causal,
        labels={
            name: _rectangle([each.labels[name] for each in chosen], width, NO_LABEL).to(device)
            for name in first.labels
        },
        arcs=None if first.arcs is None else _arcs(chosen).to(device),
        sentences=tuple(each.sentence for each in chosen if each.sentence is not None),
    )


def _rectangle(rows: Sequence[Sequence[int]], width: int, fill: int) -> Tensor:
    return torch.tensor([[*row, *[fill] * (width - len(row))] for row in rows])


def _arcs(chosen: Sequence[Example]) -> Tensor:
    arcs = [(row, *arc) for row, example in enumerate(chosen) for arc in example.arcs or ()]
    return torch.tensor(arcs, dtype=torch.long).reshape(-1, 3)
