"""Pieces are finished once, in whatever way workers fail, die and are restarted."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headscope.workers import SPREAD, Attempted, Pieces


@given(st.integers(0, 150), st.integers(1, 4), st.integers(0, 999))
def test_every_piece_is_finished_once_and_none_is_taken_far_ahead(
    count: int, workers: int, seed: int
) -> None:
    rng = random.Random(seed)
    pieces, ready = Pieces(range(count)), set(range(workers))
    busy: dict[int, Attempted[int]] = {}
    finished: list[int] = []
    while not pieces.are_done:
        for worker in ready - set(busy):
            taken = pieces.take(worker, ready)
            if taken is not None:
                busy[worker] = taken
        if not busy:
            continue
        numbers = [attempted.number for attempted in busy.values()]
        assert max(numbers) - min(numbers) <= SPREAD
        worker = rng.choice(sorted(busy))
        attempted = busy.pop(worker)
        if rng.random() < 0.4:
            pieces.fail(attempted, worker)
        else:
            pieces.finish(attempted)
            finished.append(attempted.piece)
    assert sorted(finished) == list(range(count))


def take(pieces: Pieces[str], worker: int, ready: set[int]) -> Attempted[str]:
    attempted = pieces.take(worker, ready)
    assert attempted is not None
    return attempted


def test_a_piece_that_failed_goes_to_another_worker() -> None:
    pieces = Pieces(["poison", "fine"])
    attempted = take(pieces, 0, {0, 1})
    pieces.fail(attempted, 0)
    assert take(pieces, 0, {0, 1}).piece == "fine"
    assert take(pieces, 1, {0, 1}) is attempted


def test_a_piece_that_failed_everywhere_is_tried_again() -> None:
    pieces = Pieces(["poison"])
    for worker in (0, 1, 0):
        attempted = take(pieces, worker, {0, 1})
        pieces.fail(attempted, worker)
    assert attempted.failed_on == [0, 1, 0]


@pytest.mark.parametrize("workers", [1, 3])
def test_pieces_are_read_from_their_source_only_when_a_worker_is_free(workers: int) -> None:
    read: list[int] = []
    pieces = Pieces(read.append(number) or number for number in range(1000))
    for worker in range(workers):
        pieces.take(worker, set(range(workers)))
    assert read == list(range(workers))
