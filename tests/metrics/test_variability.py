"""Variability over the inputs of smallest hash, however the corpus is cut."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headscope.metrics import Grid, Sums, seeded_hash
from headscope.metrics.variability import Variability
from headscope.observe import BlockLayer
from tests.references import vig2019 as plain
from tests.references.random_attention import (
    HEADS,
    Input,
    in_blocks,
    make_batch,
    make_layer,
    random_input,
)

GRID = Grid((0, 1), HEADS)
SEEDS = st.integers(0, 2**32 - 1)


def random_inputs(seed: int, is_causal: bool, count: int) -> list[Input]:
    rng = np.random.default_rng(seed)
    return [random_input(rng, is_causal, len(GRID.layers)) for _ in range(count)]


def see_batch(metric: Variability, sums: Sums, inputs: list[Input], first: int) -> None:
    """Show a padded batch; the first layer whole, the second some rows at a time."""
    batch = make_batch(inputs, first)
    metric.see_text(sums, batch)
    metric.see_layer(sums, make_layer(inputs, batch, 0))
    metric.see_layer(sums, in_blocks(make_layer(inputs, batch, 1)))


def see_shard(metric: Variability, inputs: list[Input], first: int, size: int) -> Sums:
    """The sums of a shard that is read in batches of so many inputs."""
    sums = metric.zero()
    for start in range(0, len(inputs), size):
        see_batch(metric, sums, inputs[start : start + size], first + start)
    return metric.shrink(sums)


def cut(inputs: list[Input], size: int) -> Iterator[tuple[int, list[Input]]]:
    for start in range(0, len(inputs), size):
        yield start, inputs[start : start + size]


@given(
    SEEDS,
    st.booleans(),
    st.integers(1, 14),
    st.integers(1, 6),
    st.integers(1, 6),
    st.integers(1, 8),
)
@settings(max_examples=50, deadline=None)
def test_a_large_corpus_is_that_of_its_inputs_of_smallest_hash(
    seed: int, is_causal: bool, count: int, batch: int, shard: int, most: int
) -> None:
    inputs = random_inputs(seed, is_causal, count)
    metric = Variability(GRID, is_causal, size=5, seed=seed, most_inputs=most)
    sums = metric.zero()
    for first, part in cut(inputs, shard):
        sums = metric.merge(sums, see_shard(metric, part, first, batch))
    variables = metric.compute(sums)
    numbers = sorted(range(count), key=lambda number: int(seeded_hash(seed, number)))[:most]
    for layer in GRID.layers:
        chosen = [of_layer(inputs[number], layer) for number in numbers]
        for head in range(HEADS):
            value, error = plain.variability(chosen, head, size=5)
            at = {"layer": layer, "head": head}
            np.testing.assert_allclose(variables["variability"].sel(at), value, atol=2e-6)
            np.testing.assert_allclose(
                variables["variability_se"].sel(at), error, atol=2e-6, rtol=1e-4
            )


def of_layer(text: Input, layer: int) -> Input:
    """The input with one of its layers alone, for a plain reader."""
    return replace(text, weights=text.weights[layer : layer + 1])


@given(SEEDS, st.booleans(), st.integers(1, 20), st.integers(1, 20), st.integers(1, 20))
@settings(max_examples=30, deadline=None)
def test_batches_and_shards_do_not_change_a_bit(
    seed: int, is_causal: bool, batch: int, shard: int, most: int
) -> None:
    inputs = random_inputs(seed, is_causal, 20)
    metric = Variability(GRID, is_causal, size=5, most_inputs=most)
    at_once = metric.compute(see_shard(metric, inputs, 0, len(inputs)))
    shards = [see_shard(metric, part, first, batch) for first, part in cut(inputs, shard)]
    sums = metric.zero()
    for part in reversed(shards):
        sums = metric.merge(part, sums)
    for name, values in metric.compute(sums).items():
        np.testing.assert_array_equal(values, at_once[name], err_msg=name)


def test_a_shard_holds_no_more_than_its_inputs_or_the_limit() -> None:
    metric = Variability(GRID, is_causal=True, most_inputs=6)
    for count, held in ((0, 0), (4, 4), (9, 6)):
        sums = see_shard(metric, random_inputs(0, True, count), 0, 3)
        assert {len(values) for values in sums.values()} == {held}


def test_rows_are_computed_only_for_inputs_that_are_held() -> None:
    """As in most batches of a large corpus."""
    inputs = random_inputs(1, True, 8)
    metric = Variability(GRID, is_causal=True, most_inputs=1)
    smallest = min(range(8), key=lambda number: int(seeded_hash(0, number)))
    sums = metric.zero()
    see_batch(metric, sums, [inputs[smallest]], smallest)
    other = (smallest + 1) % 8
    batch = make_batch([inputs[other]], other)
    metric.see_text(sums, batch)

    def rows_of(start: int, stop: int) -> torch.Tensor:
        raise AssertionError("nothing of this batch is held")

    metric.see_layer(sums, BlockLayer(0, batch, rows_of, block=2))
    assert sums["hash"].tolist() == [int(seeded_hash(0, smallest)) >> 1]
