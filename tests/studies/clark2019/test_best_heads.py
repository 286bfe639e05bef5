import numpy as np
import pytest

from headscope.studies.clark2019.best_heads import RelationCounts, best_heads, choose
from headscope.studies.clark2019.probes.trees import accuracy


def test_nothing_counted_is_not_a_number() -> None:
    assert np.isnan(accuracy(np.array(0), np.array(0)))


def counts() -> RelationCounts:
    """Two layers of one head, both directions, classes a and b; ten words of a in each half."""
    correct = np.zeros((2, 2, 1, 2, 2))
    correct[0, 0, 0, 0, 0], correct[1, 0, 0, 0, 0] = 9, 1  # best on the first half
    correct[0, 0, 0, 1, 0], correct[1, 0, 0, 1, 0] = 6, 2  # there in the other direction, too
    correct[0, 1, 0, 1, 0], correct[1, 1, 0, 1, 0] = 5, 7  # best on the second half and overall
    scored = np.zeros((2, 2, 2))
    scored[..., 0] = 10
    offsets = np.zeros((2, 2, 6, 2))
    offsets[:, 1, 2, 0] = 4
    return RelationCounts(correct, scored, np.array([[20.0, 0.0], [20.0, 0.0]]), offsets)


def test_the_best_head_on_the_same_data_and_on_the_other_half_are_both_reported() -> None:
    (row,) = best_heads(counts(), ("a", "b"))
    assert (row.relation, row.layer, row.head) == ("a", 1, 0)
    assert row.direction == "head_to_dependent"
    assert row.accuracy.value == pytest.approx(12 / 20)
    # Both choose in the direction of the row: the first half layer 0, which gets 2 of 10 on the
    # second; that chooses layer 1: 5.
    assert row.held_out.value == pytest.approx(7 / 20)
    assert not row.same_choice


def test_a_causal_head_is_chosen_in_the_direction_that_has_more_words() -> None:
    correct = np.array([[[2.0, 30.0]], [[0.0, 60.0]]])
    assert choose(correct, np.array([2.0, 98.0])) == (1, 0, 1)
    assert choose(correct, np.array([98.0, 98.0])) == (1, 0, 1)
    assert choose(correct[..., ::-1], np.array([98.0, 2.0])) == (1, 0, 0)


def test_margin_and_coverage_are_over_the_words_that_were_scored() -> None:
    (row,) = best_heads(counts(), ("a", "b"))
    assert (row.offset, row.baseline) == (-1, pytest.approx(0.4))
    assert row.margin == pytest.approx(0.2)
    assert row.coverage == pytest.approx(0.5)
    assert row.words == 40


def test_the_held_out_margin_is_over_the_best_offset_on_the_same_words() -> None:
    (row,) = best_heads(counts(), ("a", "b"))
    # In the direction of the row an offset is right for 4 of 10: 2 − 4 and 5 − 4 of 10.
    assert row.held_out_margin.value == pytest.approx(-1 / 20)
    assert float(row.of_all_replicates[0]) == pytest.approx(7 / 40)


def test_a_relation_in_one_half_of_the_documents_has_no_held_out_accuracy() -> None:
    whole = counts()
    for array in (whole.correct, whole.scored, whole.words, whole.offset_correct):
        array[1] = 0
    (row,) = best_heads(whole, ("a", "b"))
    assert row.accuracy.value == pytest.approx(0.9)
    assert row.direction == "dependent_to_head"
    assert np.isnan(row.held_out.value) and np.isnan(row.held_out_margin.low)


def test_equal_margins_in_all_groups_have_no_error_and_shares_still_have() -> None:
    correct = np.zeros((8, 1, 1, 2, 1))
    correct[..., 0] = 8
    scored, words = np.full((8, 2, 1), 10.0), np.full((8, 1), 10.0)
    offsets = np.zeros((8, 2, 6, 1))
    offsets[:, :, 3] = 7
    (row,) = best_heads(RelationCounts(correct, scored, words, offsets), ("a",))
    margin = row.held_out_margin
    assert (margin.low, margin.value, margin.high) == pytest.approx((0.1, 0.1, 0.1))
    assert margin.trouble.startswith("it is exactly the same without any group")
    assert 0 < row.held_out.low < 0.8 < row.held_out.high < 1
