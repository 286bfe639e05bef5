"""Work in threads keeps order, stays within bounds and passes errors on."""

import threading
import time

import pytest
from headscope.engine.job import Job

from headscope.engine.setup import Setup
from headscope.studies import find_study
from headscope.workers import Abandoned, LocalPool, go_on, map_in_threads
from tests.engine.tiny import causal_model, treebank


def test_results_come_in_the_order_of_the_items() -> None:
    done = threading.Event()

    def work(item: int) -> int:
        if item == 0:
            done.wait(5)  # the first is the last to finish
        if item == 2:
            done.set()
        return item * 10

    assert list(map_in_threads(work, range(6), 3)) == [(n, n * 10) for n in range(6)]


def test_no_more_items_are_taken_than_are_in_progress() -> None:
    taken: list[int] = []

    def items():  # noqa: ANN202
        for n in range(10):
            taken.append(n)
            yield n

    made = map_in_threads(lambda n: n, items(), 3)
    next(made)
    assert len(taken) == 3
    made.close()  # pyright: ignore[reportAttributeAccessIssue]


def test_an_item_waits_for_the_first_thread_that_is_free() -> None:
    third_began = threading.Event()

    def work(item: int) -> bool:
        if item == 2:
            third_began.set()
        return item != 0 or third_began.wait(5)  # the first goes on until the third has begun

    assert list(map_in_threads(work, range(3), 2, waiting=1)) == [(n, True) for n in range(3)]


def test_work_that_nobody_waits_for_any_more_ends_where_it_asks() -> None:
    ended: list[type[BaseException]] = []
    began = threading.Event()

    def work(item: int) -> None:
        if item == 0:
            began.wait(5)
            raise KeyboardInterrupt
        began.set()
        try:
            while True:
                go_on()
                time.sleep(0.001)
        except Abandoned as error:
            ended.append(type(error))
            raise

    with pytest.raises(KeyboardInterrupt):
        list(map_in_threads(work, range(2), 2))
    assert ended == [Abandoned]
    go_on()  # outside of such work nothing is asked


def test_an_error_is_raised_at_its_item() -> None:
    made = map_in_threads(lambda n: 1 // (n - 1), range(4), 2)
    assert next(made) == (0, -1)
    with pytest.raises(ZeroDivisionError):
        next(made)


def test_shards_computed_side_by_side_have_the_same_bytes() -> None:
    study, corpus, model = find_study("vig2019"), treebank(60), causal_model()
    setup = Setup(model, corpus, study.with_options({}), study.labels(corpus), 128)
    job = Job(setup, study.parts, 1, model.fingerprint)
    shards = corpus.shards(8)
    together = dict(LocalPool(at_once=3).run(job, shards))
    assert all(together[shard] == job(shard) for shard in shards)
