"""Surface patterns of attention (Clark et al. 2019, §3) and newer measures beside them.

Every value is averaged over the rows of a segment first, then over segments.
"""

from collections.abc import Callable, Collection, Sequence
from functools import partial

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from headscope.metrics.document_mean import document_mean
from headscope.metrics.head_ratio import HeadRatio
from headscope.metrics.induction import SCORES, repetition_scores
from headscope.metrics.metric import Axis, Grid
from headscope.metrics.text_ratio import TextRatio
from headscope.observe.batch import AnnotatedBatch
from headscope.observe.concentration import confidence, uniform_entropy, visible_uniform_entropy
from headscope.observe.layer import ObservedLayer
from headscope.observe.special import SPECIAL, mean_over

CLS, SEP, PUNCT = range(len(SPECIAL))
Values = Float[Tensor, "batch head item"]


def offset_shares(grid: Grid, offsets: Sequence[int]) -> HeadRatio:
    """Attention to fixed offsets (§3.1).

    Variables: offset_share, offset_share_*
    Formula: Σ_i a[i, i+o] / n
    Reference: Clark et al. 2019, §3.1
    Range: 0 to 1
    Cost: n for every offset
    """

    def values(layer: ObservedLayer) -> Values:
        sums = torch.stack([layer.on_offset(offset) for offset in offsets], dim=-1)
        return sums / layer.batch.mask.sum(-1)[:, None, None]

    axis = Axis("offset", tuple(offsets))
    return document_mean("offset_share", grid, values, axis, "attention to the token at an offset")


def special_shares(grid: Grid, absent: Collection[str] = ()) -> HeadRatio:
    """Attention to [CLS], [SEP] and punctuation (Fig. 2 top); NaN for what the model lacks.

    Variables: special_share, special_share_*
    Formula: Σ_i Σ_j a[i, j]·[j in class] / n
    Reference: Clark et al. 2019, Fig. 2 top
    Range: 0 to 1
    Cost: n, from the sums over columns
    """
    missing = torch.tensor([name in absent for name in SPECIAL])

    def values(layer: ObservedLayer) -> Values:
        is_special = layer.batch.one_hot("special", len(SPECIAL))
        shares = layer.columns @ is_special / layer.batch.mask.sum(-1)[:, None, None]
        return shares.masked_fill(missing.to(shares.device), torch.nan)

    axis = Axis("special", SPECIAL)
    return document_mean("special_share", grid, values, axis, "attention to special tokens")


def sep_to_sep(grid: Grid) -> HeadRatio:
    """Attention from [SEP] to [SEP] (Fig. 2 bottom).

    Variables: sep_to_sep, sep_to_sep_*
    Formula: Σ a[i, j]·[j is SEP] over the rows i of [SEP] / number of such rows
    Reference: Clark et al. 2019, Fig. 2 bottom
    Range: 0 to 1
    Cost: none beyond special_share
    """

    def values(layer: ObservedLayer) -> Values:
        return mean_over(layer.to_special[..., [SEP]], has_label(layer.batch, SEP))

    return document_mean("sep_to_sep", grid, values, description="attention from [SEP] to [SEP]")


def other_to_sep(grid: Grid) -> HeadRatio:
    """Attention from all other tokens to [SEP] (Fig. 2 bottom); NaN without any [SEP].

    Variables: other_to_sep, other_to_sep_*
    Formula: Σ a[i, j]·[j is SEP] over all other rows i / number of such rows
    Reference: Clark et al. 2019, Fig. 2 bottom
    Range: 0 to 1
    Cost: none beyond special_share
    """

    def values(layer: ObservedLayer) -> Values:
        sep = has_label(layer.batch, SEP)
        paid = mean_over(layer.to_special[..., [SEP]], layer.batch.mask & ~sep)
        return paid.masked_fill(~sep.any(-1)[:, None, None], torch.nan)

    return document_mean("other_to_sep", grid, values, description="from other tokens to [SEP]")


def entropies(grid: Grid) -> HeadRatio:
    """Mean entropy of the rows in nats, smoothed (Fig. 4 top).

    Variables: entropy, entropy_*
    Formula: mean over rows of −Σ p′ ln p′ with p′ = 0.9999·a + 0.0001/n
    Reference: Clark et al. 2019, Fig. 4 top
    Range: 0 to ln n, in nats
    Cost: n² with a logarithm for every weight
    """
    values = partial(_row_entropy, None)
    return document_mean("entropy", grid, values, description="mean entropy in nats")


def entropies_from_cls(grid: Grid) -> HeadRatio:
    """Entropy of the row of [CLS] alone (Fig. 4 bottom).

    Variables: entropy_from_cls, entropy_from_cls_*
    Formula: the one of entropy for the row of [CLS]
    Reference: Clark et al. 2019, Fig. 4 bottom
    Range: 0 to ln n, in nats
    Cost: none beyond entropy
    """
    values = partial(_row_entropy, CLS)
    return document_mean("entropy_from_cls", grid, values, description="entropy of [CLS] in nats")


def _row_entropy(label: int | None, layer: ObservedLayer) -> Values:
    rows = layer.batch.mask if label is None else has_label(layer.batch, label)
    return mean_over(layer.smoothed_entropy[..., None], rows)


def confidences(grid: Grid) -> HeadRatio:
    """Mean of the largest weight of every row (Voita et al. 2019).

    Variables: confidence, confidence_*
    Formula: Σ_i max_j a[i, j] / n
    Reference: Voita et al. 2019, who leave out the end of the sentence
    Range: 1/n to 1
    Cost: n², one maximum
    """

    def values(layer: ObservedLayer) -> Values:
        largest = confidence(layer.kept, layer.batch.mask)
        return mean_over(largest[..., None], layer.batch.mask)

    return document_mean("confidence", grid, values, description="mean of the largest weights")


def first_token_shares(grid: Grid) -> HeadRatio:
    """Attention to the first token, from which the sink rate follows (Gu et al. 2024).

    Variables: first_token_share, first_token_share_*
    Formula: Σ_i a[i, 0] / n
    Reference: Gu et al. 2024
    Range: 0 to 1
    Cost: n
    """

    def values(layer: ObservedLayer) -> Values:
        first = layer.batch.mask & (layer.batch.mask.cumsum(-1) == 1)
        paid = layer.kept @ first[:, None, :, None].to(layer.kept.dtype)
        return mean_over(paid, layer.batch.mask)

    return document_mean("first_token_share", grid, values, description="attention to token 0")


def uniform_line() -> TextRatio:
    """Mean ln n: the entropy of attention that is the same everywhere (Fig. 4, dotted).

    Variables: uniform_entropy, uniform_entropy_se
    Formula: mean over segments of ln n
    Reference: Clark et al. 2019, Fig. 4, dotted line
    Range: 0 to ln n, in nats
    Cost: 1, once for all heads
    """
    return TextRatio("uniform_entropy", partial(_per_document, uniform_entropy))


def visible_uniform_line() -> TextRatio:
    """The same for a causal model, over what each query sees.

    Variables: visible_uniform_entropy, visible_uniform_entropy_se
    Formula: mean over segments of Σ_i ln i / n, i counted from 1
    Reference: Clark et al. 2019, Fig. 4, its dotted line where a query sees only what came before
    Range: 0 to ln n, in nats
    Cost: n, once for all heads
    """
    return TextRatio("visible_uniform_entropy", partial(_per_document, visible_uniform_entropy))


def repetitions(grid: Grid, period: int, start: int) -> tuple[HeadRatio, ...]:
    """Previous-token, duplicate-token and induction scores on repeated random sequences.

    Variables: previous_token_score, previous_token_score_*
    Formula: mean of a[i, i−1] over the second half of a random sequence said twice
    Reference: Elhage et al. 2021; Olsson et al. 2022
    Range: 0 to 1
    Cost: one forward pass of a few short sequences for all three scores

    Variables: duplicate_token_score, duplicate_token_score_*
    Formula: mean of a[i, i−p] over the second half; p is the period
    Reference: Elhage et al. 2021; Olsson et al. 2022
    Range: 0 to 1
    Cost: none beyond previous_token_score

    Variables: induction_score, induction_score_*
    Formula: mean of a[i, i−p+1] over the second half; p is the period
    Reference: Olsson et al. 2022
    Range: 0 to 1
    Cost: none beyond previous_token_score
    """
    return tuple(
        document_mean(name, grid, partial(_repetition, score, period, start))
        for score, name in enumerate(SCORES)
    )


def _repetition(score: int, period: int, start: int, layer: ObservedLayer) -> Values:
    return repetition_scores(layer.weights, period, start)[..., [score]]


def _per_document(
    measure: Callable[[Tensor], Tensor], batch: AnnotatedBatch
) -> tuple[Tensor, Tensor]:
    values = measure(batch.mask)[:, None]
    return values, torch.ones_like(values)


def has_label(batch: AnnotatedBatch, label: int) -> Bool[Tensor, "batch token"]:
    """Tokens of one special class."""
    return (batch.labels["special"] == label) & batch.mask
