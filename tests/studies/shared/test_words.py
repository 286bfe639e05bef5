import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headscope.studies.shared.words import (
    BETWEEN,
    END,
    START,
    From,
    make_units,
    units_of,
    word_maps,
)
from tests.references.clark2019 import plain_map
from tests.references.random_text import padded, random_pieces, random_weights


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["mean", "first"]), st.booleans())
def test_word_maps_of_a_padded_batch_equal_a_plain_loop(
    seed: int, row: From, special: bool
) -> None:
    rng = np.random.default_rng(seed)
    counts = [int(rng.integers(1, 7)) for _ in range(3)]
    pieces = [random_pieces(rng, words, special) for words in counts]
    weights = [random_weights(rng, 2, len(p)) for p in pieces]
    units = make_units(pieces, counts, row=row)
    maps = word_maps(padded(weights), units)
    for place, words in enumerate(counts):
        expected = plain_map(weights[place], pieces[place], words, row)
        np.testing.assert_allclose(maps[place, :, :words, :words], expected, atol=1e-6)
        assert units.words[place].tolist() == [w < words for w in range(max(counts))]


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["mean", "first"]))
def test_rows_keep_their_sum_and_every_token_is_in_one_unit(seed: int, row: From) -> None:
    rng = np.random.default_rng(seed)
    pieces = random_pieces(rng, 5, special=True)
    weights = torch.from_numpy(random_weights(rng, 2, len(pieces)))[None]
    units = make_units([pieces], [5], row=row)
    tokens = units.queries[0] @ weights.sum(-1)[0].T
    np.testing.assert_allclose(word_maps(weights, units)[0].sum(-1), tokens.T, atol=1e-6)
    assert units.keys[0].sum(-1).tolist() == [1] * len(pieces)


def test_special_tokens_and_tokens_of_no_word_are_units_behind_the_words() -> None:
    assert units_of([-1, 0, -1, 1, 1, -1]) == [START - 3, 0, BETWEEN - 3, 1, 1, END - 3]


def test_left_padding_gives_the_same_maps_as_right_padding() -> None:
    rng = np.random.default_rng(0)
    pieces = [[-1, 0, 0, 1, -1], [-1, 0, -1]]
    right = torch.zeros(2, 2, 5, 5)
    right[0] = torch.from_numpy(random_weights(rng, 2, 5))
    right[1, :, :3, :3] = torch.from_numpy(random_weights(rng, 2, 3))
    left = right.clone()
    left[1] = right[1].roll((2, 2), dims=(1, 2))
    from_right = word_maps(right, make_units(pieces, [2, 1]))
    from_left = word_maps(left, make_units(pieces, [2, 1], side="left"))
    torch.testing.assert_close(from_left, from_right)


def test_a_batch_may_be_padded_further_than_its_longest_sentence() -> None:
    units = make_units([[-1, 0, -1]], [1], tokens=6)
    assert units.keys.shape == (1, 6, 4)
    assert units.keys[0, 3:].sum() == 0


def test_rows_of_padding_may_hold_anything() -> None:
    weights = torch.from_numpy(random_weights(np.random.default_rng(0), 2, 4))[None]
    units = make_units([[0, 0, 1]], [2], tokens=4)
    expected = word_maps(weights.clone(), units)
    weights[:, :, 3] = torch.nan
    torch.testing.assert_close(word_maps(weights, units), expected)


@pytest.mark.parametrize(("row", "expected"), [("mean", 0.5), ("first", 0.8)])
def test_a_split_word_attends_like_its_pieces_or_like_the_first(row: From, expected: float) -> None:
    weights = torch.tensor([[[[0.1, 0.1, 0.8], [0.4, 0.4, 0.2], [0.0, 0.0, 1.0]]]])
    maps = word_maps(weights, make_units([[0, 0, 1]], [2], row=row))
    assert maps[0, 0, 0, 1] == pytest.approx(expected)
