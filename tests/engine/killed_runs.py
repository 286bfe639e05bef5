"""Run studies in forked children, kill each of them with SIGKILL, then let them finish.

Every study is killed ten times at any moment; clark2019 also before each piece of its probes.

Started by test_killed.py as a process of its own: it has no thread, so that forking is safe.
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
from headscope.engine import measure
from headscope.studies import STUDIES, untrained
from headscope.studies.clark2019.probes import training
from tests.references.tiny_models import bidirectional_model, causal_model, treebank

KILLS = 10
SHARDS = 12  # of four sentences

OPTIONS = {
    "vig2019": {},
    "clark2019": {"probes": False, "period": 8},
    "luger2026": {"context": 12, "points": 9, "needles": 2, "depths": [50], "period": 8},
}


def run_study(study: str, out: Path) -> None:
    hs.study(study, causal_model(), treebank(4 * SHARDS), out, **OPTIONS[study])


def train_probes(out: Path) -> None:
    options = {"gradients": False, "period": 8, "probe_seeds": 1}
    hs.study("clark2019", bidirectional_model(), treebank(60), out, **options)


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
        time.sleep(rng.uniform(0.0, 0.15))
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def run_and_kill(study: str, folder: Path) -> str:
    run_study(study, folder / "calm")  # first: what it imports and compiles serves the children
    rng = random.Random(7)
    kills = sum(fork_and_kill(study, folder / "killed", rng) for _ in range(KILLS))
    shards = len(list((folder / "killed" / "shards").glob("*.npz")))
    run_study(study, folder / "killed")
    return f"{study} {kills} {shards}"


def is_killed_before(number: int, out: Path) -> bool:
    """Whether a run dies just before the file of that piece of its probes is put in its place."""
    child = os.fork()
    if child == 0:
        real = Path.replace

        def replace(self: Path, target: Path) -> Path:
            if target.parent.name == "probes" and target.name == f"{number:05d}.bin":
                die()
            return real(self, target)

        Path.replace = replace  # pyright: ignore[reportAttributeAccessIssue]
        train_probes(out)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def train_and_kill(folder: Path) -> str:
    train_probes(folder / "calm")
    pieces = len(list((folder / "calm" / "stages" / "probes").iterdir()))
    ends = [is_killed_before(number, folder / "killed") for number in range(pieces)]
    train_probes(folder / "killed")
    return " ".join(["training", *("killed" if end else "finished" for end in ends)])


def main(folder: Path) -> None:
    """Run and kill everything; what was counted is written to `said`."""
    untrained.NETWORKS, training.LEAST_STEPS = 1, 1
    sys.stderr = open(os.devnull, "w")  # noqa: PTH123, SIM115
    torch.set_num_threads(1)  # before any other thread exists, so that forking is safe
    measure.SHARD_SENTENCES = 4
    said = [run_and_kill(study, folder / study) for study in STUDIES]
    measure.SHARD_SENTENCES = 16
    said.append(train_and_kill(folder / "training"))
    (folder / "said").write_text("\n".join(said))
