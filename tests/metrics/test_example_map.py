"""The example is the input nearest to the wanted length, whatever the batches."""

from collections.abc import Sequence
from functools import reduce

import numpy as np
import torch
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from headscope.metrics import ExampleMap, Grid, Sums
from headscope.observe import SPECIAL, AnnotatedBatch
from tests.references.random_attention import matrix_layer

GRID = Grid((0, 1), 2)
SEP = SPECIAL.index("sep")


def decode(ids: Sequence[int]) -> list[str]:
    return [f"t{index}" for index in ids]


def batch_of(numbers: list[int], lengths: list[int], separator: int) -> AnnotatedBatch:
    width = max(lengths)
    mask = torch.arange(width) < torch.tensor(lengths)[:, None]
    special = torch.full(mask.shape, -1)
    special[:, separator:] = torch.where(torch.arange(width)[separator:] == separator, SEP, -1)
    token = torch.tensor(numbers)[:, None] * 1000 + torch.arange(width)
    labels = {"special": special, "token": token}
    rows = np.arange(len(numbers))
    return AnnotatedBatch(
        np.array(numbers), rows, torch.from_numpy(rows), mask, ~mask & mask, False, labels
    )


def weights_of(batch: AnnotatedBatch, layer: int) -> torch.Tensor:
    """Weights that tell where they come from: input, layer, head, query and key."""
    rows, width = batch.mask.shape
    parts = torch.meshgrid(
        torch.tensor(batch.numbers), torch.arange(2), torch.arange(width), torch.arange(width),
        indexing="ij",
    )  # fmt: skip
    number, head, query, key = (part.double() for part in parts)
    assert rows == len(batch.numbers)
    return number * 1e5 + layer * 5e4 + head * 1e4 + query * 100 + key


def observe(metric: ExampleMap, batches: list[AnnotatedBatch]) -> Sums:
    sums = metric.zero()
    for batch in batches:
        metric.see_text(sums, batch)
        for layer in range(2):
            metric.see_layer(sums, matrix_layer(layer, batch, weights_of(batch, layer)))
    return sums


@given(st.lists(st.integers(2, 14), min_size=1, max_size=8), st.integers(1, 8), st.integers(1, 12))
def test_the_nearest_length_wins_and_the_earlier_input_on_a_tie(
    lengths: list[int], cut: int, separator: int
) -> None:
    metric = ExampleMap(GRID, decode, size=6)
    numbers = list(range(len(lengths)))
    groups = [slice(0, cut), slice(cut, None)]
    batches = [
        batch_of(numbers[g], lengths[g], min(separator, max(lengths[g]) - 1))
        for g in groups
        if lengths[g]
    ]
    found = metric.compute(observe(metric, batches))["example_map"]
    apart = [observe(metric, [batch]) for batch in batches]
    merged = metric.compute(reduce(metric.merge, apart[::-1], metric.zero()))["example_map"]
    xr.testing.assert_identical(merged, found)
    number = min(numbers, key=lambda n: (abs(lengths[n] - 6), n))
    assert found.attrs["sentence"] == number
    ids = [int(str(token).partition("t")[2]) - 1000 * number for token in found["query"].values]
    assert ids[0] == 0 and len(ids) == min(6, lengths[number])
    assert ids == sorted(set(ids)) and ids[-1] < lengths[number]
    for layer, head, query, key in np.ndindex(found.shape):
        expected = number * 1e5 + layer * 5e4 + head * 1e4 + ids[query] * 100 + ids[key]
        assert found.values[layer, head, query, key] == expected


def test_the_separator_of_a_long_input_is_shown() -> None:
    metric = ExampleMap(GRID, decode, size=6)
    found = metric.compute(observe(metric, [batch_of([0], [40], 25)]))
    assert found["example_map"]["query"].values.tolist() == [
        "0 t0", "1 t21", "2 t22", "3 t23", "4 t24", "5 t25",
    ]  # fmt: skip
