"""Run clark2019 in forked children that are killed while its probes train, then let it finish.

Started by test_stages.py as a process of its own: one import of torch serves all children.
"""

import os
import sys
from pathlib import Path
from typing import Any

import torch

import headscope as hs
from headscope.engine import study as running
from tests.engine.killed_runs import die
from tests.engine.tiny import bidirectional_model, treebank

OPTIONS: dict[str, Any] = {"gradients": False, "period": 8, "probe_seeds": 1}


def run_study(out: Path) -> None:
    hs.study("clark2019", bidirectional_model(), treebank(60), out, **OPTIONS)


def is_killed_before(number: int, out: Path) -> bool:
    """Whether a run dies just before the file of that piece is put in its place."""
    child = os.fork()
    if child == 0:
        real = Path.replace

        def replace(self: Path, target: Path) -> Path:
            if target.parent.name == "probes" and target.name == f"{number:05d}.bin":
                die()
            return real(self, target)

        Path.replace = replace  # pyright: ignore[reportAttributeAccessIssue]
        run_study(out)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def main(folder: Path) -> None:
    torch.set_num_threads(1)  # before any other thread exists, so that forking is safe
    running.SHARD_SENTENCES = 16
    run_study(folder / "calm")
    for number in range(len(list((folder / "calm" / "stages" / "probes").iterdir()))):
        print("killed" if is_killed_before(number, folder / "killed") else "finished")
    run_study(folder / "killed")


if __name__ == "__main__":
    sys.stderr = open(os.devnull, "w")  # noqa: PTH123, SIM115
    main(Path(sys.argv[1]))
