"""Attention to what was said before: the same token, and the token that followed it.

```
tokens   the cat saw the dog and the          query: the last "the"
         ^           ^                        duplicate: an earlier "the"
             ^           ^                    induction: what followed an earlier "the"
```

Every earlier occurrence counts, in bidirectional models too. Weights below LEAST are taken as zero:
the many small ones of a head that looks everywhere would add up. The token right before does not
count for induction where it is the same, for what followed it is the query itself.

On random sequences that occur twice the same is measured where only the repetition can be used:

```
x y z x y z        query: the second x
^                  duplicate token: the first x, one period back
  ^                induction: the y that followed the first x
    ^              previous token
```

Retrieval is copying from far. A needle of random tokens stands at some depth of a text and is said
again at its end. Each token of the second saying but the last has to be followed by the next token
of the needle; the weight on that token is what is measured.

```
text          w w w n0 n1 n2 w w w w w w w n0 n1 n2        depth 0.3
query                                      ^               has to bring n1
key                    ^                                   where n1 is
```
"""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from headscope.metrics.metric import EVEN, Axis, Grid, Ratio, Terms, Values, document_mean
from headscope.metrics.positions import HEADVIS
from headscope.observe.batch import AnnotatedBatch
from headscope.observe.layer import Layer
from headscope.results.measure import Baseline, Measure

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
    more="looks more at what followed the token before",
    baselines=(Baseline("induction_even", EVEN),),
)
DUPLICATE = Measure(
    "duplicate",
    title="Duplicate token",
    meaning="Share of attention to an earlier occurrence of the same token.",
    formula=f"Σ a[i, j]·[t[j] = t[i], j < i] / number of tokens i that have such a j; weights "
    f"below {LEAST} count as 0",
    reference=f"Wang et al. 2022, on text; the threshold as for induction of {HEADVIS}",
    more="looks more at an earlier occurrence of the token",
    baselines=(Baseline("duplicate_even", EVEN),),
)
Pairs = Int[Tensor, "pair 3"]
Find = Callable[[AnnotatedBatch], Pairs]
MEANING = "On a random sequence that occurs twice: weight on "
PREVIOUS_TOKEN_SCORE = Measure(
    "previous_token_score",
    title="Previous-token score",
    meaning=MEANING + "the token before.",
    formula="mean of a[i, i−1] over the second half of a random sequence that occurs twice",
    reference="Elhage et al. 2021; Olsson et al. 2022",
    more="looks more at the previous token",
)
DUPLICATE_TOKEN_SCORE = Measure(
    "duplicate_token_score",
    title="Duplicate-token score",
    meaning=MEANING + "the same token one period back.",
    formula="mean of a[i, i−p] over the second half; p is the period",
    reference="Elhage et al. 2021; Olsson et al. 2022",
    more="looks more at an earlier occurrence of the token",
)
INDUCTION_SCORE = Measure(
    "induction_score",
    title="Induction score",
    meaning=MEANING + "the token that followed the same token one period back.",
    formula="mean of a[i, i−p+1] over the second half; p is the period",
    reference="Olsson et al. 2022",
    more="looks more at what followed the token before",
)
SCORES = (PREVIOUS_TOKEN_SCORE, DUPLICATE_TOKEN_SCORE, INDUCTION_SCORE)
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
    more="looks more at what is to be copied from far",
)
RETRIEVAL_AT = Measure(
    "retrieval_at",
    title="Retrieval by depth",
    meaning="The same for a needle that stands at one depth of the text: 0 is its beginning.",
    formula="the one of retrieval, with the needle after this share of the text",
    reference=REFERENCE,
    more="looks more at what is to be copied from this depth",
    axes={"depth": "Depth"},
)


def repeats(grid: Grid) -> tuple[Ratio, Ratio]:
    """Induction and duplicate tokens on text."""
    return (
        Ratio(INDUCTION, grid, partial(pair_terms, induction_pairs, LEAST)),
        Ratio(DUPLICATE, grid, partial(pair_terms, duplicate_pairs, LEAST)),
    )


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
    query_labels: Int[Tensor, "batch query"],
    key_labels: Int[Tensor, "batch key"],
) -> Pairs:
    """Pairs (input, query, key) whose key comes before and has the label of the query."""
    texts, tokens = batch.mask.shape
    query_labels = query_labels.masked_fill(~batch.content, NONE - 1)
    key_labels = key_labels.masked_fill(~batch.content, NONE)
    few = max(1, AT_ONCE // tokens**2)  # inputs at a time
    rows = max(1, AT_ONCE // tokens)  # or queries of one
    pairs = []
    for text in range(0, texts, few):
        for start in range(0, tokens, rows):
            some = query_labels[text : text + few, start : start + rows]
            same = (some[:, :, None] == key_labels[text : text + few, None]).tril(start - 1)
            places = (same & (some >= 0)[..., None]).nonzero()
            pairs.append(places + places.new_tensor([text, start, 0]))
    return torch.cat(pairs)


def pair_terms(find: Find, least: float, layer: Layer) -> Terms:
    """Weight of the pairs, and how many queries of every input have any."""
    batch = layer.batch
    pairs = find(batch)

    def count_queries() -> Int[Tensor, "batch"]:
        has_pair = torch.zeros_like(batch.mask)
        has_pair[pairs[:, 0], pairs[:, 1]] = True
        return has_pair.sum(1)

    weight = layer.on_pairs(pairs, least)
    queries = batch.once(f"queries of {find.__name__}", count_queries)
    return weight[..., None], queries[:, None, None].expand(-1, weight.shape[1], -1).float()


def repeated_sequences(
    vocabulary: Sequence[int], *, count: int, period: int, seed: int
) -> Int[np.ndarray, "sequence token"]:
    """Random tokens, each sequence twice, so that only copying can predict the second half."""
    rng = np.random.default_rng(seed)
    half = rng.choice(np.asarray(vocabulary), size=(count, period))
    return np.concatenate([half, half], axis=1)


def repetitions(grid: Grid, period: int, start: int) -> tuple[Ratio, ...]:
    """The three scores as metrics.

    The repeated part begins at token `start`; tokens before and after it are special ones.
    """
    return tuple(
        document_mean(measure, grid, partial(repetition_score, back, period, start), has_even=False)
        for measure, back in zip(SCORES, (1, period, period - 1), strict=True)
    )


def repetition_score(back: int, period: int, start: int, layer: Layer) -> Values:
    """Mean weight of the queries in the second half on the key that many tokens back."""

    def find_pairs() -> Pairs:
        texts, device = len(layer.batch.mask), layer.batch.mask.device
        second = torch.arange(start + period, start + 2 * period, device=device)
        text = torch.arange(texts, device=device).repeat_interleave(period)
        query = second.repeat(texts)
        return torch.stack([text, query, query - back], dim=-1)

    pairs = layer.batch.once(f"{back} back, from {start} with period {period}", find_pairs)
    return layer.on_pairs(pairs, 0.0)[..., None] / period


def retrieval(grid: Grid, depths: Sequence[float]) -> tuple[Ratio, Ratio]:
    """The weight on what is to be copied, over all depths and at each."""
    everywhere = partial(pair_terms, needle_pairs, 0.0)
    by_depth = partial(_terms_by_depth, len(depths))
    axis = Axis("depth", tuple(depths))
    return (
        Ratio(RETRIEVAL, grid, everywhere, has_even=False),
        Ratio(RETRIEVAL_AT, grid, by_depth, axis, shared=False, has_even=False),
    )


def needle_pairs(batch: AnnotatedBatch) -> Pairs:
    """Every copying position and the token that it copies."""
    labels = batch.labels
    return batch.once("needle pairs", lambda: earlier_pairs(batch, labels[WANTED], labels[NEEDLE]))


def _terms_by_depth(depths: int, layer: Layer) -> Terms:
    weight, queries = pair_terms(needle_pairs, 0.0, layer)
    places = torch.arange(depths, device=weight.device)
    is_at = (layer.batch.labels[DEPTH][:, :1] == places)[:, None].to(weight.dtype)
    return weight * is_at, queries * is_at
