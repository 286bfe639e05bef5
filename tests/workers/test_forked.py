"""Forked processes begin at once, pass on what goes wrong, and say so when one of them is gone."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import wait
from contextlib import contextmanager
from multiprocessing.connection import wait as wait_for
from pathlib import Path

import pytest

from headscope.errors import RunError
from headscope.workers.forked import Forked, can_fork

pytestmark = pytest.mark.skipif(not can_fork(), reason="this system cannot fork")
SOON = 30  # seconds
LARGE = 2**20  # bytes, more than a pipe holds


@contextmanager
def forked(work: Callable[[int], int], processes: int, *early: int) -> Iterator[tuple]:
    """Processes that are started after the early pieces were submitted, and those pieces."""
    found: Forked[int, int] = Forked(work, lambda: None)
    futures = [found.submit(piece) for piece in early]
    try:
        found.start(processes)
        yield found, futures
    finally:
        found.close()


def test_pieces_that_were_there_first_and_later_ones_are_all_worked_on() -> None:
    with forked(lambda n: n * n, 2, *range(10)) as (pool, early):
        later = [pool.submit(piece) for piece in range(10, 300)]
        assert [each.result(SOON) for each in [*early, *later]] == [n * n for n in range(300)]


def test_a_process_works_while_others_are_still_being_forked(tmp_path: Path) -> None:
    seen = tmp_path / "begun"

    def begin() -> None:
        with seen.open("a") as file:
            file.write(f"{os.getpid()}\n")

    found: Forked[int, bytes] = Forked(bytes, begin)
    early = [found.submit(LARGE) for _ in range(3)]
    start = found._context.Process.start
    forks: list[int] = []

    def fork(process: object) -> None:
        if found._processes:
            assert wait_for(list(found._processes), SOON)  # the first has done a piece
        forks.append(seen.stat().st_size if seen.exists() else 0)
        start(process)  # pyright: ignore[reportArgumentType]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(found._context.Process, "start", fork)
        found.start(2)
    assert forks[0] == 0 < forks[1]  # the first had begun before the second was forked
    assert sum(each.done() for each in early) >= 1  # and what it had done was taken over
    assert all(each.result(SOON) == bytes(LARGE) for each in early)
    found.close()


def test_every_process_is_begun_once_and_none_outlives_the_pool(tmp_path: Path) -> None:
    def begin() -> None:
        (tmp_path / str(os.getpid())).touch()

    pool: Forked[int, int] = Forked(lambda n: os.getpid(), begin)
    pool.start(3)
    workers = {pool.submit(n).result(SOON) for n in range(20)}
    known = {int(path.name) for path in tmp_path.iterdir()}
    assert workers <= known and len(known) <= 3 and os.getpid() not in known
    pool.close()
    end = time.monotonic() + SOON
    while any(Path(f"/proc/{process}").exists() for process in known):
        assert time.monotonic() < end, "a process is left, or its entry"
        time.sleep(0.02)


def test_an_error_is_that_of_its_piece_alone() -> None:
    def work(piece: int) -> int:
        if piece == 3:
            raise RunError("The third is wrong.")
        return piece

    with forked(work, 2, *range(6)) as (_, early):
        wait(early, SOON)
        assert [each.exception() is None for each in early] == [n != 3 for n in range(6)]
        with pytest.raises(RunError, match=r"The third is wrong\."):
            early[3].result()


def test_what_cannot_be_sent_back_is_an_error_of_its_piece() -> None:
    pool: Forked[int, object] = Forked(lambda n: (lambda: n) if n else n, lambda: None)
    pool.start(1)
    assert isinstance(pool.submit(1).exception(SOON), Exception)
    assert pool.submit(0).result(SOON) == 0
    pool.close()


def test_a_process_that_is_killed_is_said_and_nobody_waits_for_ever() -> None:
    def work(piece: int) -> int:
        if piece == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(60)
        return piece

    with forked(work, 2, 0, 1, 2) as (pool, early):
        for each in early:
            with pytest.raises(RunError, match=r"ended with exit code -9.*run the same command"):
                each.result(SOON)
        with pytest.raises(RunError, match="exit code -9"):
            pool.submit(5).result(SOON)


def test_what_is_waited_for_when_the_pool_is_closed_is_cancelled() -> None:
    with forked(lambda n: time.sleep(60) or n, 1, 0, 1) as (pool, early):
        pool.close()
        assert all(each.cancelled() for each in early)
        assert pool.submit(2).cancelled()


def test_processes_end_when_their_parent_is_killed() -> None:
    code = (
        "import os, time\n"
        "from headscope.workers.forked import Forked\n"
        "pool = Forked(lambda n: os.getpid(), lambda: None)\n"
        "pool.start(2)\n"
        "print(pool.submit(0).result(), flush=True)\n"
        "time.sleep(60)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    end = time.monotonic() + SOON
    while _is_running(child):
        assert time.monotonic() < end, "a process outlives its parent"
        time.sleep(0.02)


def _is_running(process: int) -> bool:
    """Whether a process is there and no mere entry that nobody has asked about."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
