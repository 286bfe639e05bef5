"""Heads that park their attention on the first token."""

import numpy as np
from jaxtyping import Float

SINK_THRESHOLD = 0.3


def sink_rate(
    first_share: Float[np.ndarray, "layer head"], threshold: float = SINK_THRESHOLD
) -> float:
    """Share of heads with a mean weight on the first token above the threshold (Gu et al. 2024).

    Variables: sink_rate
    Formula: heads with first_token_share > 0.3 / heads
    Reference: Gu et al. 2024
    Range: 0 to 1
    Cost: from first_token_share alone
    """
    known = first_share[np.isfinite(first_share)]
    return float((known > threshold).mean()) if known.size else float("nan")
