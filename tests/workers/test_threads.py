"""As many threads as cores are free, unless the user has decided."""

import gc
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from headscope.workers import threads

PYTHONS_OWN = (700, 10, 10)  # thresholds that a program starts with


def stat(idle: dict[int, int]) -> str:
    """The lines of /proc/stat for cores that have been idle for so many ticks."""
    lines = [f"cpu{core} 9 9 9 {ticks} 1 0 0 0 0 0" for core, ticks in idle.items()]
    return "\n".join(["cpu  1 2 3 4 5 6 7 8 9 0", *lines, "intr 1 2 3"]) + "\n"


@pytest.mark.parametrize(("busy", "free"), [((), 4), ((0,), 3), ((0, 2), 2), ((0, 1, 2, 3), 0)])
def test_free_cores_are_those_that_are_idle_for_a_moment(
    busy: tuple[int, ...], free: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, hertz = tmp_path / "stat", os.sysconf("SC_CLK_TCK")
    file.write_text(stat(dict.fromkeys(range(8), 100)))

    clock = [0.0]

    def wait(seconds: float) -> None:
        clock[0] += seconds
        done = round(seconds * hertz)
        file.write_text(stat({core: 100 + (0 if core in busy else done) for core in range(8)}))

    monkeypatch.setattr(threads, "STAT", file)
    monkeypatch.setattr(time, "sleep", wait)
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(time, "process_time", lambda: 0.0)
    monkeypatch.setattr(threads, "_own_cores", lambda: {0, 1, 2, 3})
    assert threads.Look().count_free_cores() == free


def test_a_look_that_was_begun_before_other_work_takes_no_time_and_leaves_out_that_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, hertz = tmp_path / "stat", os.sysconf("SC_CLK_TCK")
    file.write_text(stat(dict.fromkeys(range(4), 100)))
    monkeypatch.setattr(threads, "STAT", file)
    monkeypatch.setattr(threads, "_own_cores", lambda: {0, 1, 2, 3})
    clock, used = [0.0], [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(time, "process_time", lambda: used[0])
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    look = threads.Look()
    clock[0], used[0] = 2.0, 2.0  # one core busy with our work, one with another's
    file.write_text(stat({0: 100, 1: 100, 2: 100 + 2 * hertz, 3: 100 + 2 * hertz}))
    assert look.count_free_cores() == 3
    assert slept == [0.0]


@pytest.mark.parametrize(("free", "chosen"), [(0, 1), (3, 3), (99, 8)])
def test_the_number_of_threads_is_that_of_free_cores_and_at_least_one(
    free: int, chosen: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(threads.CHOSEN_BY_USER, raising=False)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 8)
    monkeypatch.setattr(threads.Look, "count_free_cores", lambda self: free)
    assert threads.choose_threads() == chosen


def test_a_number_set_by_the_user_is_kept_however_busy_the_machine_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(threads.CHOSEN_BY_USER, "8")
    monkeypatch.setattr(torch, "get_num_threads", lambda: 8)
    monkeypatch.setattr(threads.Look, "count_free_cores", lambda self: 0)
    assert threads.choose_threads() == 8


def test_workers_are_imported_without_torch() -> None:
    code = (
        "import sys, headscope.workers.ray, headscope.workers.threads; "
        "print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_all_objects_are_looked_through_seldom_and_young_ones_as_often_as_before() -> None:
    before = gc.get_threshold()
    try:
        gc.set_threshold(*PYTHONS_OWN)
        threads.collect_seldom()
        young, middle, old = gc.get_threshold()
        assert (young, middle) == PYTHONS_OWN[:2]
        assert old > 50 * PYTHONS_OWN[2]
    finally:
        gc.set_threshold(*before)
