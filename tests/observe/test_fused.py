"""The pass over scores equals plain float64 arithmetic on whole matrices."""

from dataclasses import replace
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headscope.model.attention import TextAttention
from headscope.model.capture.modes import attend_whole
from headscope.observe.fused import sum_in_blocks, weights_of_pairs

DTYPES = (torch.float32, torch.bfloat16, torch.float16)


def random_text(
    seed: int, tokens: int, groups: int, is_causal: bool, dtype: torch.dtype = torch.float32
) -> tuple[TextAttention, torch.Tensor]:
    """Queries and keys of 2 × `groups` heads, and the weights in float64."""
    generator = torch.Generator().manual_seed(seed)
    query = torch.randn(2 * groups, tokens, 8, generator=generator).mul(3).to(dtype)
    key = torch.randn(2, tokens, 8, generator=generator).to(dtype)
    scores = 0.3 * query.double() @ key.double().repeat_interleave(groups, 0).mT
    if is_causal:
        later = torch.ones(tokens, tokens, dtype=torch.bool).triu(1)
        scores = scores.masked_fill(later, -torch.inf)
    kind = "causal" if is_causal else "full"
    lse = scores.logsumexp(-1).float()
    return TextAttention(query, key, 0.3, lse, kind), scores.softmax(-1)


@given(
    st.integers(0, 2**31), st.integers(2, 40), st.integers(1, 3), st.booleans(), st.integers(1, 50),
    st.sampled_from(DTYPES),
)  # fmt: skip
@settings(max_examples=60)
def test_sums_and_peaks_are_those_of_the_matrix(
    seed: int, tokens: int, groups: int, is_causal: bool, block: int, dtype: torch.dtype
) -> None:
    text, weights = random_text(seed, tokens, groups, is_causal, dtype)
    content = torch.ones(tokens, dtype=torch.bool)
    content[0] = False
    row_weights = torch.rand(2 * groups, tokens, generator=torch.Generator().manual_seed(seed))
    row_weights = row_weights * content
    found = sum_in_blocks(text, content, row_weights, block)
    pairs = content[:, None] & content[None, :]
    kept = weights * pairs
    scores = weights.log() + text.lse[..., None].double()
    place = torch.arange(tokens)
    apart = (place[:, None] - place).abs()
    of_scores = (row_weights.double()[..., None] * kept * scores.nan_to_num(neginf=0)).sum((1, 2))
    close = partial(torch.testing.assert_close, rtol=1e-5, atol=1e-5)
    close(found.columns, kept.sum(1))
    assert found.rows is not None
    close(found.rows.double(), kept.sum(2))
    close(found.scores, of_scores)
    close(found.distance, (kept * apart).sum((1, 2)))
    best = (kept * (apart > 0)).flatten(1).max(1).values
    close(found.apart.weight.double(), best)


@given(st.integers(0, 2**31), st.integers(2, 30), st.booleans())
@settings(max_examples=30)
def test_single_weights_are_those_of_the_matrix(seed: int, tokens: int, is_causal: bool) -> None:
    text, weights = random_text(seed, tokens, 2, is_causal)
    pairs = torch.cartesian_prod(torch.arange(tokens), torch.arange(tokens))
    found = weights_of_pairs(text, pairs).reshape(4, tokens, tokens)
    torch.testing.assert_close(found.double(), weights, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("is_causal", [True, False])
@pytest.mark.parametrize("width", [8, 12])
def test_the_fused_kernel_gives_output_and_row_sums(is_causal: bool, width: int) -> None:
    text, weights = random_text(5, 33, 3, is_causal)
    value = torch.randn(2, 33, width, generator=torch.Generator().manual_seed(1))
    output, lse = attend_whole(text.query, text.key, value, 0.3, is_causal)
    wanted = weights @ value.double().repeat_interleave(3, 0)
    torch.testing.assert_close(output.double(), wanted, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(lse, text.lse, rtol=1e-5, atol=1e-5)
    rows = replace(text, lse=lse).weights(4, 9)
    torch.testing.assert_close(rows.double(), weights[:, 4:9], rtol=1e-5, atol=1e-5)
