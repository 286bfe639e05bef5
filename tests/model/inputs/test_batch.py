"""Buckets keep to their budget and batches keep their texts apart."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from headscope.errors import ModelError
from headscope.model.inputs.batch import Side, buckets, make_batch
from tests.references.tiny_families import tiny

LENGTHS = st.lists(st.integers(1, 40), max_size=60)


@given(LENGTHS, st.integers(1, 200))
def test_every_text_is_in_exactly_one_bucket(lengths: list[int], budget: int) -> None:
    found = [index for bucket in buckets(lengths, budget) for index in bucket]
    assert sorted(found) == list(range(len(lengths)))


@given(LENGTHS, st.integers(1, 200), st.booleans())
def test_a_bucket_of_several_texts_stays_within_the_budget(
    lengths: list[int], budget: int, equal: bool
) -> None:
    for bucket in buckets(lengths, budget, equal=equal):
        longest = max(lengths[index] for index in bucket)
        assert len(bucket) == 1 or len(bucket) * longest <= budget
        assert not equal or {lengths[index] for index in bucket} == {longest}


def test_buckets_put_similar_lengths_together() -> None:
    assert buckets([8, 2, 3, 7, 3], 16) == [[1, 2, 4], [3, 0]]


def test_a_budget_below_one_is_refused() -> None:
    with pytest.raises(ModelError, match="positive, not 0"):
        buckets([1], 0)


@pytest.mark.parametrize("side", ["right", "left"])
def test_the_span_of_a_row_holds_exactly_its_text(side: Side) -> None:
    model = tiny("BERT")
    encoded = [model.encode(text) for text in ("one", "a longer text", "mid")]
    batch = make_batch(encoded, [1, 2], pad=1, side=side)
    assert batch.rows == (1, 2)
    for row, source in enumerate(batch.rows):
        assert tuple(batch.ids[row, batch.span(row)].tolist()) == encoded[source].ids
        assert bool(batch.mask[row, batch.span(row)].all())
        assert int(batch.mask[row].sum()) == batch.lengths[row] == len(encoded[source])
    assert torch.equal(batch.ids[~batch.mask], torch.full_like(batch.ids[~batch.mask], 1))


def test_an_empty_batch_is_refused() -> None:
    with pytest.raises(ModelError, match="at least one text"):
        make_batch([], [], pad=0)


def test_a_network_that_cannot_be_padded_is_batched_by_equal_length() -> None:
    model = tiny("ConvBERT")
    assert model.buckets([5, 5, 6], 100) == [[0, 1], [2]]
    with pytest.raises(ModelError, match="equal length"):
        model.batch([model.encode("one"), model.encode("three")])
