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
    x, y = x.double(), y.double()
    added = {"x": x, "xx": x * x, "xy": x * y, "y": y, "yy": y * y, "n": (y > 0).double()}
    return {name: values.sum(0).cpu().numpy() for name, values in added.items()}


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
