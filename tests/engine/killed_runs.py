"""Run studies ten times in forked children, kill each of them with SIGKILL, then let them finish.

Started by test_killed.py as a process of its own: one import of torch serves all children.
"""

import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch

import headscope as hs
from headscope.engine import study as running
from headscope.studies import STUDIES
from tests.engine.tiny import causal_model, treebank

KILLS = 10


OPTIONS = {
    "vig2019": {},
    "clark2019": {"probes": False, "period": 8},
    "luger2026": {"context": 12, "points": 9, "needles": 2, "depths": [50], "period": 8},
}


def run_study(study: str, out: Path) -> None:
    hs.study(study, causal_model(), treebank(96), out, **OPTIONS[study])


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def die_at_replace(count: int, before: bool) -> Callable[[], None]:
    """Die at the count-th file that is put in its place, just before or just after."""

    def prepare() -> None:
        real, left = Path.replace, [count]

        def replace(self: Path, target: Path) -> Path:
            left[0] -= 1
            if left[0] == 0 and before:
                die()
            done = real(self, target)
            if left[0] == 0:
                die()
            return done

        Path.replace = replace  # pyright: ignore[reportAttributeAccessIssue]

    return prepare


def fork_and_kill(study: str, out: Path, rng: random.Random) -> bool:
    """One attempt that ends by SIGKILL, from within or from outside; False if it finished."""
    from_within = rng.random() < 0.5
    prepare = die_at_replace(rng.randint(1, 3), rng.random() < 0.5)
    child = os.fork()
    if child == 0:
        if from_within:
            prepare()
        run_study(study, out)
        os._exit(0)
    if not from_within:
        time.sleep(rng.uniform(0.0, 0.25))
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def run_and_kill(study: str, folder: Path) -> None:
    run_study(study, folder / "calm")  # first: what it imports and compiles serves the children
    rng = random.Random(7)
    kills = sum(fork_and_kill(study, folder / "killed", rng) for _ in range(KILLS))
    print(study, kills, len(list((folder / "killed" / "shards").glob("*.npz"))))
    run_study(study, folder / "killed")


def main(folder: Path) -> None:
    torch.set_num_threads(1)  # before any other thread exists, so that forking is safe
    running.SHARD_SENTENCES = 4
    for study in STUDIES:
        run_and_kill(study, folder / study)


if __name__ == "__main__":
    sys.stderr = open(os.devnull, "w")  # noqa: PTH123, SIM115
    main(Path(sys.argv[1]))
