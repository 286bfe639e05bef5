"""Ratios of sums over inputs, with standard errors, from sums that add.

Every input gives a numerator x and a denominator y. The value is R = Σx / Σy; its variance is that
of the ratio estimator, Σ(x − R·y)² / (Σy)² · n/(n−1), which needs only Σx, Σy, Σx², Σxy, Σy² and n.
"""

import numpy as np
from jaxtyping import Float
from torch import Tensor

Sums = dict[str, np.ndarray]
NUMERATOR = ("x", "xx", "xy")
DENOMINATOR = ("y", "yy", "n")


def zero(numerator: tuple[int, ...], denominator: tuple[int, ...]) -> Sums:
    """Empty sums; the denominator's shape broadcasts to the numerator's."""
    sums = {name: np.zeros(numerator) for name in NUMERATOR}
    return sums | {name: np.zeros(denominator) for name in DENOMINATOR}


def terms(x: Float[Tensor, "batch *item"], y: Float[Tensor, "batch *part"]) -> Sums:
    """What a batch adds: float64 sums over its inputs."""
    return sums_over(x.double().cpu().numpy(), y.double().cpu().numpy())


def sums_over(x: np.ndarray, y: np.ndarray) -> Sums:
    """Sums over the first axis; numpy, because many small sums cost it less than torch."""
    return {
        "x": x.sum(0),
        "xx": np.einsum("b...,b...->...", x, x),
        "xy": np.einsum("b...,b...->...", x, y),
        "y": y.sum(0),
        "yy": np.einsum("b...,b...->...", y, y),
        "n": (y > 0).sum(0, dtype=np.float64),
    }


def value(sums: Sums) -> np.ndarray:
    """Σx / Σy, NaN where nothing was counted."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(sums["y"] > 0, sums["x"] / sums["y"], np.nan)


def standard_error(sums: Sums) -> np.ndarray:
    """Standard error of the ratio; NaN for fewer than two inputs."""
    ratio, n = value(sums), sums["n"]
    squares = sums["xx"] - 2 * ratio * sums["xy"] + ratio**2 * sums["yy"]
    with np.errstate(invalid="ignore", divide="ignore"):
        variance = np.maximum(squares, 0) / sums["y"] ** 2 * n / (n - 1)
        return np.where(n > 1, np.sqrt(variance), np.nan)
