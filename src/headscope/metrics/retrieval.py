"""Copying from far: how much the position that copies looks at what it has to copy.

A needle of random tokens stands at some depth of a text and is said again at its end. Each token of
the second saying but the last has to be followed by the next token of the needle; the weight on
that token is what is measured.

```
text          w w w n0 n1 n2 w w w w w w w n0 n1 n2        depth 0.3
query                                      ^               has to bring n1
key                    ^                                   where n1 is
```
"""

from collections.abc import Sequence
from functools import partial

import torch
from jaxtyping import Int
from torch import Tensor

from headscope.metrics.metric import Axis, Grid
from headscope.metrics.ratio import HeadRatio, Terms
from headscope.metrics.repeats import earlier_pairs, pair_terms
from headscope.observe.batch import AnnotatedBatch
from headscope.observe.layer import Layer
from headscope.results.measure import Measure, Role

WANTED, NEEDLE, DEPTH = "wanted", "needle", "depth"  # labels of tokens
REFERENCE = (
    "after Wu et al. 2024, with the copy given instead of generated, and its weight instead of "
    "how often it is the largest"
)

RETRIEVAL = Measure(
    "retrieval",
    title="Retrieval",
    meaning="Weight from a position that copies a needle to the token of the needle that it copies "
    "next, mean over the depths at which the needle stands in a text.",
    formula="Σ a[i, j] / number of i; t[i] is token k of the needle said again at the end, j the "
    "place of its token k + 1 in the text",
    reference=REFERENCE,
    cost="one forward pass of a few texts for every depth",
    more="looks more at what is to be copied from far",
    role=Role("detector", "what is to be copied from far", needs_baseline=False),
)
RETRIEVAL_AT = Measure(
    "retrieval_at",
    title="Retrieval by depth",
    meaning="The same for a needle that stands at one depth of the text: 0 is its beginning.",
    formula="the one of retrieval, with the needle after this share of the text",
    reference=REFERENCE,
    cost="none beyond retrieval",
    more="looks more at what is to be copied from this depth",
    axes={"depth": "Depth"},
)


def retrieval(grid: Grid, depths: Sequence[float]) -> list[HeadRatio]:
    """The weight on what is to be copied, over all depths and at each."""
    axis = Axis("depth", tuple(depths))
    by_depth = partial(_terms_by_depth, len(depths))
    return [
        HeadRatio(RETRIEVAL, grid, partial(pair_terms, needle_pairs, 0.0)),
        HeadRatio(RETRIEVAL_AT, grid, by_depth, axis, shared=False),
    ]


def needle_pairs(batch: AnnotatedBatch) -> Int[Tensor, "pair 3"]:
    """Every copying position and the token that it copies."""
    labels = batch.labels
    return batch.once("needle pairs", lambda: earlier_pairs(batch, labels[WANTED], labels[NEEDLE]))


def _terms_by_depth(depths: int, layer: Layer) -> Terms:
    weight, queries = pair_terms(needle_pairs, 0.0, layer)
    places = torch.arange(depths, device=weight.device)
    is_at = (layer.batch.labels[DEPTH][:, :1] == places)[:, None].to(weight.dtype)
    return weight * is_at, queries * is_at
