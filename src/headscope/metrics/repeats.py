"""Attention to what was said before: the same token, and the token that followed it.

```
tokens   the cat saw the dog and the          query: the last "the"
         ^           ^                        duplicate: an earlier "the"
             ^           ^                    induction: what followed an earlier "the"
```

Every earlier occurrence counts, in bidirectional models too. Weights below LEAST are taken as zero:
the many small ones of a head that looks everywhere would add up. The token right before does not
count for induction where it is the same, for what followed it is the query itself.
"""

from collections.abc import Callable
from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headscope.metrics.metric import Grid
from headscope.metrics.ratio import HeadRatio, Terms, TextRatio, TextTerms
from headscope.metrics.shares import EVEN, HEADVIS, even_of
from headscope.metrics.surface import even_weights
from headscope.observe.batch import AnnotatedBatch
from headscope.observe.layer import Layer
from headscope.results.measure import Baseline, Measure, Role

LEAST = 0.01
TOKEN = "token"  # the label with the ids of tokens
NONE = -1  # no key has this label
AT_ONCE = 2**26  # pairs compared at a time

INDUCTION = Measure(
    "induction",
    title="Induction",
    meaning="Share of attention to what followed an earlier occurrence of the same token.",
    formula=f"Σ a[i, j]·[t[j−1] = t[i], j < i] / number of tokens i that have such a j; weights "
    f"below {LEAST} count as 0",
    reference=HEADVIS,
    cost="the number of such pairs",
    more="looks more at what followed the token before",
    baselines=(Baseline("induction_even", EVEN),),
    role=Role("detector", "what followed the same token before", of="attention"),
)
DUPLICATE = Measure(
    "duplicate",
    title="Duplicate token",
    meaning="Share of attention to an earlier occurrence of the same token.",
    formula=f"Σ a[i, j]·[t[j] = t[i], j < i] / number of tokens i that have such a j; weights "
    f"below {LEAST} count as 0",
    reference=f"Wang et al. 2022, on text; the threshold as for induction of {HEADVIS}",
    cost="the number of such pairs",
    more="looks more at an earlier occurrence of the token",
    baselines=(Baseline("duplicate_even", EVEN),),
    role=Role("detector", "an earlier occurrence of the same token", of="attention"),
)
INDUCTION_EVEN, DUPLICATE_EVEN = even_of(INDUCTION), even_of(DUPLICATE)

Pairs = Int[Tensor, "pair 3"]
Find = Callable[[AnnotatedBatch], Pairs]


def repeats(grid: Grid) -> list[HeadRatio | TextRatio]:
    """Induction and duplicate tokens on text, and both of even attention."""
    found: list[HeadRatio | TextRatio] = []
    for measure, even, pairs in (
        (INDUCTION, INDUCTION_EVEN, induction_pairs),
        (DUPLICATE, DUPLICATE_EVEN, duplicate_pairs),
    ):
        found.append(HeadRatio(measure, grid, partial(pair_terms, pairs, LEAST)))
        found.append(TextRatio(even, partial(even_terms, pairs)))
    return found


def duplicate_pairs(batch: AnnotatedBatch) -> Pairs:
    """Every token and each earlier one that is the same."""
    tokens = batch.labels[TOKEN]
    return batch.once("duplicate pairs", lambda: earlier_pairs(batch, tokens, tokens))


def induction_pairs(batch: AnnotatedBatch) -> Pairs:
    """Every token and each earlier one whose predecessor is the same."""
    tokens = batch.labels[TOKEN]
    before = torch.nn.functional.pad(tokens[:, :-1], (1, 0), value=NONE)
    return batch.once("induction pairs", lambda: earlier_pairs(batch, tokens, before))


def earlier_pairs(
    batch: AnnotatedBatch,
    wanted: Int[Tensor, "batch query"],
    given: Int[Tensor, "batch key"],
) -> Pairs:
    """Pairs (input, query, key) whose key comes before and has the label that the query wants."""
    texts, tokens = batch.mask.shape
    wanted = wanted.masked_fill(~batch.content, NONE - 1)
    given = given.masked_fill(~batch.content, NONE)
    few = max(1, AT_ONCE // tokens**2)  # inputs at a time
    rows = max(1, AT_ONCE // tokens)  # or queries of one
    found = []
    for text in range(0, texts, few):
        for start in range(0, tokens, rows):
            some = wanted[text : text + few, start : start + rows]
            same = (some[:, :, None] == given[text : text + few, None]).tril(start - 1)
            pairs = (same & (some >= 0)[..., None]).nonzero()
            found.append(pairs + pairs.new_tensor([text, start, 0]))
    return torch.cat(found)


def pair_terms(find: Find, least: float, layer: Layer) -> Terms:
    """Weight of the pairs, and how many queries have any."""
    pairs, queries = _found(find, layer.batch)
    weight = layer.on_pairs(pairs, least)
    return weight[..., None], queries[:, None, None].expand(-1, weight.shape[1], -1).float()


def even_terms(find: Find, batch: AnnotatedBatch) -> TextTerms:
    """The same with every weight 1 / the number of tokens that the query sees."""
    pairs, queries = _found(find, batch)
    text, query, _ = pairs.unbind(-1)
    weights = even_weights(batch)[text, query]
    paid = torch.bincount(text, weights=weights, minlength=len(queries))
    return paid[:, None], queries[:, None].double()


def _found(find: Find, batch: AnnotatedBatch) -> tuple[Pairs, Float[Tensor, "batch"]]:
    """The pairs of a batch, and how many queries of every input have any."""
    pairs = find(batch)

    def count() -> Tensor:
        has = torch.zeros_like(batch.mask)
        has[pairs[:, 0], pairs[:, 1]] = True
        return has.sum(1)

    return pairs, batch.once(f"queries of {find.__name__}", count)
