"""Previous-token, duplicate-token and induction scores on repeated random sequences.

x y z x y z        query: the second x
^                  duplicate token: the first x, one period back
  ^                induction: the y that followed the first x
    ^              previous token
"""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

SCORES = ("previous_token_score", "duplicate_token_score", "induction_score")


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
