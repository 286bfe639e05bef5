"""Shares of fixed offsets equal the definition."""

import numpy as np
import torch
from hypothesis import given, settings
from torch import Tensor

from headscope.metrics.metric import Grid
from headscope.metrics.where.surface import offset_shares
from headscope.observe.dense import DenseLayer
from tests.metrics.attention_maps import Maps, maps
from tests.metrics.inputs import plain_batch

OFFSETS = (-11, -3, -1, 0, 1, 2)


def found_shares(weights: Tensor, mask: Tensor, offsets: tuple[int, ...]) -> Tensor:
    layer = DenseLayer(0, weights, plain_batch(mask))
    return offset_shares(Grid((0,), weights.shape[1]), offsets).terms(layer)[0]


def plain_share(rows: list[list[float]], offset: int) -> float:
    """Σ_i a[i, i+o] / n."""
    size = len(rows)
    inside = [i for i in range(size) if 0 <= i + offset < size]
    return sum(rows[i][i + offset] for i in inside) / size


@settings(deadline=None, max_examples=50)
@given(maps())
def test_offset_shares_equal_a_plain_loop(batch: Maps) -> None:
    found = found_shares(batch.weights, batch.mask, OFFSETS)
    expected = [[[plain_share(h, o) for o in OFFSETS] for h in heads] for heads in batch.inputs()]
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_a_next_token_head_gives_all_but_its_last_row() -> None:
    weights = torch.eye(4).roll(1, dims=1)[None, None]
    found = found_shares(weights, torch.ones(1, 4, dtype=torch.bool), (-1, 0, 1))
    assert found.tolist() == [[[0.0, 0.0, 0.75]]]
