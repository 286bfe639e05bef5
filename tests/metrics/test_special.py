"""Attention to special tokens and punctuation equals the definition."""

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headscope.metrics.where.surface import mean_over
from headscope.observe.dense import received
from tests.metrics.attention_maps import Maps, maps


def plain_mean(rows: list[list[float]], queries: list[int], keys: list[int]) -> float:
    """Σ over some rows of the weight on some keys, divided by the number of rows."""
    if not queries:
        return float("nan")
    return sum(rows[i][j] for i in queries for j in keys) / len(queries)


@settings(deadline=None, max_examples=50)
@given(maps(), st.integers(0, 2**31))
def test_shares_of_classes_equal_a_plain_loop(batch: Maps, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    label = torch.randint(0, 4, batch.mask.shape, generator=generator)
    classes = (label[..., None] == torch.arange(3)) & batch.mask[..., None]
    paid = received(batch.weights, classes)
    sep = classes[..., 1]
    found = {
        "all": mean_over(paid, batch.mask),
        "from sep": mean_over(paid, sep),
        "from others": mean_over(paid, batch.mask & ~sep),
    }
    for at, heads in enumerate(batch.inputs()):
        kind = label[at][batch.mask[at]].tolist()
        everything = list(range(len(kind)))
        queries = {
            "all": everything,
            "from sep": [i for i in everything if kind[i] == 1],
            "from others": [i for i in everything if kind[i] != 1],
        }
        for name, chosen in queries.items():
            expected = [
                [plain_mean(h, chosen, [j for j in everything if kind[j] == k]) for k in range(3)]
                for h in heads
            ]
            np.testing.assert_allclose(found[name][at], expected, atol=1e-6)
