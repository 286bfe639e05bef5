"""Numbers as JSON has them: NaN and infinity become null."""

from typing import Any

import numpy as np


def number(value: Any) -> float | None:
    """One number, or None where there is none."""
    plain = float(value)
    return plain if np.isfinite(plain) else None


def numbers(values: np.ndarray) -> Any:
    """Nested lists of the array's shape."""
    if values.ndim == 0:
        return number(values)
    return [numbers(part) for part in values]
