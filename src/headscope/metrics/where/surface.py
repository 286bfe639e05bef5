"""Surface patterns of attention (Clark et al. 2019, §3) and newer measures beside them.

Every value is averaged over the rows of a segment first, then over segments.
"""

from collections.abc import Callable, Collection, Sequence
from functools import partial

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from headscope.metrics.metric import Axis, Grid
from headscope.metrics.ratio import (
    KOBAYASHI,
    WEIGHTED,
    WEIGHTED_COST,
    HeadRatio,
    MatrixRatio,
    TextRatio,
    TextTerms,
    by_norms,
    document_mean,
    document_mean_of_matrices,
)
from headscope.observe.batch import SPECIAL, AnnotatedBatch
from headscope.observe.dense import DenseLayer
from headscope.observe.layer import Layer
from headscope.results.measure import Baseline, Measure, Published, Role

CLS, SEP, PUNCT = range(len(SPECIAL))
SINK_THRESHOLD = 0.3
EVEN = "even attention"
CLARK = "BERT-base, Clark et al. 2019"
UNIFORM = (
    Baseline("visible_uniform_entropy", "uniform attention to what each token sees"),
    Baseline("uniform_entropy", "uniform attention"),
)
Values = Float[Tensor, "batch head item"]

OFFSET_SHARE = Measure(
    "offset_share",
    title="Attention to an offset",
    meaning="Share of attention to the token at this relative position.",
    formula="Σ_i a[i, i+o] / n",
    reference="Clark et al. 2019, §3.1",
    cost="n for every offset",
    more="attends more to the token at this offset",
    axes={"offset": "Offset"},
    baselines=(Baseline("offset_share_even", "even attention"),),
    published=(
        Published("over 0.5 in four heads", CLARK, at={"offset": "-1"}),
        Published("over 0.5 in five heads", CLARK, at={"offset": "1"}),
    ),
    role=Role(
        "position",
        "the token at offset {offset}",
        {"-1": "the previous token", "0": "itself", "1": "the next token"},
        of="attention",
    ),
)
SPECIAL_SHARE = Measure(
    "special_share",
    title="Attention to special tokens",
    meaning="Share of attention to [CLS], [SEP] or punctuation.",
    formula="Σ_i Σ_j a[i, j]·[j in class] / n",
    reference="Clark et al. 2019, Fig. 2 top",
    cost="n, from the sums over columns",
    more="attends more to these tokens",
    axes={"special": "Token"},
    baselines=(Baseline("special_share_even", "even attention"),),
    published=(Published("over half in layers 5 to 9 (0-based)", CLARK, at={"special": "sep"}),),
    role=Role(
        "special",
        "{special}",
        {"cls": "[CLS]", "sep": "[SEP]", "punct": "full stops and commas"},
        of="attention",
    ),
)
SPECIAL_SHARE_NORM = Measure(
    "special_share_norm",
    title="Special tokens by what they give",
    meaning="Share of what is taken from [CLS], [SEP] or punctuation.",
    formula=f"the one of special_share {WEIGHTED}",
    reference=KOBAYASHI,
    cost=WEIGHTED_COST,
    more="takes more from these tokens",
    axes={"special": "Token"},
    baselines=(Baseline("special_share_even", "even attention"),),
)
OFFSET_SHARE_EVEN = Measure(
    "offset_share_even",
    title="Even attention to an offset",
    meaning="What the token at this offset receives from a head that spreads its attention evenly.",
    formula="the one of offset_share with a[i, j] := 1 / the number of tokens that i sees",
    reference="as beside Clark et al. 2019, Fig. 4, the uniform line",
    cost="n for every offset, once for all heads",
    axes={"offset": "Offset"},
)
SPECIAL_SHARE_EVEN = Measure(
    "special_share_even",
    title="Even attention to special tokens",
    meaning="What these tokens receive from a head that spreads its attention evenly.",
    formula="the one of special_share with a[i, j] := 1 / the number of tokens that i sees",
    reference="as beside Clark et al. 2019, Fig. 4, the uniform line",
    cost="n, once for all heads",
    axes={"special": "Token"},
)
SEP_TO_SEP = Measure(
    "sep_to_sep",
    title="[SEP] to [SEP]",
    meaning="Share of the attention of [SEP] that goes to [SEP].",
    formula="Σ a[i, j]·[j is SEP] over the rows i of [SEP] / number of such rows",
    reference="Clark et al. 2019, Fig. 2 bottom",
    cost="none beyond special_share",
    more="has [SEP] attend more to [SEP]",
    published=(Published("exceeded in layers 5 to 9 (0-based)", CLARK, 0.9),),
)
OTHER_TO_SEP = Measure(
    "other_to_sep",
    title="Others to [SEP]",
    meaning="Share of the attention of all other tokens that goes to [SEP].",
    formula="Σ a[i, j]·[j is SEP] over all other rows i / number of such rows",
    reference="Clark et al. 2019, Fig. 2 bottom",
    cost="none beyond special_share",
    more="has the other tokens attend more to [SEP]",
)
# vig2019 has another measure of this name; see `headscope.metrics.where.spread`.
ENTROPY = Measure(
    "entropy",
    title="Entropy",
    meaning="How widely a token's attention is spread.",
    formula="mean over rows of −Σ p′ ln p′ with p′ = 0.9999·a + 0.0001/n",
    reference="Clark et al. 2019, Fig. 4 top",
    unit="nats",
    range="0 to ln n, in nats",
    cost="n² with a logarithm for every weight",
    more="spreads its attention more widely",
    baselines=UNIFORM,
    role=Role("spread", "broadly, over all it sees"),
    published=(Published("the uniform line lies at about 4.8 nats", CLARK),),
)
ENTROPY_FROM_CLS = Measure(
    "entropy_from_cls",
    title="Entropy from [CLS]",
    meaning="Spread of the attention of [CLS] alone.",
    formula="the one of entropy for the row of [CLS]",
    reference="Clark et al. 2019, Fig. 4 bottom",
    unit="nats",
    range="0 to ln n, in nats",
    cost="none beyond entropy",
    more="spreads the attention of [CLS] more widely",
    baselines=UNIFORM[1:],
    published=(Published("in the last layer", CLARK, 3.89),),
)
UNIFORM_ENTROPY = Measure(
    "uniform_entropy",
    title="Entropy of uniform attention",
    meaning="What a row that is the same everywhere would have.",
    formula="mean over segments of ln n",
    reference="Clark et al. 2019, Fig. 4, dotted line",
    unit="nats",
    range="0 to ln n, in nats",
    cost="1, once for all heads",
    published=(Published("about", CLARK, 4.8),),
)
VISIBLE_UNIFORM_ENTROPY = Measure(
    "visible_uniform_entropy",
    title="Entropy of uniform attention to what is seen",
    meaning="What a row that is the same over the tokens a causal model sees would have.",
    formula="mean over segments of Σ_i ln i / n, i counted from 1",
    reference="Clark et al. 2019, Fig. 4, its dotted line where a query sees only what came before",
    unit="nats",
    range="0 to ln n, in nats",
    cost="n, once for all heads",
)
CONFIDENCE = Measure(
    "confidence",
    title="Confidence",
    meaning="Mean of each row's largest weight.",
    formula="Σ_i max_j a[i, j] / n",
    reference="Voita et al. 2019, who leave out the end of the sentence",
    range="1/n to 1",
    cost="n², one maximum",
    more="puts more of its attention on one token",
)
FIRST_TOKEN_SHARE = Measure(
    "first_token_share",
    title="Weight on the first token",
    meaning="Mean share of token 0.",
    formula="Σ_i a[i, 0] / n",
    reference="Gu et al. 2024",
    cost="n",
    more="attends more to the first token",
    baselines=(Baseline("first_token_share_even", EVEN),),
    role=Role("special", "the first token", of="attention"),
)
FIRST_TOKEN_SHARE_EVEN = Measure(
    "first_token_share_even",
    title="Even attention to the first token",
    meaning="What the first token receives from a head that spreads its attention evenly.",
    formula="the one of first_token_share with a[i, j] := 1 / the number of tokens that i sees",
    reference="as beside Clark et al. 2019, Fig. 4, the uniform line",
    cost="n, once for all heads",
)
SINK_RATE = Measure(
    "sink_rate",
    title="Sink rate",
    meaning="Share of the heads that put much of their attention on the first token.",
    formula="heads with first_token_share > 0.3 / heads",
    reference="Gu et al. 2024",
    cost="from first_token_share alone",
    with_errors=False,
)


def offset_shares(grid: Grid, offsets: Sequence[int]) -> HeadRatio:
    """Attention to fixed offsets; n is the number of tokens also where i+o falls off the end."""

    def values(layer: Layer) -> Values:
        sums = torch.stack([layer.on_offset(offset) for offset in offsets], dim=-1)
        return sums / layer.batch.mask.sum(-1)[:, None, None]

    return document_mean(OFFSET_SHARE, grid, values, Axis("offset", tuple(offsets)))


def special_shares(grid: Grid, absent: Collection[str] = ()) -> HeadRatio:
    """Attention to [CLS], [SEP] and punctuation; NaN for what the model lacks."""
    missing = torch.tensor([name in absent for name in SPECIAL])

    def values(layer: Layer) -> Values:
        is_special = layer.batch.one_hot("special", len(SPECIAL))
        shares = layer.columns @ is_special / layer.batch.mask.sum(-1)[:, None, None]
        return shares.masked_fill(missing.to(shares.device), torch.nan)

    return document_mean(SPECIAL_SHARE, grid, values, Axis("special", SPECIAL))


def special_shares_norm(grid: Grid, absent: Collection[str] = ()) -> MatrixRatio:
    """Share taken from [CLS], [SEP] and punctuation."""
    return by_norms(special_shares(grid, absent), SPECIAL_SHARE_NORM)


def even_offset_shares(offsets: Sequence[int]) -> TextRatio:
    """What `offset_shares` gives for attention that is the same everywhere."""

    def terms(batch: AnnotatedBatch) -> TextTerms:
        sums = torch.stack([even_on_offset(batch, offset) for offset in offsets], dim=-1)
        return _mean_of_rows(batch, sums)

    return TextRatio(OFFSET_SHARE_EVEN, terms, Axis("offset", tuple(offsets)))


def even_special_shares() -> TextRatio:
    """What `special_shares` gives for attention that is the same everywhere."""

    def terms(batch: AnnotatedBatch) -> TextTerms:
        is_special = batch.one_hot("special", len(SPECIAL)).double()
        return _mean_of_rows(batch, (even_received(batch)[..., None] * is_special).sum(1))

    return TextRatio(SPECIAL_SHARE_EVEN, terms, Axis("special", SPECIAL))


def even_first_token_share() -> TextRatio:
    """What `first_token_shares` gives for attention that is the same everywhere."""
    return TextRatio(
        FIRST_TOKEN_SHARE_EVEN,
        lambda batch: _mean_of_rows(batch, even_weights(batch).sum(1, keepdim=True)),
    )


def even_weights(batch: AnnotatedBatch) -> Float[Tensor, "batch query"]:
    """The weight that every query gives to each token it sees if it gives all the same."""
    mask = batch.mask.double()
    seen = mask.cumsum(1) if batch.is_causal else mask.sum(1, keepdim=True)
    return mask / seen.clamp(min=1)


def even_received(batch: AnnotatedBatch) -> Float[Tensor, "batch #key"]:
    """The weight that every token then receives."""
    weights = even_weights(batch)
    return weights.flip(1).cumsum(1).flip(1) if batch.is_causal else weights.sum(1, keepdim=True)


def even_on_offset(batch: AnnotatedBatch, offset: int) -> Float[Tensor, "batch"]:
    """Weight between every token and the one at an offset if it is the same everywhere."""
    back, ahead = max(0, -offset), max(0, offset)
    weights, size = even_weights(batch), batch.mask.shape[1]
    if max(back, ahead) >= size or (batch.is_causal and ahead):
        return torch.zeros_like(weights[:, 0])
    # Queries beside the keys that many tokens away; a key that is padding has no weight.
    return (weights[:, back : size - ahead] * batch.mask[:, ahead : size - back]).sum(1)


def _mean_of_rows(batch: AnnotatedBatch, sums: Float[Tensor, "batch item"]) -> TextTerms:
    rows = batch.mask.sum(1, keepdim=True)
    return sums / rows, torch.ones_like(sums[:, :1])


def sep_to_sep(grid: Grid) -> MatrixRatio:
    """Attention from [SEP] to [SEP]."""

    def values(layer: DenseLayer) -> Values:
        return mean_over(layer.to_special[..., [SEP]], has_label(layer.batch, SEP))

    return document_mean_of_matrices(SEP_TO_SEP, grid, values)


def other_to_sep(grid: Grid) -> MatrixRatio:
    """Attention from all other tokens to [SEP]; NaN without any [SEP]."""

    def values(layer: DenseLayer) -> Values:
        sep = has_label(layer.batch, SEP)
        paid = mean_over(layer.to_special[..., [SEP]], layer.batch.mask & ~sep)
        return paid.masked_fill(~sep.any(-1)[:, None, None], torch.nan)

    return document_mean_of_matrices(OTHER_TO_SEP, grid, values)


def entropies(grid: Grid) -> MatrixRatio:
    """Mean entropy of the rows in nats, smoothed."""
    return document_mean_of_matrices(ENTROPY, grid, partial(_row_entropy, None))


def entropies_from_cls(grid: Grid) -> MatrixRatio:
    """Entropy of the row of [CLS] alone."""
    return document_mean_of_matrices(ENTROPY_FROM_CLS, grid, partial(_row_entropy, CLS))


def _row_entropy(label: int | None, layer: DenseLayer) -> Values:
    rows = layer.batch.mask if label is None else has_label(layer.batch, label)
    return mean_over(layer.smoothed_entropy[..., None], rows)


def confidences(grid: Grid) -> MatrixRatio:
    """Mean of the largest weight of every row."""

    def values(layer: DenseLayer) -> Values:
        return mean_over(layer.kept.amax(-1, keepdim=True), layer.batch.mask)

    return document_mean_of_matrices(CONFIDENCE, grid, values)


def first_token_shares(grid: Grid) -> MatrixRatio:
    """Attention to the first token, from which the sink rate follows."""

    def values(layer: DenseLayer) -> Values:
        first = layer.batch.mask & (layer.batch.mask.cumsum(-1) == 1)
        paid = layer.kept @ first[:, None, :, None].to(layer.kept.dtype)
        return mean_over(paid, layer.batch.mask)

    return document_mean_of_matrices(FIRST_TOKEN_SHARE, grid, values)


def sink_rate(
    first_share: Float[np.ndarray, "layer head"], threshold: float = SINK_THRESHOLD
) -> float:
    """Share of heads with a mean weight on the first token above the threshold."""
    known = first_share[np.isfinite(first_share)]
    return float((known > threshold).mean()) if known.size else float("nan")


def uniform_lines(*, is_causal: bool) -> list[TextRatio]:
    """The entropy of attention that is the same everywhere, or over what a causal query sees."""
    lines = [TextRatio(UNIFORM_ENTROPY, partial(_per_document, uniform_entropy))]
    if is_causal:
        visible = partial(_per_document, visible_uniform_entropy)
        lines.append(TextRatio(VISIBLE_UNIFORM_ENTROPY, visible))
    return lines


def uniform_entropy(mask: Bool[Tensor, "batch token"]) -> Float[Tensor, "batch"]:
    """ln n: what a row that is uniform over all tokens of the input would have."""
    return mask.sum(-1).double().log()


def visible_uniform_entropy(mask: Bool[Tensor, "batch token"]) -> Float[Tensor, "batch"]:
    """The same for a causal model, whose i-th query sees i tokens: the mean of ln i."""
    entropy = mask.cumsum(-1).clamp(min=1).double().log() * mask
    return entropy.sum(-1) / mask.sum(-1)


def _per_document(compute: Callable[[Tensor], Tensor], batch: AnnotatedBatch) -> TextTerms:
    values = compute(batch.mask)[:, None]
    return values, torch.ones_like(values)


def mean_over(
    values: Float[Tensor, "batch head query *item"], rows: Bool[Tensor, "batch query"]
) -> Float[Tensor, "batch head *item"]:
    """Mean over some queries of each input; NaN in inputs that have none of them."""
    rows = rows.reshape(rows.shape[0], 1, rows.shape[1], *[1] * (values.ndim - 3))
    return torch.where(rows, values, 0).sum(2) / rows.sum(2)


def has_label(batch: AnnotatedBatch, label: int) -> Bool[Tensor, "batch token"]:
    """Tokens of one special class."""
    return (batch.labels["special"] == label) & batch.mask
