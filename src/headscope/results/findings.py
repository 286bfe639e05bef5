"""Claims of a paper held against a result: published value, measured value, and a stated rule."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import xarray as xr

Verdict = Literal["yes", "no", "unclear", "not measured", "for comparison"]


@dataclass(frozen=True)
class Measured:
    """What a result says about a claim; `unclear` means that the difference may be noise."""

    value: str
    verdict: Verdict


@dataclass(frozen=True)
class Finding:
    """One claim, what the paper reports, and how a result is judged."""

    claim: str
    published: str
    rule: str
    needs: tuple[str, ...]
    measure: Callable[[xr.Dataset], Measured]


def judge(finding: Finding, result: xr.Dataset) -> Measured:
    """Hold a claim against a result; what the result lacks is said, not guessed."""
    missing = [name for name in finding.needs if name not in result]
    if missing:
        return Measured(f"the result has no {missing[0]}", "not measured")
    return finding.measure(result)


def decide(holds: bool) -> Verdict:
    """Yes or no."""
    return "yes" if holds else "no"


def decide_difference(difference: float, errors: tuple[float, float]) -> Verdict:
    """Yes if a difference is positive, no if negative, unclear within two standard errors."""
    noise = 2 * float(np.hypot(*np.nan_to_num(errors)))
    if not np.isfinite(difference) or abs(difference) <= noise:
        return "unclear"
    return decide(difference > 0)
