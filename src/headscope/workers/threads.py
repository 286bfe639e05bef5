"""How many threads torch uses: as many as cores are free, and the same for a whole run.

The number decides the last bits of sums, so a run fixes it at its start. It also decides the speed:
the threads of one operation wait for each other, and one that shares its core with another program
keeps all others waiting at every operation.

A program of ours also says how seldom Python looks through all its objects for garbage: torch and
transformers make very many that stay, and a look through all of them is felt.
"""

import gc
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CHOSEN_BY_USER = "OMP_NUM_THREADS"
LOOK = 0.1  # seconds: ten ticks of the clock by which a core is said to be idle
STAT = Path("/proc/stat")
IDLE = slice(3, 5)  # idle and waiting for a disk, in the columns of a core's line


SELDOM = 1000  # collections of the young between two of all objects; Python's own number is 10


def collect_seldom() -> None:
    """Look through all objects hardly ever; young ones are collected as often as before."""
    young, middle, _ = gc.get_threshold()
    gc.set_threshold(young, middle, SELDOM)


@contextmanager
def use_threads(count: int) -> Iterator[None]:
    """Exactly this many threads within the block."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def choose_threads(look: "Look | None" = None) -> int:
    """Torch's number of threads, but no more than cores are free; OMP_NUM_THREADS decides alone."""
    import torch

    threads = torch.get_num_threads()
    if threads == 1 or CHOSEN_BY_USER in os.environ:
        return threads
    return max(1, min(threads, (look or Look()).count_free_cores()))


class Look:
    """A look at the cores that this process may use, from now until the free ones are counted.

    Whoever has something else to do first does not wait for it.
    """

    def __init__(self) -> None:
        self._cores = _own_cores()
        self._idle = _idle_times(self._cores) if STAT.exists() else None
        self._start, self._busy = time.monotonic(), time.process_time()

    def count_free_cores(self) -> int:
        """How many cores nobody else has used meanwhile, to the nearest whole."""
        if self._idle is None:
            return round(len(self._cores) - os.getloadavg()[0])
        time.sleep(max(0.0, self._start + LOOK - time.monotonic()))
        seconds = time.monotonic() - self._start
        ticks = seconds * os.sysconf("SC_CLK_TCK")
        idle = _idle_times(self._cores)
        unused = sum(min(1.0, (idle[core] - self._idle[core]) / ticks) for core in self._cores)
        own = (time.process_time() - self._busy) / seconds  # what we have used is free for us
        return min(len(self._cores), round(unused + own))


def _own_cores() -> set[int]:
    """The cores that this process may run on; all of them where the system does not say."""
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))


def _idle_times(cores: set[int]) -> dict[int, int]:
    """Ticks that each core has been idle since the start of the machine."""
    lines = (line.split() for line in STAT.read_text(encoding="ascii").splitlines())
    idle = {
        int(name.removeprefix("cpu")): sum(map(int, times[IDLE]))
        for name, *times in lines
        if name.startswith("cpu") and name != "cpu"
    }
    return {core: idle.get(core, 0) for core in cores}
