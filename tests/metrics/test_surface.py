"""Every surface measure is a plain loop over the rows of a document, averaged over documents."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from headscope.metrics import Grid, Ratio, surface
from headscope.metrics.surface import CLS, SEP, sink_rate, smoothed_entropy
from headscope.observe import SPECIAL, BlockLayer, Layer
from tests.metrics.attention_maps import Maps, maps
from tests.references.random_attention import in_blocks, matrix_layer, plain_batch

OFFSETS = (-11, -3, -1, 0, 1, 2)
SEEDS = st.integers(0, 2**31)
Rows = list[list[float]]
Special = list[int]


def make_layer(batch: Maps, special: Tensor) -> BlockLayer:
    """The maps as a layer; rows of padding are NaN."""
    weights = batch.weights.masked_fill(~batch.mask[:, None, :, None], torch.nan)
    annotated = replace(
        plain_batch(batch.mask), is_causal=batch.is_causal, labels={"special": special}
    )
    return matrix_layer(0, annotated, weights)


LAYERS: dict[str, Callable[[BlockLayer], BlockLayer]] = {
    "matrix": lambda layer: layer,
    "blocks": lambda layer: in_blocks(layer, block=2),
}


def random_special(batch: Maps, seed: int) -> Tensor:
    """A special class for some tokens, -1 for the others and for padding."""
    generator = torch.Generator().manual_seed(seed)
    codes = torch.randint(-1, len(SPECIAL), batch.mask.shape, generator=generator)
    return codes.masked_fill(~batch.mask, -1)


def special_of_inputs(batch: Maps, special: Tensor) -> list[Special]:
    """The classes of the real tokens of every input."""
    return [codes[real].tolist() for codes, real in zip(special, batch.mask, strict=True)]


def mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else math.nan


def offset_share(a: Rows, special: Special) -> list[float]:
    n = len(a)
    return [sum(a[i][i + o] for i in range(n) if 0 <= i + o < n) / n for o in OFFSETS]


def special_share(a: Rows, special: Special) -> list[float]:
    shares = []
    for label in range(len(SPECIAL)):
        keys = [j for j, code in enumerate(special) if code == label]
        shares.append(mean([sum(row[j] for j in keys) for row in a]))
    return shares


def from_queries_to_sep(a: Rows, special: Special, *, is_sep: bool) -> list[float]:
    paid = []
    for row, code in zip(a, special, strict=True):
        if (code == SEP) == is_sep:
            paid.append(sum(row[j] for j, other in enumerate(special) if other == SEP))
    return [mean(paid)]


def sep_to_sep(a: Rows, special: Special) -> list[float]:
    return from_queries_to_sep(a, special, is_sep=True)


def other_to_sep(a: Rows, special: Special) -> list[float]:
    return from_queries_to_sep(a, special, is_sep=False) if SEP in special else [math.nan]


def smoothed_row_entropy(row: list[float], amount: float = 1e-4) -> float:
    smoothed = [(1 - amount) * p + amount / len(row) for p in row]
    return -sum(p * math.log(p) for p in smoothed)


def entropy(a: Rows, special: Special) -> list[float]:
    return [mean([smoothed_row_entropy(row) for row in a])]


def entropy_from_cls(a: Rows, special: Special) -> list[float]:
    rows = [row for row, code in zip(a, special, strict=True) if code == CLS]
    return [mean([smoothed_row_entropy(row) for row in rows])]


def confidence(a: Rows, special: Special) -> list[float]:
    return [mean([max(row) for row in a])]


def first_token_share(a: Rows, special: Special) -> list[float]:
    return [mean([row[0] for row in a])]


def sink_texts(a: Rows, special: Special) -> list[float]:
    return [float(mean([row[0] for row in a]) > 0.3)]


Plain = Callable[[Rows, Special], list[float]]
MEASURES: list[tuple[Callable[[Grid], Ratio], Plain]] = [
    (lambda grid: surface.offset_shares(grid, OFFSETS), offset_share),
    (surface.special_shares, special_share),
    (surface.sep_to_sep, sep_to_sep),
    (surface.other_to_sep, other_to_sep),
    (surface.entropies, entropy),
    (surface.entropies_from_cls, entropy_from_cls),
    (surface.confidences, confidence),
    (surface.first_token_shares, first_token_share),
    (surface.sink_texts, sink_texts),
]
NAMES = [plain.__name__ for _, plain in MEASURES]


def value_of_documents(metric: Ratio, layer: Layer) -> np.ndarray:
    """The value of every document and head; NaN where it has none."""
    x, y = metric.terms(layer)
    return (x.double() / y.double()).numpy()


@pytest.mark.parametrize("kind", LAYERS)
@pytest.mark.parametrize(("make_metric", "plain"), MEASURES, ids=NAMES)
@settings(deadline=None, max_examples=30)
@given(batch=maps(), seed=SEEDS)
def test_the_value_of_a_document_equals_a_plain_loop(
    make_metric: Callable[[Grid], Ratio], plain: Plain, kind: str, batch: Maps, seed: int
) -> None:
    special = random_special(batch, seed)
    metric = make_metric(Grid((0,), batch.weights.shape[1]))
    values = value_of_documents(metric, LAYERS[kind](make_layer(batch, special)))
    codes = special_of_inputs(batch, special)
    for document, heads in enumerate(batch.inputs()):
        expected = [plain(a, codes[document]) for a in heads]
        np.testing.assert_allclose(values[document], expected, atol=1e-6)


def even_rows(n: int, *, is_causal: bool) -> Rows:
    """Every token gives all that it sees the same."""
    if not is_causal:
        return [[1 / n] * n for _ in range(n)]
    return [[1 / (i + 1)] * (i + 1) + [0.0] * (n - i - 1) for i in range(n)]


EVEN = [case for case in MEASURES if case[0](Grid((0,), 1)).has_even]


def test_shares_and_entropy_have_a_value_of_even_attention() -> None:
    names = [plain.__name__ for _, plain in EVEN]
    assert names == ["offset_share", "special_share", "entropy", "first_token_share"]


@pytest.mark.parametrize(("make_metric", "plain"), EVEN)
@settings(deadline=None, max_examples=30)
@given(batch=maps(), seed=SEEDS)
def test_the_value_of_even_attention_is_the_mean_over_documents_of_even_rows(
    make_metric: Callable[[Grid], Ratio], plain: Plain, batch: Maps, seed: int
) -> None:
    special = random_special(batch, seed)
    metric = make_metric(Grid((0,), 1))
    sums = metric.zero()
    metric.see_text(sums, make_layer(batch, special).batch)
    documents = [
        plain(even_rows(len(codes), is_causal=batch.is_causal), codes)
        for codes in special_of_inputs(batch, special)
    ]
    even = metric.compute(sums)[f"{metric.name}_even"].values
    np.testing.assert_allclose(even.reshape(-1), np.mean(documents, axis=0), atol=1e-6)


def test_a_next_token_head_gives_all_but_its_last_row() -> None:
    layer = matrix_layer(
        0, plain_batch(torch.ones(1, 4, dtype=torch.bool)), torch.eye(4).roll(1, dims=1)[None, None]
    )
    shares = value_of_documents(surface.offset_shares(Grid((0,), 1), (-1, 0, 1)), layer)
    assert shares.tolist() == [[[0.0, 0.0, 0.75]]]


def test_tokens_that_the_model_lacks_have_no_share() -> None:
    layer = make_layer(
        Maps(torch.full((1, 1, 2, 2), 0.5), torch.ones(1, 2, dtype=torch.bool), False),
        torch.tensor([[SEP, -1]]),
    )
    metric = surface.special_shares(Grid((0,), 1), absent=("cls",))
    sums = metric.zero()
    metric.see_text(sums, layer.batch)
    metric.see_layer(sums, layer)
    variables = metric.compute(sums)
    np.testing.assert_equal(variables["special_share"].values[0, 0], [np.nan, 0.5, 0.0])
    np.testing.assert_equal(variables["special_share_even"].values, [np.nan, 0.5, 0.0])


def test_both_entropies_read_the_rows_of_a_layer_once() -> None:
    reads = []

    def rows_of(start: int, stop: int) -> Tensor:
        reads.append(start)
        return torch.full((1, 1, stop - start, 6), 1 / 6)

    mask = torch.ones(1, 6, dtype=torch.bool)
    batch = replace(plain_batch(mask), labels={"special": torch.tensor([[CLS] + [-1] * 5])})
    layer = BlockLayer(0, batch, rows_of, block=2)
    for metric in (surface.entropies(Grid((0,), 1)), surface.entropies_from_cls(Grid((0,), 1))):
        assert value_of_documents(metric, layer).item() == pytest.approx(math.log(6))
    assert reads == [0, 2, 4]


@settings(deadline=None, max_examples=20)
@given(maps(), st.sampled_from([1e-3, 0.1]))
def test_rows_are_smoothed_by_any_amount(batch: Maps, amount: float) -> None:
    entropies = smoothed_entropy(batch.weights, batch.mask, amount)
    for document, heads in enumerate(batch.inputs()):
        real = entropies[document][:, batch.mask[document]]
        expected = [[smoothed_row_entropy(row, amount) for row in a] for a in heads]
        np.testing.assert_allclose(real, expected, atol=1e-6)


@settings(deadline=None, max_examples=20)
@given(maps())
def test_the_uniform_line_is_the_mean_of_the_entropies_of_uniform_rows(batch: Maps) -> None:
    metric = surface.uniform_entropy()
    sums = metric.zero()
    metric.see_text(sums, plain_batch(batch.mask))
    expected = mean([math.log(size) for size in batch.mask.sum(-1).tolist()])
    assert float(metric.compute(sums)["uniform_entropy"]) == pytest.approx(expected)


def test_the_sink_rate_is_the_share_of_heads_strictly_above_the_threshold() -> None:
    assert sink_rate(np.array([[0.1, 0.3], [0.31, 0.9]])) == 0.5
    assert sink_rate(np.array([[0.1, 0.3], [0.31, 0.9]]), threshold=0.05) == 1.0


def test_heads_without_a_value_are_not_counted_as_sinks() -> None:
    assert sink_rate(np.array([[0.9, np.nan]])) == 1.0
    assert math.isnan(sink_rate(np.array([[np.nan]])))
