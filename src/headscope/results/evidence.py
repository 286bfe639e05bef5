"""What a run stores to show its portraits: bars, a mean matrix, examples, and surprises of a head.

Three inks part a head's weight: what null tokens get, what its name is of, and everything else.
"""

from dataclasses import dataclass

import numpy as np
import xarray as xr
from jaxtyping import Float, UInt8

from headscope.head import Head
from headscope.results.inspection import read_json

PROFILE, MATRIX, EVIDENCE = "portrait_profile", "portrait_matrix", "portrait_evidence"
NULL_NAMES = "portrait_null_names"  # attribute: the first null token, and the last if another
INKS = ("sink", "named", "other")
# The first null token, eight tokens before the query to eight behind it, the last null token.
PLACES = ("first", *(f"{offset:+d}" if offset else "0" for offset in range(-8, 9)), "last")
SIDE = 16  # tokens of the mean matrix


Arc = tuple[float, ...]  # query, key, weight and ink, which counts in INKS


@dataclass(frozen=True)
class HeadExample:
    """Some tokens of a text, and the largest weights between them by their places among these."""

    tokens: tuple[str, ...]
    begins: tuple[bool, ...]  # whether each begins a word
    after_gap: tuple[int, ...]  # tokens before which something of the text is left out
    null: tuple[int, ...]
    same: tuple[int, ...]  # places of the token that is repeated, if the name is about that
    arcs: tuple[Arc, ...]


@dataclass(frozen=True)
class Surprise:
    """A weight that the portrait does not expect, in its context."""

    tokens: tuple[str, ...]
    begins: tuple[bool, ...]
    goes_before: bool  # whether the text begins earlier
    goes_on: bool
    query: int
    key: int
    weight: float
    expected: float


@dataclass(frozen=True)
class Evidence:
    """What shows a head's portrait in texts."""

    examples: tuple[HeadExample, ...]
    surprises: tuple[Surprise, ...]


def read_evidence(result: xr.Dataset, head: Head) -> Evidence | None:
    """The examples and surprises of a head; None where the run has no portraits."""
    if EVIDENCE not in result:
        return None
    stored = str(result[EVIDENCE].sel(head._asdict()).item())
    return read_json(stored, Evidence, f"The evidence of {head}")


def as_bytes(shares: Float[np.ndarray, "..."]) -> UInt8[np.ndarray, "..."]:
    """Shares in one byte each, by their square root, so that small ones stay apart."""
    return np.clip(np.round(255 * np.sqrt(np.maximum(shares, 0))), 0, 255).astype(np.uint8)
