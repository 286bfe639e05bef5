"""A wrong matrix never leaves silently: every fault is named with its layer."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from headscope.errors import CaptureError
from headscope.model.capture.dense import Checks, Expectation

QUERIES = torch.tensor([[True, True, True], [True, True, False]])


def expectation(*, causal: bool = False, sink: bool = False) -> Expectation:
    return Expectation("M", "self", 2, QUERIES, QUERIES, causal, sink, padded=True)


def check(weights: Tensor, layer: int, expected: Expectation) -> None:
    Checks("full").see(weights, layer, expected)


def good(*, causal: bool) -> Tensor:
    """Random weights that keep to the mask; rows of padding are uniform, as under left padding."""
    scores = torch.rand(2, 2, 3, 3, generator=torch.Generator().manual_seed(0))
    scores = scores.masked_fill(~QUERIES[:, None, None, :], -torch.inf)
    if causal:
        scores = scores.masked_fill(torch.ones(3, 3, dtype=torch.bool).triu(1), -torch.inf)
    weights = scores.softmax(-1)
    weights[1, :, 2] = 1 / 3
    return weights


@pytest.mark.parametrize("causal", [True, False])
def test_good_weights_pass(causal: bool) -> None:
    check(good(causal=causal), 0, expectation(causal=causal))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_rounding_of_the_dtype_is_no_fault(dtype: torch.dtype) -> None:
    check(good(causal=True).to(dtype), 0, expectation(causal=True))


@given(
    st.sampled_from([torch.nan, torch.inf, -0.1, 0.5]),
    st.tuples(st.integers(0, 1), st.integers(0, 1), st.integers(0, 1), st.integers(0, 2)),
)
def test_a_single_wrong_weight_is_found(value: float, place: tuple[int, ...]) -> None:
    weights = good(causal=True)
    weights[place] += value
    with pytest.raises(CaptureError, match=r"^M, layer 3, .*headscope check"):
        check(weights, 3, expectation(causal=True))


def test_weight_on_padding_is_found() -> None:
    weights = good(causal=False)
    weights[1, 0, 0] = torch.tensor([0.2, 0.2, 0.6])
    with pytest.raises(CaptureError, match=r"pays attention of 0\.6 to padding"):
        check(weights, 0, expectation())


def test_weight_on_later_tokens_is_found() -> None:
    with pytest.raises(CaptureError, match="later tokens, so its mask was lost"):
        check(good(causal=False), 0, expectation(causal=True))


def test_rows_below_one_need_a_sink() -> None:
    weights = good(causal=False) * 0.8
    check(weights, 0, expectation(sink=True))
    with pytest.raises(CaptureError, match=r"sums to 0\.8 instead of 1"):
        check(weights, 0, expectation())


def test_rows_above_one_are_a_fault_even_with_a_sink() -> None:
    with pytest.raises(CaptureError, match=r"sums to 1\.2"):
        check(good(causal=False) * 1.2, 0, expectation(sink=True))


def test_another_shape_is_named() -> None:
    with pytest.raises(CaptureError, match=r"\(2, 3, 3, 3\) where .* is \(2, 2, 3, 3\)"):
        check(torch.zeros(2, 3, 3, 3), 0, expectation())


def test_stacks_are_named() -> None:
    expected = replace(expectation(), stack="cross")
    with pytest.raises(CaptureError, match=r"^M, cross layer 1,"):
        check(-good(causal=False), 1, expected)
