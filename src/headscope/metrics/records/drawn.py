"""Inputs and tokens drawn from the whole corpus with the seed, however it is cut into shards.

Every input and token has a number that follows from the seed; those with the smallest numbers are
the sample. What is smallest of two halves is smallest of the whole.

The top inputs alone show a head at its surest, which may be rare. So the inputs are also parted
into bands of nearly equal frequency, from those where the head does next to nothing to those where
it is sure, and some are drawn from each.

```
largest weight    0 ···|·|·|||||||||||||||||||||·|··|···|····1      fine bins, the same for all
inputs                 ░░░▒▒▒▒▒▓▓▓▓▓▓▓█████████
bands                  0  1    2      3        4                    of a fifth each, about
```

Of every bin are kept how many inputs fall into it and the few with the smallest seeded hash. The
smallest of a band are among the smallest of its bins: the draw is that of all inputs of the band,
however the corpus is cut into batches and shards, and memory does not grow with it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from typing import ClassVar

import numpy as np
from jaxtyping import Float, Int, UInt64

from headscope.metrics.metric import Axis, Grid, Records, State, Sums, Variables, label
from headscope.observe.batch import AnnotatedBatch
from headscope.observe.layer import Layer
from headscope.results.measure import Measure
from headscope.results.records import BANDS, TOP_BAND

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
BINS = 200
LOW, HIGH = -7.0, 9.5  # log odds of the largest weight: finer where it is close to 0 or 1
EACH, TOP = 3, 10  # examples of a band, and of the very top
DIGITS = 4  # of a largest weight that count when inputs are ranked

EXAMPLE_PEAK = Measure(
    "example_peak",
    title="Largest weight of an example",
    meaning="The head's largest weight in an input drawn from a band of equal frequency of it; "
    "the last band has the inputs with the very largest.",
    formula="max a[i, j], i > 0, j > 0; three inputs of smallest seeded hash in each fifth of all "
    "inputs by it, and the ten largest",
    reference="Luger, Kamath et al. 2026",
    cost="none beyond the largest weight",
    axes={"band": "Band", "pick": "Rank"},
    with_errors=False,
    also=("example_input", "example_share"),
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
    measures: tuple[Measure, ...] = (SAMPLE_INPUT,)
    _fields: ClassVar[tuple[str, str]] = ("input", "position")

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


@dataclass(frozen=True)
class BandedExamples:
    """Per head some inputs of each band of its largest weight, and the inputs with the largest."""

    grid: Grid
    seed: int
    each: int = EACH
    top: int = TOP
    name: str = "band_examples"
    measures: tuple[Measure, ...] = (EXAMPLE_PEAK,)

    def zero(self, inputs: int) -> State:
        drawn, top = (*self.grid.shape, BINS, self.each), (*self.grid.shape, self.top)
        sums = {
            "count": np.zeros((*self.grid.shape, BINS)),
            "input": np.full(drawn, NOTHING),
            "peak": np.full(drawn, NOTHING),
            "top_input": np.full(top, NOTHING),
            "top_peak": np.full(top, NOTHING),
        }
        records = {
            "peak": np.zeros((inputs, *self.grid.shape), np.float32),
            "number": np.zeros(inputs, np.int64),
        }
        return State(sums, records)

    def update_layer(self, state: State, layer: Layer) -> None:
        """Note the largest weight of every input."""
        state.records["number"][layer.batch.rows] = layer.batch.numbers
        weight = layer.largest(with_self=True).float()
        state.record("peak", (layer.batch.rows, layer.index), weight)

    def condense(self, state: State) -> None:
        """Put the inputs of the shard into their bins."""
        peaks, numbers = state.take("peak").cpu().numpy(), state.records.pop("number")
        order = np.argsort(draw(self.seed, numbers), kind="stable")
        for place in range(len(self.grid.layers)):
            own = self._of_shard(peaks[order, place].T.astype(float), numbers[order].astype(float))
            for name, values in own.items():
                state.sums[name][place] = values

    def _of_shard(
        self, peaks: Float[np.ndarray, "head input"], numbers: Float[np.ndarray, "input"]
    ) -> Sums:
        """The sums of one layer; the inputs come in the order of their hashes."""
        found = {name: values[0] for name, values in self.zero(0).sums.items()}
        for head, own in enumerate(peaks):
            bins = find_bin(own)
            known = np.flatnonzero(own > 0)
            found["count"][head] = np.bincount(bins[known], minlength=BINS)
            places = known[np.argsort(bins[known], kind="stable")]
            sorted_bins = bins[places]
            rank = np.arange(len(places)) - np.searchsorted(sorted_bins, sorted_bins)
            few = rank < self.each
            at = (head, sorted_bins[few], rank[few])
            found["input"][at], found["peak"][at] = numbers[places[few]], own[places[few]]
            best = known[np.argsort(-_rounded(own[known]), kind="stable")][: self.top]
            found["top_input"][head, : len(best)] = numbers[best]
            found["top_peak"][head, : len(best)] = own[best]
        return found

    def merge(self, left: Sums, right: Sums) -> Sums:
        """Of every bin the smallest hashes of both, and the largest weights of both."""
        both = {name: np.concatenate([left[name], right[name]], -1) for name in left}
        hashes = self._hashes(both["input"])
        drawn = np.argsort(hashes, axis=-1, kind="stable")[..., : self.each]
        ties = self._hashes(both["top_input"])
        top = np.lexsort((ties, -_rounded(both["top_peak"])), axis=-1)[..., : self.top]
        chosen = {"input": drawn, "peak": drawn, "top_input": top, "top_peak": top}
        kept = {name: np.take_along_axis(both[name], at, -1) for name, at in chosen.items()}
        return {"count": left["count"] + right["count"], **kept}

    def compute(self, sums: Sums, records: Records) -> Variables:
        """example_input and _peak by layer, head, band and rank; example_share of every band."""
        most = max(self.each, self.top)
        shape = (*self.grid.shape, BANDS + 1, most)
        inputs, peaks = np.full(shape, NOTHING), np.full(shape, np.nan)
        shares = np.full(shape[:-1], np.nan)
        for place in np.ndindex(self.grid.shape):
            if not (total := sums["count"][place].sum()):
                continue
            for band, bins in enumerate(part_bins(sums["count"][place])):
                at = (*place, band)
                shares[at] = sums["count"][place][bins].sum() / total
                self._put(inputs[at], peaks[at], *self._draw(sums, place, bins))
            top = (sums["top_input"][place], sums["top_peak"][place])
            self._put(inputs[*place, TOP_BAND], peaks[*place, TOP_BAND], *top)
            shares[*place, TOP_BAND] = (top[0] >= 0).sum() / total
        bands = Axis("band", range(BANDS + 1))
        ranks = Axis("pick", range(most))
        return {
            "example_input": self.grid.array(inputs.astype(np.int64), bands, ranks),
            "example_peak": self.grid.array(peaks.astype(np.float32), bands, ranks),
            "example_share": self.grid.array(shares, bands),
        }

    def _draw(
        self, sums: Sums, place: tuple[int, ...], bins: slice
    ) -> tuple[Float[np.ndarray, "drawn"], Float[np.ndarray, "drawn"]]:
        """The inputs of smallest hash of some bins, and their largest weights."""
        inputs, peaks = sums["input"][place][bins].ravel(), sums["peak"][place][bins].ravel()
        few = np.argsort(self._hashes(inputs), kind="stable")[: self.each]
        return inputs[few], peaks[few]

    def _put(self, inputs: np.ndarray, peaks: np.ndarray, *found: np.ndarray) -> None:
        """Fill in what was found, the largest weight first."""
        known = found[0] >= 0
        number, peak = (values[known] for values in found)
        order = np.lexsort((self._hashes(number), -_rounded(peak)))
        inputs[: len(number)], peaks[: len(number)] = number[order], peak[order]

    def _hashes(self, inputs: Float[np.ndarray, "*any"]) -> np.ndarray:
        """The hashes of inputs; where there is none, the largest there is."""
        hashes = draw(self.seed, inputs.astype(np.int64))
        return np.where(inputs >= 0, hashes, np.uint64(2**64 - 1))


def _rounded(peaks: Float[np.ndarray, "*any"]) -> Float[np.ndarray, "*any"]:
    """Largest weights as far as they are compared: rounding of the network must not order inputs.

    Equal ones are in the order of their hashes.
    """
    return np.round(peaks, DIGITS)


def find_bin(peaks: Float[np.ndarray, "*any"]) -> Int[np.ndarray, "*any"]:
    """The fine bin of a largest weight, by its log odds."""
    inside = np.clip(peaks, 1e-9, 1 - 1e-9)
    odds = np.log(inside / (1 - inside))
    return np.clip(np.floor((odds - LOW) / (HIGH - LOW) * BINS), 0, BINS - 1).astype(np.int64)


def part_bins(count: Float[np.ndarray, "bin"]) -> Iterator[slice]:
    """The bins of every band: cut where the share of inputs below is nearest to a multiple of 1/5.

    A bin is never cut: where one has more than its share, a band beside it may be empty.
    """
    below = np.concatenate([[0.0], np.cumsum(count)])
    wanted = below[-1] * np.arange(1, BANDS) / BANDS
    cuts = [int(np.abs(below - each).argmin()) for each in wanted]
    for start, stop in zip([0, *cuts], [*cuts, len(count)], strict=True):
        yield slice(start, stop)
