"""Every sum of a layer is that of plain loops over its weights, however many rows are looked at."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from headscope.model.attention import TextAttention
from headscope.model.capture.modes import attend_whole
from headscope.observe import AnnotatedBatch, even_layer
from tests.references.random_attention import (
    LAYERS,
    Input,
    in_blocks,
    make_batch,
    make_layer,
    make_layer_of,
    matrix_layer,
    random_input,
    sums_of,
    with_first_peak,
)
from tests.references.vig2019 import is_parent, pairs


def plain_sums(text: Input, head: int, first_peak: int) -> dict[str, Any]:
    """The sums of one input and head by loops over its pairs."""
    a, size = text.weights[0, head].astype(float), text.length
    counted_pairs = list(pairs(text))
    rows = [sum(a[i, j] for i, j in counted_pairs if i == query) for query in range(size)]
    to_null = [sum(a[i, j] for j in range(size) if text.null[j]) for i in range(size)]
    entropy = 0.0
    for query in range(size):
        if rows[query] > 0 and np.float32(to_null[query]) <= 0.9:
            shares = [a[i, j] / rows[query] for i, j in counted_pairs if i == query]
            entropy -= sum(share * math.log(share) for share in shares if share > 0)
    peaks = {pair: a[pair] for pair in counted_pairs if min(pair) >= first_peak}
    return {
        "rows": rows,
        "columns": [sum(a[i, j] for i, j in counted_pairs if j == key) for key in range(size)],
        "self_weight": [a[i, i] if (i, i) in counted_pairs else 0.0 for i in range(size)],
        "to_null": to_null,
        "to_first": a[:, 0].tolist(),
        "row_total": a.sum(1).tolist(),
        "entropy_sum": entropy,
        "on_arcs": [
            sum(a[i, j] for i, j in counted_pairs if is_parent(text, i, j)),
            sum(a[i, j] for i, j in counted_pairs if is_parent(text, j, i)),
        ],
        "distance": sum(a[i, j] * abs(i - j) for i, j in counted_pairs),
        "largest": max(peaks.values(), default=0.0),
        "largest apart": max((a[i, j] for i, j in peaks if i != j), default=0.0),
    }


@pytest.mark.parametrize("kind", LAYERS)
@given(st.integers(0, 2**32 - 1), st.booleans(), st.integers(1, 3))
@settings(max_examples=25)
def test_every_sum_is_that_of_loops_over_pairs(
    kind: str, seed: int, is_causal: bool, texts: int
) -> None:
    rng = np.random.default_rng(seed)
    inputs = [random_input(rng, is_causal) for _ in range(texts)]
    batch = with_first_peak(make_batch(inputs), seed)
    sums = sums_of(make_layer_of(kind, inputs, batch))
    for row, text in enumerate(inputs):
        for head in range(text.weights.shape[1]):
            plain = plain_sums(text, head, batch.first_peak_token)
            for name, expected in plain.items():
                values = sums[name][row, head]
                if values.ndim and name != "on_arcs":
                    assert not values[text.length :].any(), name  # nothing on padding
                    values = values[: text.length]
                np.testing.assert_allclose(values, expected, rtol=2e-5, atol=2e-5, err_msg=name)


@given(st.integers(0, 2**32 - 1), st.booleans(), st.integers(1, 5), st.integers(1, 30))
@settings(max_examples=60)
def test_the_size_of_a_block_changes_nothing(
    seed: int, is_causal: bool, texts: int, block: int
) -> None:
    rng = np.random.default_rng(seed)
    inputs = [random_input(rng, is_causal) for _ in range(texts)]
    batch = with_first_peak(make_batch(inputs), seed)
    matrix = make_layer(inputs, batch)
    blocks = in_blocks(matrix, block)
    expected = sums_of(matrix)
    for name, values in sums_of(blocks).items():
        torch.testing.assert_close(
            values.double(), expected[name].double(), rtol=1e-6, atol=1e-6, msg=name
        )
    for offset in (-40, -2, -1, 0, 1, 3):
        torch.testing.assert_close(
            blocks.on_offset(offset), matrix.on_offset(offset), rtol=1e-6, atol=1e-6
        )
    for longest in (2, 50):
        torch.testing.assert_close(
            blocks.by_offset(longest), matrix.by_offset(longest), rtol=1e-6, atol=1e-6
        )
    row_maxima = [layer.of_rows(lambda rows: rows.amax(-1)) for layer in (blocks, matrix)]
    torch.testing.assert_close(*row_maxima, rtol=0, atol=0)


@given(st.integers(0, 2**32 - 1), st.booleans(), st.integers(1, 4))
@settings(max_examples=40)
def test_even_attention_pays_every_token_that_is_seen_the_same(
    seed: int, is_causal: bool, texts: int
) -> None:
    rng = np.random.default_rng(seed)
    inputs = [random_input(rng, is_causal) for _ in range(texts)]
    batch = make_batch(inputs)
    layer = even_layer(batch)
    size = batch.mask.shape[1]
    weights = layer.weights(0, size)
    for row, text in enumerate(inputs):
        for i in range(size):
            seen = range(min(i + 1, text.length) if is_causal else text.length)
            for j in range(size):
                expected = 1 / len(seen) if j in seen and i < text.length else 0.0
                assert weights[row, 0, i, j].item() == pytest.approx(expected)
    all_pairs = batch.pairs.nonzero()
    torch.testing.assert_close(layer.on_pairs(all_pairs, 0.9), layer.total)  # no weight is too low
    assert even_layer(batch) is layer  # made once for all metrics


def random_text(
    seed: int, tokens: int, groups: int, is_causal: bool
) -> tuple[TextAttention, Tensor]:
    """Queries and keys of 2 × `groups` heads, and the weights in float64."""
    generator = torch.Generator().manual_seed(seed)
    query = torch.randn(2 * groups, tokens, 8, generator=generator) * 3
    key = torch.randn(2, tokens, 8, generator=generator)
    scores = 0.3 * query.double() @ key.double().repeat_interleave(groups, 0).mT
    if is_causal:
        later = torch.ones(tokens, tokens, dtype=torch.bool).triu(1)
        scores = scores.masked_fill(later, -torch.inf)
    kind = "causal" if is_causal else "full"
    return TextAttention(query, key, 0.3, scores.logsumexp(-1).float(), kind), scores.softmax(-1)


@pytest.mark.parametrize("is_causal", [True, False])
@pytest.mark.parametrize("width", [8, 12])
def test_the_fused_kernel_gives_output_and_row_sums(is_causal: bool, width: int) -> None:
    text, weights = random_text(5, 33, 3, is_causal)
    value = torch.randn(2, 33, width, generator=torch.Generator().manual_seed(1))
    output, lse = attend_whole(text.query, text.key, value, 0.3, is_causal)
    expected = weights @ value.double().repeat_interleave(3, 0)
    torch.testing.assert_close(output.double(), expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(lse, text.lse, rtol=1e-5, atol=1e-5)
    rows = replace(text, lse=lse).weights(4, 9)
    torch.testing.assert_close(rows.double(), weights[:, 4:9], rtol=1e-5, atol=1e-5)


def test_both_readings_of_a_layer_come_from_its_norms() -> None:
    weights = torch.tensor([[[[0.5, 0.5], [0.25, 0.75]]]])
    norms = torch.tensor([[[3.0, 1.0]]])
    mask = torch.ones(1, 2, dtype=torch.bool)
    batch = AnnotatedBatch(
        np.arange(1), np.arange(1), torch.zeros(1).long(), mask, ~mask, is_causal=False
    )
    layer = matrix_layer(0, batch, weights, norms)
    expected = torch.tensor([[[[0.75, 0.25], [0.5, 0.5]]]])
    torch.testing.assert_close(layer.normed.weights(0, 2), expected)
    torch.testing.assert_close(layer.weights(0, 2), weights)
