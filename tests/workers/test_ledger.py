"""Pieces are finished once, in whatever way workers fail, die and come back."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headscope.workers.ledger import Ledger, Ticket


@given(st.integers(0, 40), st.integers(1, 4), st.integers(1, 8), st.integers(0, 999))
def test_every_piece_is_finished_once_and_never_far_ahead(
    count: int, workers: int, ahead: int, seed: int
) -> None:
    rng = random.Random(seed)
    ledger = Ledger(range(count), attempts=1000, ahead=ahead)
    crew, busy, finished = set(range(workers)), {}, []
    while not ledger.is_done:
        for worker in crew - set(busy):
            ticket = ledger.take(worker, crew)
            if ticket is not None:
                busy[worker] = ticket
        if not busy:
            continue
        unfinished = [ticket.number for ticket in busy.values()]
        assert max(unfinished) - min(unfinished) <= ahead
        worker = rng.choice(sorted(busy))
        ticket = busy.pop(worker)
        if rng.random() < 0.4:
            assert ledger.fail(ticket, worker)
            if rng.random() < 0.5:  # the worker died, a new one comes
                crew = crew - {worker} | {max(crew) + 1}
        else:
            ledger.finish(ticket)
            finished.append(ticket.piece)
    assert sorted(finished) == list(range(count))


def take(ledger: Ledger[str], worker: int, crew: set[int]) -> Ticket[str]:
    ticket = ledger.take(worker, crew)
    assert ticket is not None
    return ticket


def test_a_piece_that_failed_goes_to_another_worker() -> None:
    ledger = Ledger(["poison", "fine"])
    ticket = take(ledger, 0, {0, 1})
    ledger.fail(ticket, 0)
    assert take(ledger, 0, {0, 1}).piece == "fine"
    assert take(ledger, 1, {0, 1}) is ticket


def test_a_piece_that_failed_everywhere_is_tried_again_until_the_bound() -> None:
    ledger = Ledger(["poison"], attempts=3)
    again = [ledger.fail(take(ledger, worker, {0, 1}), worker) for worker in (0, 1, 0)]
    assert again == [True, True, False]


@pytest.mark.parametrize("workers", [1, 3])
def test_pieces_are_taken_only_when_a_worker_is_free(workers: int) -> None:
    read = []
    ledger = Ledger(read.append(number) or number for number in range(1000))
    for worker in range(workers):
        ledger.take(worker, set(range(workers)))
    assert len(read) == workers
