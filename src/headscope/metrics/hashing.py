"""Numbers as good as random that follow from a seed and a place in the corpus.

The inputs or tokens with the smallest numbers are a sample of the corpus. What is smallest of two
halves is smallest of all, so the sample is the same however the corpus is cut into shards.
"""

from functools import reduce

import numpy as np
from jaxtyping import Int, UInt64

_GOLDEN, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def seeded_hash(seed: int, *parts: Int[np.ndarray, "*any"] | int) -> UInt64[np.ndarray, "*any"]:
    """A number for every combination of the parts: splitmix64 of the seed and each part in turn.

    It depends on nothing else: not on the batch, the shard or the process.
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
