"""Blocks of rows, however many, give what the whole matrix gives; null filter and padding too."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headscope.errors import RunError
from headscope.observe.layer import ObservedLayer
from headscope.observe.reduced import ReducedLayer
from headscope.observe.rows import GrowingLayer, sum_rows
from tests.metrics.inputs import make_batch, make_layer, random_input

SUMS = ("rows", "columns", "to_null", "everything", "nats", "pair_sums", "total", "counted")


def in_blocks(layer: ObservedLayer, block: int) -> ReducedLayer:
    growing = GrowingLayer(layer.batch)
    for start in range(0, layer.weights.shape[2], block):
        weights = layer.weights[:, :, start : start + block]
        growing.add(sum_rows(weights, layer.batch, start), start)
    return growing.finish(layer.index, lambda a, b: layer.weights[:, :, a:b])


@given(st.integers(0, 2**32 - 1), st.booleans(), st.integers(1, 5), st.integers(1, 30))
@settings(max_examples=60)
def test_the_size_of_a_block_changes_nothing(
    seed: int, is_causal: bool, texts: int, block: int
) -> None:
    rng = np.random.default_rng(seed)
    inputs = [random_input(rng, is_causal) for _ in range(texts)]
    batch = make_batch(inputs)
    whole = make_layer(inputs, batch)
    found = in_blocks(whole, block)
    for name in SUMS:
        one, other = getattr(found, name).double(), getattr(whole, name).double()
        torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-6, msg=name)
    for offset in (-40, -2, -1, 0, 1, 3):
        torch.testing.assert_close(
            found.on_offset(offset), whole.on_offset(offset), rtol=1e-6, atol=1e-6
        )
    for with_self in (True, False):
        mine, theirs = found.peaks(with_self), whole.peaks(with_self)
        torch.testing.assert_close(mine.weight, theirs.weight, rtol=0, atol=0)
        row, head = torch.meshgrid(*map(torch.arange, mine.weight.shape), indexing="ij")
        query, key = mine.locate(row, head)
        assert torch.equal(whole.kept[row, head, query, key], theirs.weight)
        if not with_self:
            some = theirs.weight > 0
            assert (query != key)[some].all()


def test_what_needs_the_matrix_is_refused_by_name() -> None:
    inputs = [random_input(np.random.default_rng(0), True)]
    layer = in_blocks(make_layer(inputs, make_batch(inputs)), 2)
    with pytest.raises(RunError, match=r"asks for 'kept' .* attention=dense"):
        _ = layer.kept
    with pytest.raises(AttributeError):
        _ = layer.nothing
