"""Tokens drawn from the whole corpus with the seed: the same ones, however it is cut into shards.

Every token has a number that follows from the seed, its input and its place there; the tokens with
the smallest numbers are the sample. What is smallest of two halves is smallest of the whole.
"""

from dataclasses import dataclass
from functools import reduce
from typing import ClassVar

import numpy as np
from jaxtyping import Int, UInt64

from headscope.metrics.metric import Axis, Records, State, Sums, Variables, label
from headscope.observe.batch import AnnotatedBatch
from headscope.results.measure import Measure

POINTS = 100
NOTHING = -1.0
_GOLDEN, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB

SAMPLE_INPUT = Measure(
    "sample_input",
    title="Sampled tokens",
    meaning="The input that a sampled token is from; its place there beside it.",
    formula="the tokens with the smallest seeded hashes of (input, place), the first of every "
    "input left out",
    reference="–",
    unit="",
    range="from 0",
    cost="none beyond reading",
    axes={"point": "Token"},
    with_errors=False,
    also=("sample_position",),
)


def draw(seed: int, *parts: Int[np.ndarray, "*any"] | int) -> UInt64[np.ndarray, "*any"]:
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


@dataclass(frozen=True)
class TokenSample:
    """The `count` tokens of smallest seeded hash; the first of every input is never drawn."""

    seed: int
    count: int = POINTS
    name: str = "sample"
    _fields: ClassVar[tuple[str, str]] = ("input", "position")

    @property
    def measures(self) -> tuple[Measure, ...]:
        return (SAMPLE_INPUT,)

    def zero(self, inputs: int) -> State:
        return State({name: np.full(self.count, NOTHING) for name in self._fields})

    def update_text(self, state: State, batch: AnnotatedBatch) -> None:
        """Let the tokens of a batch compete with those drawn so far."""
        row, position = np.nonzero(batch.mask.cpu().numpy())
        row, position = row[position > 0], position[position > 0]
        found = {"input": batch.numbers[row].astype(float), "position": position.astype(float)}
        state.sums.update(self.merge(state.sums, found))

    def merge(self, left: Sums, right: Sums) -> Sums:
        """The smallest hashes of both."""
        both = {name: np.concatenate([left[name], right[name]]) for name in self._fields}
        known = both["input"] >= 0
        both = {name: values[known] for name, values in both.items()}
        drawn = draw(self.seed, *(both[name].astype(np.int64) for name in self._fields))
        few = np.argsort(drawn, kind="stable")[: self.count]
        gap = np.full(self.count - len(few), NOTHING)
        return {name: np.concatenate([values[few], gap]) for name, values in both.items()}

    def compute(self, sums: Sums, records: Records) -> Variables:
        """sample_input and sample_position by point; -1 where the corpus has fewer tokens."""
        points = Axis("point", range(self.count))
        return {
            f"sample_{name}": label(sums[name].astype(np.int64), points) for name in self._fields
        }
