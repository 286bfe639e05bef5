"""Which inputs show what a head does: of every head the first few of every group, by some order.

```
top       one group, the largest weights first
bands     groups of nearly equal frequency of the largest weight, in the order of a seeded hash
sample    one group of tokens for all heads, in the order of a seeded hash
```

The top inputs alone show a head at its surest, which may be rare. So the inputs are also parted
into bands, from those where the head does next to nothing to those where it is sure:

```
largest weight    0 ···|·|·|||||||||||||||||||||·|··|···|····1      fine bins, the same for all
inputs                 ░░░▒▒▒▒▒▓▓▓▓▓▓▓█████████
bands                  0  1    2      3        4                    of a fifth each, about
```

Of every bin are kept how many inputs fall into it and the few with the smallest hash. The smallest
of a band are among the smallest of its bins: the draw is that of all inputs of the band, however
the corpus is cut into batches and shards, and memory does not grow with it.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from headscope.metrics.hashing import seeded_hash
from headscope.metrics.metric import Axis, Grid, Metric, Sums, Variables, label
from headscope.observe.batch import AnnotatedBatch
from headscope.observe.layer import Layer
from headscope.results.measure import Measure
from headscope.results.records import BANDS, TOP_BAND

POINTS = 100
BINS = 200
LOW, HIGH = -7.0, 9.5  # log odds of the largest weight: finer where it is close to 0 or 1
EACH, TOP = 3, 10  # examples of a band, and of the very top
DIGITS = 4  # of a largest weight that count where rounding must not order inputs
NO_INPUT = -1

# The order of an entry is one number: its group, then its place among those of the group.
PLACE_BITS = 55
LAST_PLACE = (1 << PLACE_BITS) - 1  # of an entry that is none
_ROUNDED_BITS, _EXACT_BITS = 14, 30  # of a weight of up to one, in 1/10,000 and as a float32

SAMPLE_INPUT = Measure(
    "sample_input",
    title="Sampled tokens",
    meaning="The input that a sampled token is from; its place there beside it.",
    formula="the tokens with the smallest seeded hashes of (input, place), the first of every "
    "input left out",
    reference="–",
    unit="",
    axes={"point": "Token"},
    with_errors=False,
    also=("sample_position",),
)
EXAMPLE_PEAK = Measure(
    "example_peak",
    title="Largest weight of an example",
    meaning="The head's largest weight in an input that is kept as an example: one of those with "
    "the very largest (the last band), or drawn from a band of equal frequency.",
    formula="max a[i, j] over the pairs that count; the inputs with the largest, and in each fifth "
    "of all inputs by it those of smallest seeded hash",
    reference="Vig & Belinkov 2019, Tables 1–3; Luger, Kamath et al. 2026",
    more="is surer of the pair",
    axes={"band": "Band", "pick": "Rank"},
    with_errors=False,
    also=("example_input", "example_share"),
)


def first_of_groups(entries: Sums, count: int, groups: int = 1) -> Sums:
    """The first entries of every group, which must have at least `count` of them each.

    Entries lie along the last axis of every tensor. "order" is the group, and below it the place.
    """
    order, places = entries["order"].sort(dim=-1)
    if groups == 1:
        places = places[..., :count]
    else:
        group = order >> PLACE_BITS
        within = torch.arange(group.shape[-1], device=group.device)
        is_first = within - torch.searchsorted(group, group) < count
        places = places[is_first].unflatten(0, (*order.shape[:-1], groups * count))
    return {name: values.gather(-1, places) for name, values in entries.items()}


@dataclass(frozen=True)
class HeadExamples(Metric):
    """Of every head the inputs with the largest weights, and some of every band of them.

    Weights are compared as they are, or rounded to DIGITS, so that rounding of the network does not
    order inputs. Equal ones are in the order of their hashes.
    """

    grid: Grid
    seed: int
    top: int = TOP
    per_band: int = 0  # of every band; none where bands are not wanted
    with_self: bool = True  # whether a token's weight on itself may be the largest
    is_rounded: bool = False
    name: str = "examples"
    measures: tuple[Measure, ...] = (EXAMPLE_PEAK,)

    def zero(self) -> Sums:
        sums = {"count": torch.zeros(*self.grid.shape, self._bins, dtype=torch.float64)}
        sums |= _named("top", self._no_entries(1, self.top))
        if self.per_band:
            sums |= _named("drawn", self._no_entries(BINS, self.per_band))
        return sums

    @property
    def _bins(self) -> int:
        return BINS if self.per_band else 1

    def _no_entries(self, groups: int, count: int) -> Sums:
        group = torch.arange(groups).repeat_interleave(count)
        shape = (*self.grid.shape, groups * count)
        return {
            "order": (group << PLACE_BITS | LAST_PLACE).repeat(*self.grid.shape, 1),
            "input": torch.full(shape, NO_INPUT),
            "peak": torch.zeros(shape),
        }

    def see_layer(self, sums: Sums, layer: Layer) -> None:
        """Let the inputs of a batch compete with those kept so far."""
        numbers, hashes = layer.batch.once_on_host(f"hashes {self.seed}", self._numbers)
        peaks = layer.largest(with_self=self.with_self).float().T  # head input
        is_seen = peaks > 0
        entries = {
            "order": torch.where(is_seen, self._by_weight(peaks, hashes), LAST_PLACE),
            "input": torch.where(is_seen, numbers, NO_INPUT),
            "peak": peaks,
        }
        self._compete(sums, "top", layer.index, entries)
        if not self.per_band:
            sums["count"][layer.index, :, 0] += is_seen.sum(-1)
            return
        bins = find_bin(peaks)
        hash_rank = torch.where(is_seen, hashes >> (63 - PLACE_BITS), LAST_PLACE)
        self._compete(
            sums, "drawn", layer.index, entries | {"order": bins << PLACE_BITS | hash_rank}
        )
        sums["count"][layer.index].scatter_add_(-1, bins, is_seen.double())

    def _numbers(self, batch: AnnotatedBatch) -> tuple[Tensor, Tensor]:
        hashes = seeded_hash(self.seed, batch.numbers) >> np.uint64(1)  # of 63 bits
        return torch.from_numpy(batch.numbers), torch.from_numpy(hashes.astype(np.int64))

    def _compete(self, sums: Sums, table: str, index: int, entries: Sums) -> None:
        so_far = {name: values[index] for name, values in _table(sums, table).items()}
        for name, values in self._first(table, so_far, entries).items():
            sums[f"{table}_{name}"][index] = values

    def _first(self, table: str, left: Sums, right: Sums) -> Sums:
        both = {name: torch.cat([left[name], right[name]], dim=-1) for name in left}
        if table == "top":
            return first_of_groups(both, self.top)
        return first_of_groups(both, self.per_band, BINS)

    def _by_weight(
        self, peaks: Float[Tensor, "head input"], hashes: Int[Tensor, "input"]
    ) -> Int[Tensor, "head input"]:
        """Sort key of a largest weight: larger weights first, then smaller hashes."""
        if self.is_rounded:
            bits, weight = _ROUNDED_BITS, (peaks.double() * 10**DIGITS).round().long()
        else:  # weights are not negative, so that their bits are in their order
            bits, weight = _EXACT_BITS, peaks.contiguous().view(torch.int32).long()
        room = PLACE_BITS - bits
        return ((1 << bits) - 1 - weight) << room | hashes >> (63 - room)

    def merge(self, left: Sums, right: Sums) -> Sums:
        """The first entries of both sides in every group."""
        sums = {"count": left["count"] + right["count"]}
        for table in ("top", "drawn") if self.per_band else ("top",):
            sums |= _named(table, self._first(table, _table(left, table), _table(right, table)))
        return sums

    def compute(self, sums: Sums) -> Variables:
        """example_input and _peak by layer, head, band and rank; example_share of every band."""
        arrays = {name: values.numpy() for name, values in sums.items()}
        bands = Axis("band", range(BANDS + 1) if self.per_band else (TOP_BAND,))
        picks = Axis("pick", range(max(self.per_band, self.top)))
        shape = (*self.grid.shape, len(bands), len(picks))
        inputs = np.full(shape, NO_INPUT, np.int64)
        peaks, shares = np.full(shape, np.nan, np.float32), np.full(shape[:-1], np.nan)
        for head in np.ndindex(self.grid.shape):
            count = arrays["count"][head]
            if not count.sum():
                continue
            top = arrays["top_input"][head] != NO_INPUT
            top_count = int(top.sum())
            inputs[*head, -1, :top_count] = arrays["top_input"][head][top]
            peaks[*head, -1, :top_count] = arrays["top_peak"][head][top]
            shares[*head, -1] = top_count / count.sum()
            for band, bins in enumerate(part_bins(count) if self.per_band else ()):
                drawn = self._draw(arrays, head, bins)
                inputs[*head, band, : len(drawn)] = arrays["drawn_input"][head][drawn]
                peaks[*head, band, : len(drawn)] = arrays["drawn_peak"][head][drawn]
                shares[*head, band] = count[bins].sum() / count.sum()
        return {
            "example_input": self.grid.array(inputs, bands, picks),
            "example_peak": self.grid.array(peaks, bands, picks),
            "example_share": self.grid.array(shares, bands),
        }

    def _draw(
        self, arrays: dict[str, np.ndarray], head: tuple[int, ...], bins: slice
    ) -> Int[np.ndarray, "drawn"]:
        """Places of the inputs of smallest hash in some bins, the largest weight first."""
        places = np.arange(bins.start * self.per_band, bins.stop * self.per_band)
        places = places[arrays["drawn_input"][head][places] != NO_INPUT]
        hashes = seeded_hash(self.seed, arrays["drawn_input"][head][places])
        few = np.argsort(hashes, kind="stable")[: self.per_band]
        peaks = arrays["drawn_peak"][head][places[few]].astype(float)
        weight = np.round(peaks, DIGITS) if self.is_rounded else peaks
        return places[few][np.lexsort((hashes[few], -weight))]


def _named(table: str, entries: Sums) -> Sums:
    return {f"{table}_{name}": values for name, values in entries.items()}


def _table(sums: Sums, table: str) -> Sums:
    return {name: sums[f"{table}_{name}"] for name in ("order", "input", "peak")}


@dataclass(frozen=True)
class TokenSample(Metric):
    """The `count` tokens of smallest seeded hash; the first of every input is never drawn."""

    seed: int
    count: int = POINTS
    name: str = "sample"
    measures: tuple[Measure, ...] = (SAMPLE_INPUT,)

    def zero(self) -> Sums:
        none = torch.full((self.count,), NO_INPUT)
        order = torch.full((self.count,), LAST_PLACE)
        return {"order": order, "input": none, "position": none.clone()}

    def see_text(self, sums: Sums, batch: AnnotatedBatch) -> None:
        """Let the tokens of a batch compete with those drawn so far."""
        order, numbers, position = batch.once_on_host(f"tokens {self.seed}", self._tokens)
        tokens = {"order": order, "input": numbers, "position": position}
        sums.update(self.merge(sums, tokens))

    def _tokens(self, batch: AnnotatedBatch) -> tuple[Tensor, Tensor, Tensor]:
        row, position = np.nonzero(batch.mask.numpy())
        row, position = row[position > 0], position[position > 0]
        numbers = batch.numbers[row]
        order = seeded_hash(self.seed, numbers, position) >> np.uint64(64 - PLACE_BITS)
        return (
            torch.from_numpy(order.astype(np.int64)),
            torch.from_numpy(numbers),
            torch.from_numpy(position),
        )

    def merge(self, left: Sums, right: Sums) -> Sums:
        """The smallest hashes of both."""
        both = {name: torch.cat([left[name], right[name]]) for name in left}
        return first_of_groups(both, self.count)

    def compute(self, sums: Sums) -> Variables:
        """sample_input and sample_position by point; -1 where the corpus has fewer tokens."""
        points = Axis("point", range(self.count))
        return {f"sample_{name}": label(sums[name], points) for name in ("input", "position")}


def find_bin(peaks: Float[Tensor, "*any"]) -> Int[Tensor, "*any"]:
    """The fine bin of a largest weight, by its log odds."""
    inside = peaks.double().clamp(1e-9, 1 - 1e-9)
    odds = (inside / (1 - inside)).log()
    return ((odds - LOW) / (HIGH - LOW) * BINS).floor().clamp(0, BINS - 1).long()


def part_bins(count: Float[np.ndarray, "bin"]) -> Iterator[slice]:
    """The bins of every band: cut where the share of inputs below is nearest to a multiple of 1/5.

    A bin is never cut: where one has more than its share, a band beside it may be empty.
    """
    below = np.concatenate([[0.0], np.cumsum(count)])
    targets = below[-1] * np.arange(1, BANDS) / BANDS
    cuts = [int(np.abs(below - share).argmin()) for share in targets]
    for start, stop in zip([0, *cuts], [*cuts, len(count)], strict=True):
        yield slice(start, stop)
