"""Proportions of counted words with confidence intervals."""

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float

Z95 = 1.959963984540054  # the 97.5 % point of the normal distribution


def known(counts: Mapping[str, np.ndarray], total: str) -> dict[str, np.ndarray]:
    """The counts, or NaN everywhere if none of the total was counted: nothing is not zero."""
    if counts[total].sum() > 0:
        return dict(counts)
    return {name: np.full(values.shape, np.nan) for name, values in counts.items()}


def accuracy(correct: np.ndarray, total: np.ndarray) -> np.ndarray:
    """correct / total, NaN where nothing was counted."""
    correct, total = np.broadcast_arrays(np.asarray(correct, float), np.asarray(total, float))
    return np.divide(correct, total, out=np.full(total.shape, np.nan), where=total > 0)


def standard_error(correct: np.ndarray, total: np.ndarray) -> np.ndarray:
    """√(p(1 − p)/n), NaN where nothing was counted."""
    share = accuracy(correct, total)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.sqrt(share * (1 - share) / np.asarray(total, float))


def wilson(correct: np.ndarray, total: np.ndarray, z: float = Z95) -> Float[np.ndarray, "2 *item"]:
    """Lower and upper end of Wilson's score interval (Wilson 1927), NaN where nothing was counted.

    (p + z²/2n ± z √(p(1 − p)/n + z²/4n²)) / (1 + z²/n): unlike p ± z·se it stays within 0 … 1 and
    says something of proportions that are 0 or 1.
    """
    share = accuracy(correct, total)
    n = np.where(np.isnan(share), np.nan, np.asarray(total, float))
    middle = share + z**2 / (2 * n)
    reach = z * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    bounds = np.stack([middle - reach, middle + reach]) / (1 + z**2 / n)
    return np.clip(bounds, 0.0, 1.0)  # rounding alone leaves the range
