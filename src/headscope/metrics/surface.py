"""Surface patterns of attention (Clark et al. 2019, §3) and newer measures beside them.

Every value is averaged over the rows of a segment first, then over segments.
"""

from collections.abc import Collection, Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from headscope.metrics.metric import (
    EVEN,
    Axis,
    Grid,
    Ratio,
    TextRatio,
    TextTerms,
    Values,
    document_mean,
    norm_of,
)
from headscope.observe.batch import SPECIAL, AnnotatedBatch
from headscope.observe.layer import Layer
from headscope.results.measure import Baseline, Measure

CLS, SEP, PUNCT = range(len(SPECIAL))
SINK_THRESHOLD = 0.3
ENTROPY_SMOOTHING = 1e-4

OFFSET_SHARE = Measure(
    "offset_share",
    title="Attention to an offset",
    meaning="Share of attention to the token at this relative position.",
    formula="Σ_i a[i, i+o] / n",
    reference="Clark et al. 2019, §3.1",
    more="attends more to the token at this offset",
    axes={"offset": "Offset"},
    baselines=(Baseline("offset_share_even", EVEN),),
)
SPECIAL_SHARE = Measure(
    "special_share",
    title="Attention to special tokens",
    meaning="Share of attention to [CLS], [SEP] or punctuation.",
    formula="Σ_i Σ_j a[i, j]·[j in class] / n",
    reference="Clark et al. 2019, Fig. 2 top",
    more="attends more to these tokens",
    axes={"special": "Token"},
    baselines=(Baseline("special_share_even", EVEN),),
)
SPECIAL_SHARE_NORM = norm_of(SPECIAL_SHARE)
SEP_TO_SEP = Measure(
    "sep_to_sep",
    title="[SEP] to [SEP]",
    meaning="Share of the attention of [SEP] that goes to [SEP].",
    formula="Σ a[i, j]·[j is SEP] over the rows i of [SEP] / number of such rows",
    reference="Clark et al. 2019, Fig. 2 bottom",
    more="has [SEP] attend more to [SEP]",
)
OTHER_TO_SEP = Measure(
    "other_to_sep",
    title="Others to [SEP]",
    meaning="Share of the attention of all other tokens that goes to [SEP].",
    formula="Σ a[i, j]·[j is SEP] over all other rows i / number of such rows",
    reference="Clark et al. 2019, Fig. 2 bottom",
    more="has the other tokens attend more to [SEP]",
)
# Another study has another measure of this name; see `headscope.metrics.spread`.
ENTROPY = Measure(
    "entropy",
    title="Entropy",
    meaning="How widely a token's attention is spread.",
    formula="mean over rows of −Σ p′ ln p′ with p′ = 0.9999·a + 0.0001/n",
    reference="Clark et al. 2019, Fig. 4 top",
    unit="nats",
    more="spreads its attention more widely",
    baselines=(Baseline("entropy_even", EVEN),),
)
ENTROPY_FROM_CLS = Measure(
    "entropy_from_cls",
    title="Entropy from [CLS]",
    meaning="Spread of the attention of [CLS] alone.",
    formula="the one of entropy for the row of [CLS]",
    reference="Clark et al. 2019, Fig. 4 bottom",
    unit="nats",
    more="spreads the attention of [CLS] more widely",
    baselines=(Baseline("uniform_entropy", "uniform attention"),),
)
UNIFORM_ENTROPY = Measure(
    "uniform_entropy",
    title="Entropy of uniform attention",
    meaning="What a row that is the same everywhere would have.",
    formula="mean over segments of ln n",
    reference="Clark et al. 2019, Fig. 4, dotted line",
    unit="nats",
)
CONFIDENCE = Measure(
    "confidence",
    title="Confidence",
    meaning="Mean of each row's largest weight.",
    formula="Σ_i max_j a[i, j] / n",
    reference="Voita et al. 2019, who leave out the end of the sentence",
    more="puts more of its attention on one token",
)
FIRST_TOKEN_SHARE = Measure(
    "first_token_share",
    title="Weight on the first token",
    meaning="Mean share of token 0.",
    formula="Σ_i a[i, 0] / n",
    reference="Gu et al. 2024",
    more="attends more to the first token",
    baselines=(Baseline("first_token_share_even", EVEN),),
)
SINK_TEXTS = Measure(
    "sink_texts",
    title="Texts with a sink",
    meaning="Share of the texts in which the mean share of token 0 exceeds 0.3. Its mean over "
    "heads is the sink rate as Gu et al. compute it, text by text.",
    formula="texts with Σ_i a[i, 0] / n > 0.3 / texts",
    reference="Gu et al. 2024",
    more="rests on the first token in more texts",
)
SINK_RATE = Measure(
    "sink_rate",
    title="Sink rate",
    meaning="Share of the heads that put much of their attention on the first token.",
    formula="heads with first_token_share > 0.3 / heads",
    reference="Gu et al. 2024",
    with_errors=False,
)


def offset_shares(grid: Grid, offsets: Sequence[int]) -> Ratio:
    """Attention to fixed offsets; n is the number of tokens also where i+o falls off the end."""

    def values(layer: Layer) -> Values:
        sums = torch.stack([layer.on_offset(offset) for offset in offsets], dim=-1)
        return sums / layer.batch.mask.sum(-1)[:, None, None]

    return document_mean(OFFSET_SHARE, grid, values, Axis("offset", tuple(offsets)))


def special_shares(grid: Grid, absent: Collection[str] = ()) -> Ratio:
    """Attention to [CLS], [SEP] and punctuation; NaN for what the model lacks."""
    missing = torch.tensor([name in absent for name in SPECIAL])

    def values(layer: Layer) -> Values:
        is_special = layer.batch.one_hot("special", len(SPECIAL))
        shares = layer.columns @ is_special / layer.batch.mask.sum(-1)[:, None, None]
        return shares.masked_fill(missing.to(shares.device), torch.nan)

    return document_mean(SPECIAL_SHARE, grid, values, Axis("special", SPECIAL))


def sep_to_sep(grid: Grid) -> Ratio:
    """Attention from [SEP] to [SEP]."""

    def values(layer: Layer) -> Values:
        return mean_over(weight_on_sep(layer), has_label(layer.batch, SEP))

    return document_mean(SEP_TO_SEP, grid, values, has_even=False)


def other_to_sep(grid: Grid) -> Ratio:
    """Attention from all other tokens to [SEP]; NaN without any [SEP]."""

    def values(layer: Layer) -> Values:
        sep = has_label(layer.batch, SEP)
        paid = mean_over(weight_on_sep(layer), layer.batch.mask & ~sep)
        return paid.masked_fill(~sep.any(-1)[:, None, None], torch.nan)

    return document_mean(OTHER_TO_SEP, grid, values, has_even=False)


def weight_on_sep(layer: Layer) -> Float[Tensor, "batch head query one"]:
    """Weight that every query pays to all [SEP] together."""
    sep = has_label(layer.batch, SEP)[:, None, :, None].float()
    return layer.of_rows(lambda rows: rows @ sep)


def entropies(grid: Grid) -> Ratio:
    """Mean entropy of the rows in nats, smoothed."""

    def values(layer: Layer) -> Values:
        return mean_over(row_entropies(layer), layer.batch.mask)

    return document_mean(ENTROPY, grid, values)


def entropies_from_cls(grid: Grid) -> Ratio:
    """Entropy of the row of [CLS] alone."""

    def values(layer: Layer) -> Values:
        return mean_over(row_entropies(layer), has_label(layer.batch, CLS))

    return document_mean(ENTROPY_FROM_CLS, grid, values, has_even=False)


def row_entropies(layer: Layer) -> Float[Tensor, "batch head query one"]:
    """Entropy of every smoothed row; computed once for all metrics that a layer is shown to."""
    mask = layer.batch.mask

    def make() -> Tensor:
        return layer.of_rows(lambda rows: smoothed_entropy(rows, mask)[..., None])

    return layer.once("row entropies", make)


def smoothed_entropy(
    weights: Float[Tensor, "batch head query key"],
    mask: Bool[Tensor, "batch key"],
    amount: float = ENTROPY_SMOOTHING,
) -> Float[Tensor, "batch head query"]:
    """Entropy in nats of every row smoothed over the n tokens of the input (Clark et al., Fig. 4).

    p' = (1 − amount)·p + amount/n, zero on padding.
    """
    mask = mask[:, None, None, :]
    smoothed = (1 - amount) * weights + amount / mask.sum(-1, keepdim=True)
    smoothed = smoothed.masked_fill(~mask, 0.0)
    return -torch.xlogy(smoothed, smoothed).sum(-1)


def confidences(grid: Grid) -> Ratio:
    """Mean of the largest weight of every row."""

    def values(layer: Layer) -> Values:
        largest = layer.of_rows(lambda rows: rows.amax(-1, keepdim=True))
        return mean_over(largest, layer.batch.mask)

    return document_mean(CONFIDENCE, grid, values, has_even=False)


def weight_on_first(layer: Layer) -> Values:
    """The mean weight of the rows of each text on its first token."""
    mask = layer.batch.mask
    first = mask & (mask.cumsum(-1) == 1)
    received = layer.columns @ first[..., None].float()
    return received / mask.sum(-1)[:, None, None]


def first_token_shares(grid: Grid) -> Ratio:
    """Attention to the first token, from which the sink rate follows."""
    return document_mean(FIRST_TOKEN_SHARE, grid, weight_on_first)


def sink_texts(grid: Grid, threshold: float = SINK_THRESHOLD) -> Ratio:
    """In how many texts the first token gets more than the threshold."""

    def values(layer: Layer) -> Values:
        return (weight_on_first(layer) > threshold).double()

    return document_mean(SINK_TEXTS, grid, values, has_even=False)


def sink_rate(
    first_share: Float[np.ndarray, "layer head"], threshold: float = SINK_THRESHOLD
) -> float:
    """Share of heads with a mean weight on the first token above the threshold."""
    finite = first_share[np.isfinite(first_share)]
    return float((finite > threshold).mean()) if finite.size else float("nan")


def uniform_entropy() -> TextRatio:
    """ln n: what a row that is uniform over all tokens of the input would have."""

    def terms(batch: AnnotatedBatch) -> TextTerms:
        entropy = batch.mask.sum(-1, keepdim=True).double().log()
        return entropy, torch.ones_like(entropy)

    return TextRatio(UNIFORM_ENTROPY, terms)


def mean_over(
    values: Float[Tensor, "batch head query item"], rows: Bool[Tensor, "batch query"]
) -> Float[Tensor, "batch head item"]:
    """Mean over some queries of each input; NaN in inputs that have none of them."""
    rows = rows[:, None, :, None]
    return torch.where(rows, values, 0).sum(2) / rows.sum(2)


def has_label(batch: AnnotatedBatch, label: int) -> Bool[Tensor, "batch token"]:
    """Tokens of one special class."""
    return (batch.labels["special"] == label) & batch.mask
