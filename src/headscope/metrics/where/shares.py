"""How much of its attention a head pays to itself, its neighbours, the first token, delimiters.

```
            key 0  1  2  3
query 0         s                 s  self, n  next (no causal head sees it)
      1         f  s  n           f  first, p  previous
      2         f  p  s  n
      3         f     p  s
```

Rows are those of all tokens, the special ones included; each row of a usual softmax sums to one, so
that a share is a mean over the rows that have such a key.
"""

from collections.abc import Callable
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from headscope.metrics.metric import Grid
from headscope.metrics.ratio import HeadRatio, Terms, TextRatio, TextTerms
from headscope.metrics.where.surface import (
    SINK_THRESHOLD,
    even_on_offset,
    even_received,
    even_weights,
)
from headscope.observe.batch import AnnotatedBatch
from headscope.observe.layer import Layer
from headscope.results.measure import Baseline, Measure, Role

DELIMITER = 0  # the code of delimiters in the label of that name
EVEN = "even attention"
HEADVIS = "Luger, Kamath et al. 2026 (HeadVis)"


def _declare(
    name: str, title: str, whom: str, formula: str, reference: str, role: Role, cost: str = "n"
) -> Measure:
    return Measure(
        name,
        title=title,
        meaning=f"Share of its attention that a token pays to {whom}.",
        formula=formula,
        reference=reference,
        cost=cost,
        more=f"looks more at {whom}",
        baselines=(Baseline(f"{name}_even", EVEN),),
        role=role,
    )


def even_of(measure: Measure) -> Measure:
    """The baseline of a measure: what attention that is the same everywhere gives."""
    return replace(
        measure,
        name=f"{measure.name}_even",
        title=f"{measure.title}, even attention",
        meaning=f"The {measure.name} of a head that spreads its attention evenly.",
        formula=f"the one of {measure.name} with a[i, j] := 1 / the number of tokens that i sees, "
        "however small that is",
        reference="as beside Clark et al. 2019, Fig. 4, the uniform line",
        cost=f"{measure.cost}, once for all heads",
        more="",
        baselines=(),
        published=(),
        role=None,
    )


SELF_SHARE = _declare(
    "self_share",
    "Attention to oneself",
    "itself",
    "Σ a[i, i] / number of tokens i",
    f"{HEADVIS}: mean of the diagonal",
    Role("position", "itself", of="attention"),
)
PREVIOUS_SHARE = _declare(
    "previous_share",
    "Attention to the previous token",
    "the token before it",
    "Σ a[i, i−1] / number of tokens i that have one before them",
    f"{HEADVIS}: mean of the first subdiagonal",
    Role("position", "the previous token", of="attention"),
)
NEXT_SHARE = _declare(
    "next_share",
    "Attention to the next token",
    "the token after it",
    "Σ a[i, i+1] / number of tokens i that have one after them",
    f"as {HEADVIS} for the previous token",
    Role("position", "the next token", of="attention"),
)
FIRST_SHARE = _declare(
    "first_share",
    "Attention to the first token",
    "the first token of the input",
    "Σ a[i, 0] / number of tokens i after the first",
    f"Gu et al. 2024; a head above {SINK_THRESHOLD} is a sink head",
    Role("special", "the first token", of="attention"),
)
DELIMITER_SHARE = _declare(
    "delimiter_share",
    "Attention to delimiters",
    "line breaks and punctuation",
    "Σ_i Σ_j a[i, j]·[j is a delimiter] / number of tokens i; a delimiter is a token of nothing "
    "but line breaks and Unicode punctuation, spaces aside; special tokens are none",
    "after Clark et al. 2019, Fig. 2, with every mark of punctuation",
    Role("special", "line breaks and punctuation", of="attention"),
    "n, from the sums over columns",
)
DECLARED = (SELF_SHARE, PREVIOUS_SHARE, NEXT_SHARE, FIRST_SHARE, DELIMITER_SHARE)
EVENS = tuple(map(even_of, DECLARED))

# What a head pays to the keys of a share, and the same of even attention, for every input.
Paid = Callable[[Layer], Float[Tensor, "batch head"]]
EvenlyPaid = Callable[[AnnotatedBatch], Float[Tensor, "batch"]]


def shares(grid: Grid, *, is_causal: bool) -> list[HeadRatio | TextRatio]:
    """All shares that a head can have, and those of even attention; a causal one sees no next."""
    found: list[HeadRatio | TextRatio] = []
    for measure, even, (missing, paid, evenly) in zip(DECLARED, EVENS, _SHARES, strict=True):
        if not (is_causal and measure is NEXT_SHARE):
            found.append(HeadRatio(measure, grid, _terms(paid, missing)))
            found.append(TextRatio(even, _even_terms(evenly, missing)))
    return found


def _terms(paid: Paid, missing: int) -> Callable[[Layer], Terms]:
    """What is paid, and how many rows can pay it: all, or all but one of every input."""

    def terms(layer: Layer) -> Terms:
        found = paid(layer)
        rows = _rows(layer.batch, missing)[:, None, None]
        return found[..., None], rows.expand(-1, found.shape[1], -1).to(found.dtype)

    return terms


def _even_terms(evenly: EvenlyPaid, missing: int) -> Callable[[AnnotatedBatch], TextTerms]:
    return lambda batch: (evenly(batch)[:, None], _rows(batch, missing)[:, None].double())


def _rows(batch: AnnotatedBatch, missing: int) -> Float[Tensor, "batch"]:
    return (batch.mask.sum(1) - missing).clamp(min=0)


def to_self(layer: Layer) -> Float[Tensor, "batch head"]:
    """Σ a[i, i]."""
    return layer.own.sum(-1)


def to_first(layer: Layer) -> Float[Tensor, "batch head"]:
    """Σ a[i, 0] over the tokens after the first."""
    return layer.columns[..., 0] - layer.own[..., 0]


def to_delimiters(layer: Layer) -> Float[Tensor, "batch head"]:
    """Σ a[i, j] over the keys that are delimiters."""
    return torch.einsum("bhk,bk->bh", layer.columns, _is_delimiter(layer.batch).to(torch.float32))


def even_to_first(batch: AnnotatedBatch) -> Float[Tensor, "batch"]:
    """`to_first` of attention that is the same everywhere."""
    return even_weights(batch)[:, 1:].sum(1)


def even_to_delimiters(batch: AnnotatedBatch) -> Float[Tensor, "batch"]:
    """`to_delimiters` of attention that is the same everywhere."""
    return (even_received(batch) * _is_delimiter(batch)).sum(1)


def _is_delimiter(batch: AnnotatedBatch) -> Float[Tensor, "batch token"]:
    return batch.one_hot("delimiter", 1)[..., DELIMITER]


# In the order of DECLARED: how many rows of an input cannot pay it, and what is paid.
_SHARES: tuple[tuple[int, Paid, EvenlyPaid], ...] = (
    (0, to_self, lambda batch: even_weights(batch).sum(1)),
    (1, lambda layer: layer.on_offset(-1), lambda batch: even_on_offset(batch, -1)),
    (1, lambda layer: layer.on_offset(1), lambda batch: even_on_offset(batch, 1)),
    (1, to_first, even_to_first),
    (0, to_delimiters, even_to_delimiters),
)
