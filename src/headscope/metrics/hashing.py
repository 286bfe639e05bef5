"""Numbers that follow from a seed: a draw that does not depend on how a corpus is cut."""

from functools import reduce

import numpy as np
from jaxtyping import Int, UInt64

_GOLDEN, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def seeded_hash(seed: int, *parts: Int[np.ndarray, "*any"] | int) -> UInt64[np.ndarray, "*any"]:
    """A number for every combination of the parts, as good as random: splitmix64 of each in turn.

    It depends on nothing else, so that a draw is the same in any batch, shard and process.
    """
    with np.errstate(over="ignore"):
        return reduce(_mix, parts, _mix(np.uint64(0), seed))


def _mix(
    state: UInt64[np.ndarray, "*any"] | np.uint64, part: Int[np.ndarray, "*any"] | int
) -> UInt64[np.ndarray, "*any"]:
    mixed = state + np.asarray(part).astype(np.uint64) + np.uint64(_GOLDEN)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(_FIRST)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(_SECOND)
    return mixed ^ (mixed >> np.uint64(31))
