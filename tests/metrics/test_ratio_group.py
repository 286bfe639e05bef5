"""Ratios added together equal ratios added one by one, and the sums are as good as float64's."""

from functools import partial

import numpy as np
import pytest
import torch
from headscope.observe.dense import DenseLayer

from headscope.metrics.metric import Axis, Grid
from headscope.metrics.ratio import HeadRatio, RatioGroup
from headscope.metrics.what import dependencies, labels
from headscope.metrics.where import spread
from headscope.metrics.where.surface import offset_shares
from tests.metrics.inputs import HEADS, RELATIONS, TAGS, make_batch, make_layer, random_input

LAYERS = 2
GRID = Grid(tuple(range(LAYERS)), HEADS)


def ratios() -> list[HeadRatio]:
    return [
        spread.distance(GRID),
        spread.entropy(GRID),
        spread.null_share(GRID),
        labels.label_to(labels.POS_TO, GRID, Axis("tag", TAGS)),
        labels.label_to(labels.DEPREL_TO, GRID, Axis("deprel", RELATIONS)),
        dependencies.dependency_alignment(GRID),
        offset_shares(GRID, (-1, 0, 1)),  # a denominator for every item
    ]


@pytest.mark.parametrize("is_causal", [True, False])
def test_ratios_added_together_equal_ratios_added_one_by_one(is_causal: bool) -> None:
    rng = np.random.default_rng(0)
    group = RatioGroup(ratios(), torch.device("cpu"))
    alone = {metric.name: metric.zero(0) for metric in ratios()}
    together = {metric.name: metric.zero(0) for metric in ratios()}
    for _ in range(3):
        inputs = [random_input(rng, is_causal, LAYERS) for _ in range(5)]
        batch = make_batch(inputs)
        for index in range(LAYERS):
            layer = make_layer(inputs, batch, index)
            group.update(layer)
            for metric in ratios():
                metric.update_layer(alone[metric.name], layer)
    group.finish(together)
    for name, state in alone.items():
        for key, values in state.sums.items():
            np.testing.assert_allclose(together[name].sums[key], values, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_many_inputs_are_added_as_accurately_as_in_float64(dtype: torch.dtype) -> None:
    """Bound: 1e-6 of the value over 2,000 inputs, given the weights as they are in their dtype."""
    rng = np.random.default_rng(1)
    inputs = [random_input(rng, True) for _ in range(40)]
    batch = make_batch(inputs)
    weights = make_layer(inputs, batch).weights.to(dtype)
    exact = _exact(weights.double(), batch.pairs)
    group, metric = RatioGroup([spread.distance(GRID)], torch.device("cpu")), GRID
    state = spread.distance(metric).zero(0)
    for _ in range(50):
        group.update(DenseLayer(0, weights, batch))
    group.finish({"distance": state})
    for head in range(HEADS):
        total = {name: sums[:, 0, head, 0].sum() for name, sums in state.sums.items()}
        found = total["numerator"] / total["denominator"]
        assert found == pytest.approx(exact[head], rel=1e-6)


def _exact(weights: torch.Tensor, pairs: torch.Tensor) -> list[float]:
    place = torch.arange(weights.shape[-1], dtype=torch.float64)
    far = (place[:, None] - place).abs()
    kept = torch.where(pairs[:, None], weights, 0.0)
    total = partial(torch.sum, dim=(0, 2, 3))
    return (total(kept * far) / total(kept)).tolist()
