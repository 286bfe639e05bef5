"""Examples and sampled tokens equal those of a reader that keeps everything."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headscope.metrics import (
    BINS,
    DIGITS,
    HIGH,
    LOW,
    PLACE_BITS,
    Grid,
    HeadExamples,
    Sums,
    TokenSample,
    first_of_groups,
    part_bins,
    seeded_hash,
)
from headscope.observe import AnnotatedBatch
from headscope.results.records import BANDS, TOP_BAND
from tests.references import vig2019 as plain
from tests.references.random_attention import (
    HEADS,
    LAYERS,
    make_batch,
    make_layer_of,
    plain_batch,
    random_input,
)

GRID = Grid((0, 1), 2)
METRIC = HeadExamples(GRID, seed=3, per_band=2, top=4, is_rounded=True)
COUNT = 60


@dataclass(frozen=True)
class Peaks:
    """A layer that knows nothing but the largest weight of every input."""

    index: int
    batch: AnnotatedBatch
    values: torch.Tensor

    def largest(self, *, with_self: bool) -> torch.Tensor:
        return self.values


def made_peaks(seed: int = 0) -> np.ndarray:
    """Largest weights of inputs, layers and heads: spread, sharp, flat, and with equal ones."""
    random = np.random.default_rng(seed)
    odds = random.normal(size=(COUNT, 2, 2)) * [[[4, 0.2], [1, 2]]] + [[[0, -4], [6, 0]]]
    peaks = (1 / (1 + np.exp(-odds))).astype(np.float32)
    peaks[5:9, 0, 0] = 0.75
    peaks[3] = 0.0  # an input of a single token
    return peaks


def shard(metric: HeadExamples, peaks: np.ndarray, numbers: Sequence[int], size: int = 7) -> Sums:
    """The sums after some inputs, of which a batch has `size`."""
    sums = metric.zero()
    for start in range(0, len(numbers), size):
        rows = np.array(numbers[start : start + size])
        batch = replace(plain_batch(torch.ones(len(rows), 1, dtype=torch.bool)), numbers=rows)
        for layer in range(peaks.shape[1]):
            seen = Peaks(layer, batch, torch.from_numpy(peaks[rows, layer]))
            metric.see_layer(sums, seen)  # pyright: ignore[reportArgumentType]
    return sums


def plain_bin(peak: float) -> int:
    inside = min(max(peak, 1e-9), 1 - 1e-9)
    share = (math.log(inside / (1 - inside)) - LOW) / (HIGH - LOW)
    return min(max(math.floor(share * BINS), 0), BINS - 1)


def plain_examples(peaks: np.ndarray) -> dict[int, list[int]]:
    """The inputs of every band of one head, by a reader that has all of them at once."""

    def rank(number: int) -> tuple[float, int]:
        return -round(float(peaks[number]), DIGITS), int(seeded_hash(METRIC.seed, number))

    known = [number for number in range(COUNT) if peaks[number] > 0]
    bins = {number: plain_bin(float(peaks[number])) for number in known}
    cuts = [0]
    for band in range(1, BANDS):
        sizes = [sum(b < cut for b in bins.values()) for cut in range(BINS + 1)]
        gaps = [abs(size - len(known) * band / BANDS) for size in sizes]
        cuts.append(gaps.index(min(gaps)))
    found = {}
    for band, (low, high) in enumerate(zip(cuts, [*cuts[1:], BINS], strict=True)):
        inside = [number for number in known if low <= bins[number] < high]
        drawn = sorted(inside, key=lambda number: int(seeded_hash(METRIC.seed, number)))
        drawn = drawn[: METRIC.per_band]
        found[band] = sorted(drawn, key=rank)
    found[TOP_BAND] = sorted(known, key=rank)[: METRIC.top]
    return found


@pytest.mark.parametrize("cuts", [[], [1], [7, 30, 31], [50, 20]])
def test_bands_equal_a_reader_that_keeps_everything(cuts: list[int]) -> None:
    peaks = made_peaks()
    order = np.random.default_rng(len(cuts)).permutation(COUNT)
    parts = [part.tolist() for part in np.split(order, sorted(cuts))]
    sums = reduce(METRIC.merge, [shard(METRIC, peaks, part) for part in parts if part])
    found = METRIC.compute(sums)
    for layer, head in np.ndindex(2, 2):
        wanted = plain_examples(peaks[:, layer, head])
        for band, numbers in wanted.items():
            own = found["example_input"].values[layer, head, band]
            assert own[own >= 0].tolist() == numbers
            own = found["example_peak"].values[layer, head, band]
            assert own[~np.isnan(own)].tolist() == peaks[numbers, layer, head].tolist()


def test_bands_have_nearly_equal_counts_and_no_bin_is_cut() -> None:
    count = np.random.default_rng(0).integers(0, 9, BINS).astype(float)
    parts = list(part_bins(count))
    assert [part.start for part in parts[1:]] == [part.stop for part in parts[:-1]]
    sizes = [count[part].sum() for part in parts]
    assert sum(sizes) == count.sum() and len(parts) == BANDS
    assert max(sizes) - min(sizes) <= 2 * count.max()
    heavy = np.where(np.arange(BINS) == 3, 100.0, 0.0)
    assert sorted(heavy[part].sum() for part in part_bins(heavy)) == [0, 0, 0, 0, 100]


def test_another_seed_draws_others_from_the_bands_and_the_same_top() -> None:
    peaks, numbers = made_peaks(), list(range(COUNT))
    peaks = np.clip(peaks, 0, 0.9) + np.arange(COUNT)[:, None, None] / 1000  # no two are equal
    other = replace(METRIC, seed=4)
    mine, theirs = (metric.compute(shard(metric, peaks, numbers)) for metric in (METRIC, other))
    inputs = [found["example_input"].values for found in (mine, theirs)]
    assert (inputs[0][:, :, :TOP_BAND] != inputs[1][:, :, :TOP_BAND]).any()
    np.testing.assert_array_equal(inputs[0][:, :, TOP_BAND], inputs[1][:, :, TOP_BAND])


@given(st.integers(0, 2**32 - 1), st.integers(1, 9), st.integers(1, 40))
@settings(max_examples=40)
def test_whatever_the_batches_and_shards_the_top_is_that_of_all_inputs(
    seed: int, size: int, cut: int
) -> None:
    """Weights are compared exactly; of equal ones the smaller hash is first."""
    metric, rng = HeadExamples(GRID, seed=5, top=4), np.random.default_rng(seed)
    peaks = rng.integers(0, 6, (41, 2, 2)).astype(np.float32) / 5 * (1 - 1e-6)
    peaks[:20] -= rng.random((20, 2, 2)).astype(np.float32) * 1e-5
    order = rng.permutation(41)
    sums = metric.merge(
        shard(metric, peaks, order[:cut].tolist(), size), shard(metric, peaks, order[cut:].tolist())
    )
    variables = metric.compute(sums)
    for head in np.ndindex(2, 2):
        own = peaks[:, *head]
        seen = [number for number in range(41) if own[number] > 0]
        seen.sort(key=lambda number: (-float(own[number]), int(seeded_hash(5, number))))
        inputs = variables["example_input"].sel(band=TOP_BAND).values[head]
        assert inputs[inputs >= 0].tolist() == seen[:4]
        expected = min(4, len(seen)) / len(seen) if seen else np.nan
        share = variables["example_share"].sel(band=TOP_BAND).values[head]
        np.testing.assert_allclose(share, expected)


@pytest.mark.parametrize("with_self", [False, True])
@pytest.mark.parametrize("kind", LAYERS)
def test_examples_have_the_largest_kept_weights(kind: str, with_self: bool) -> None:
    for seed in range(6):
        rng = np.random.default_rng(seed)
        inputs = [random_input(rng, seed % 2 == 0) for _ in range(5)]
        metric = HeadExamples(Grid((0,), HEADS), seed=0, top=3, with_self=with_self)
        sums = metric.zero()
        metric.see_layer(sums, make_layer_of(kind, inputs, make_batch(inputs)))
        variables = metric.compute(sums)
        for head in range(HEADS):
            wanted = plain.exemplars(inputs, head, with_self)[:3]
            peaks = variables["example_peak"].values[0, head, 0]
            np.testing.assert_allclose(
                peaks[~np.isnan(peaks)], [weight for weight, *_ in wanted], atol=1e-6
            )
            for number, peak in zip(
                variables["example_input"].values[0, head, 0], peaks, strict=True
            ):
                if number >= 0:  # of equal weights any may be first
                    own = {n: weight for weight, n, *_ in plain.exemplars(inputs, head, with_self)}
                    assert own[number] == pytest.approx(peak, abs=1e-6)


def test_every_group_keeps_its_first_entries() -> None:
    group, place = torch.tensor([1, 0, 1, 0, 1, 0, 1]), torch.tensor([5, 9, 1, 2, 7, 3, 0])
    entries = {"order": (group << PLACE_BITS | place)[None], "place": place[None].double()}
    kept = first_of_groups(entries, count=2, groups=2)
    assert kept["place"].tolist() == [[2, 3, 0, 1]]
    assert kept["order"].tolist() == [(group << PLACE_BITS | place)[[3, 5, 6, 2]].tolist()]


def test_a_hash_is_even_and_depends_on_every_part() -> None:
    hashes = seeded_hash(0, np.arange(4000), 5)
    share = hashes.astype(float) / 2**64
    assert len(np.unique(hashes)) == 4000
    assert np.abs(np.histogram(share, 8, (0, 1))[0] / 500 - 1).max() < 0.2
    for other in (seeded_hash(1, np.arange(4000), 5), seeded_hash(0, np.arange(4000), 6)):
        assert abs(np.corrcoef(share, other.astype(float))[0, 1]) < 0.05


@pytest.mark.parametrize("count", [5, 100])
def test_sampled_tokens_are_those_of_smallest_hash(count: int) -> None:
    metric = TokenSample(seed=9, count=count)
    lengths = [4, 1, 9, 6, 3]
    shards = []
    for rows in ([0, 2], [3], [1, 4]):
        width = max(lengths[row] for row in rows)
        mask = torch.tensor([[place < lengths[row] for place in range(width)] for row in rows])
        sums = metric.zero()
        metric.see_text(sums, replace(plain_batch(mask), numbers=np.array(rows)))
        shards.append(sums)
    found = metric.compute(reduce(metric.merge, shards))
    tokens = [(row, place) for row, length in enumerate(lengths) for place in range(1, length)]
    wanted = sorted(tokens, key=lambda token: int(seeded_hash(9, *token)))[:count]
    own = list(zip(found["sample_input"].values, found["sample_position"].values, strict=True))
    assert own[: len(wanted)] == wanted
    assert all(token == (-1, -1) for token in own[len(wanted) :])
