"""Banded examples and sampled tokens equal those of a reader that keeps everything."""

import math
from dataclasses import replace
from functools import reduce

import numpy as np
import pytest
import torch

from headscope.metrics.metric import Grid, Sums
from headscope.metrics.records.drawn import (
    BINS,
    HIGH,
    LOW,
    BandedExamples,
    TokenSample,
    draw,
    part_bins,
)
from headscope.results.records import BANDS, TOP_BAND
from tests.metrics.inputs import plain_batch

GRID = Grid((0, 1), 2)
METRIC = BandedExamples(GRID, seed=3, each=2, top=4)
COUNT = 60


def made_peaks(seed: int = 0) -> np.ndarray:
    """Largest weights of inputs, layers and heads: spread, sharp, flat, and with equal ones."""
    random = np.random.default_rng(seed)
    odds = random.normal(size=(COUNT, 2, 2)) * [[[4, 0.2], [1, 2]]] + [[[0, -4], [6, 0]]]
    peaks = (1 / (1 + np.exp(-odds))).astype(np.float32)
    peaks[5:9, 0, 0] = 0.75
    peaks[3] = 0.0  # an input of a single token
    return peaks


def shard(metric: BandedExamples, peaks: np.ndarray, numbers: list[int]) -> Sums:
    state = metric.zero(len(numbers))
    state.records["peak"][:] = peaks[numbers]
    state.records["number"][:] = numbers
    metric.condense(state)
    assert not state.records
    return state.sums


def plain_bin(peak: float) -> int:
    inside = min(max(peak, 1e-9), 1 - 1e-9)
    share = (math.log(inside / (1 - inside)) - LOW) / (HIGH - LOW)
    return min(max(math.floor(share * BINS), 0), BINS - 1)


def plain_examples(peaks: np.ndarray) -> dict[int, list[int]]:
    """The inputs of every band of one head, by a reader that has all of them at once."""

    def rank(number: int) -> tuple[float, int]:
        return -round(float(peaks[number]), 4), int(draw(METRIC.seed, number))

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
        drawn = sorted(inside, key=lambda number: int(draw(METRIC.seed, number)))[: METRIC.each]
        found[band] = sorted(drawn, key=rank)
    found[TOP_BAND] = sorted(known, key=rank)[: METRIC.top]
    return found


@pytest.mark.parametrize("cuts", [[], [1], [7, 30, 31], [50, 20]])
def test_bands_equal_a_reader_that_keeps_everything(cuts: list[int]) -> None:
    peaks = made_peaks()
    order = np.random.default_rng(len(cuts)).permutation(COUNT)
    parts = [part.tolist() for part in np.split(order, sorted(cuts))]
    sums = reduce(METRIC.merge, [shard(METRIC, peaks, part) for part in parts if part])
    found = METRIC.compute(sums, lambda: iter(()))
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
    mine, theirs = (
        metric.compute(shard(metric, peaks, numbers), lambda: iter(()))
        for metric in (METRIC, other)
    )
    inputs = [found["example_input"].values for found in (mine, theirs)]
    assert (inputs[0][:, :, :TOP_BAND] != inputs[1][:, :, :TOP_BAND]).any()
    np.testing.assert_array_equal(inputs[0][:, :, TOP_BAND], inputs[1][:, :, TOP_BAND])


def test_a_draw_is_even_and_depends_on_every_part() -> None:
    drawn = draw(0, np.arange(4000), 5)
    share = drawn.astype(float) / 2**64
    assert len(np.unique(drawn)) == 4000
    assert np.abs(np.histogram(share, 8, (0, 1))[0] / 500 - 1).max() < 0.2
    for other in (draw(1, np.arange(4000), 5), draw(0, np.arange(4000), 6)):
        assert abs(np.corrcoef(share, other.astype(float))[0, 1]) < 0.05


@pytest.mark.parametrize("count", [5, 100])
def test_sampled_tokens_are_those_of_smallest_hash(count: int) -> None:
    metric = TokenSample(seed=9, count=count)
    lengths = [4, 1, 9, 6, 3]
    states = []
    for rows in ([0, 2], [3], [1, 4]):
        width = max(lengths[row] for row in rows)
        mask = torch.tensor([[place < lengths[row] for place in range(width)] for row in rows])
        state = metric.zero(len(rows))
        metric.update_text(state, replace(plain_batch(mask), numbers=np.array(rows)))
        states.append(state.sums)
    found = metric.compute(reduce(metric.merge, states), lambda: iter(()))
    tokens = [(row, place) for row, length in enumerate(lengths) for place in range(1, length)]
    wanted = sorted(tokens, key=lambda token: int(draw(9, *token)))[:count]
    own = list(zip(found["sample_input"].values, found["sample_position"].values, strict=True))
    assert own[: len(wanted)] == wanted
    assert all(token == (-1, -1) for token in own[len(wanted) :])
