"""Previous-token, duplicate-token and induction scores on repeated random sequences.

x y z x y z        query: the second x
^                  duplicate token: the first x, one period back
  ^                induction: the y that followed the first x
    ^              previous token
"""

from collections.abc import Sequence
from functools import partial

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from headscope.metrics.metric import Grid
from headscope.metrics.ratio import MatrixRatio, document_mean_of_matrices
from headscope.observe.dense import DenseLayer
from headscope.results.measure import Measure, Role

MEANING = "On a random sequence said twice: weight on "
PREVIOUS_TOKEN_SCORE = Measure(
    "previous_token_score",
    title="Previous-token score",
    meaning=MEANING + "the token before.",
    formula="mean of a[i, i−1] over the second half of a random sequence said twice",
    reference="Elhage et al. 2021; Olsson et al. 2022",
    cost="one forward pass of a few short sequences for all three scores",
    more="looks more at the previous token",
)
DUPLICATE_TOKEN_SCORE = Measure(
    "duplicate_token_score",
    title="Duplicate-token score",
    meaning=MEANING + "the same token one period back.",
    formula="mean of a[i, i−p] over the second half; p is the period",
    reference="Elhage et al. 2021; Olsson et al. 2022",
    cost="none beyond previous_token_score",
    more="looks more at an earlier occurrence of the token",
    role=Role("detector", "an earlier occurrence of the same token", needs_baseline=False),
)
INDUCTION_SCORE = Measure(
    "induction_score",
    title="Induction score",
    meaning=MEANING + "the token that followed the same token one period back.",
    formula="mean of a[i, i−p+1] over the second half; p is the period",
    reference="Olsson et al. 2022",
    cost="none beyond previous_token_score",
    more="looks more at what followed the token before",
    role=Role("detector", "what followed the same token before", needs_baseline=False),
)
SCORES = (PREVIOUS_TOKEN_SCORE, DUPLICATE_TOKEN_SCORE, INDUCTION_SCORE)


def repeated_sequences(
    vocabulary: Sequence[int], *, count: int, period: int, seed: int
) -> Int[np.ndarray, "sequence token"]:
    """Random tokens, each sequence said twice: what repeats cannot be known from the language."""
    rng = np.random.default_rng(seed)
    half = rng.choice(np.asarray(vocabulary), size=(count, period))
    return np.concatenate([half, half], axis=1)


def repetition_scores(
    weights: Float[Tensor, "batch head query key"], period: int, start: int
) -> Float[Tensor, "batch head score"]:
    """Mean weight of the queries in the second half on the three keys of SCORES.

    The repeated part begins at token `start`; tokens before and after it are special ones.
    """
    second = torch.arange(start + period, start + 2 * period, device=weights.device)
    keys = (second - 1, second - period, second - period + 1)
    return torch.stack([weights[:, :, second, key].mean(-1) for key in keys], dim=-1)


def repetitions(grid: Grid, period: int, start: int) -> tuple[MatrixRatio, ...]:
    """The three scores as metrics."""
    return tuple(
        document_mean_of_matrices(measure, grid, partial(_score, place, period, start))
        for place, measure in enumerate(SCORES)
    )


def _score(
    place: int, period: int, start: int, layer: DenseLayer
) -> Float[Tensor, "batch head item"]:
    return repetition_scores(layer.weights, period, start)[..., [place]]
