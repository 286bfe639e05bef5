"""Rollout and head scores, against plain loops."""

import numpy as np
import pytest

from headscope.views.weights import head_scores, rollout
from tests.references.traces import known_trace, random_trace

WEIGHTS = [random_trace(sink=True).weights[layer].double().numpy() for layer in range(3)]


def test_rollout_is_the_product_of_half_attention_half_identity() -> None:
    count = WEIGHTS[0].shape[-1]
    flow = np.eye(count)
    for weights, found in zip(WEIGHTS, rollout(WEIGHTS), strict=True):
        average = weights.mean(0)
        step = np.zeros((count, count))
        for query in range(count):
            total = average[query].sum()
            for key in range(count):
                step[query, key] = 0.5 * average[query, key] / total + 0.5 * (query == key)
        flow = step @ flow
        np.testing.assert_allclose(found, flow)


def test_rollout_rows_sum_to_one_even_with_a_sink() -> None:
    for flow in rollout(WEIGHTS):
        np.testing.assert_allclose(flow.sum(-1), 1)


def test_head_scores_of_a_known_matrix() -> None:
    scores = head_scores(known_trace().weights[0].double().numpy())
    rows = [[1.0], [0.25, 0.75], [0.1, 0.3, 0.6]]
    entropy = np.mean([-sum(w * np.log(w) for w in row) for row in rows])
    assert scores["entropy"][0] == pytest.approx(entropy)
    assert scores["distance"][0] == pytest.approx((0.25 * 1 + 0.1 * 2 + 0.3 * 1) / 3)
    assert scores["largest weight"][0] == pytest.approx(1.0)
    assert scores["first token"][0] == pytest.approx((1 + 0.25 + 0.1) / 3)
    assert scores["previous token"][0] == pytest.approx((0.25 + 0.3) / 3)
    assert scores["same token"][0] == pytest.approx((1 + 0.75 + 0.6) / 3)
    assert scores["next token"][0] == 0
