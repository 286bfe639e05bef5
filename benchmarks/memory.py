"""Peak memory of the vig2019 study against the size of the corpus; the aim: within 10 %.

python -m benchmarks.memory                      2,000 and 100,000 sentences, a tiny random network
python -m benchmarks.memory --sentences 500 5000
python -m benchmarks.memory --states             what the sums of each study take for 1,024 heads

Each number is the peak resident memory of a process of its own that opens a Parquet file and runs
the study. The corpus is written by another process; sentences have about 28 tokens.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import headscope as hs
from headscope.engine import Setup
from headscope.metrics import Grid
from headscope.studies import STUDIES, find_study
from headscope.text.corpus import Corpus

SHAPE = (2, 2, 32)  # layers, heads, width: what is kept per sentence is small, what leaks is not


def state_sizes(study: str, grid: Grid) -> dict[str, int]:
    """Bytes of the sums of every metric for so many heads, with the labels of the demo corpus."""
    model, corpus, chosen = hs.load("mini-bert"), hs.demo_corpus(), find_study(study)
    options = chosen.settle(model, corpus, chosen.with_options({}))
    setup = Setup(model, corpus, options, chosen.labels(corpus), 1024)
    sizes = {}
    for name, metric in chosen.metrics(setup).items():
        known: Any = metric  # a metric is a frozen dataclass; only those of heads have a grid
        shaped = replace(known, grid=grid) if hasattr(metric, "grid") else known
        sizes[name] = sum(values.nbytes for values in shaped.zero().values())
    return sizes


def print_states() -> None:
    """A row for each study: all sums, and the largest of them."""
    print("| study | sums of 1,024 heads | the three largest |\n|---|---|---|")
    for study in STUDIES:
        sizes = state_sizes(study, Grid(tuple(range(32)), 32))
        largest = sorted(sizes, key=lambda name: -sizes[name])[:3]
        parts = ", ".join(f"{name} {sizes[name] / 2**20:.1f}" for name in largest)
        print(f"| {study} | {sum(sizes.values()) / 2**20:.0f} MiB | {parts} |")


def write(path: Path, sentences: int) -> None:
    usual = [each for each in hs.demo_corpus() if 15 <= len(each.words) <= 35]
    Corpus.write(path, islice(cycle(usual), sentences))


def study(path: Path) -> None:
    from benchmarks.study import make_random

    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        hs.study("vig2019", make_random("tiny", *SHAPE), Corpus.open(path), folder)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{peak} {time.perf_counter() - start}")


def run(*arguments: str) -> str:
    command = [sys.executable, "-m", "benchmarks.memory", *arguments]
    one_thread = {**os.environ, "OMP_NUM_THREADS": "1"}  # a network so small gains nothing by two
    done = subprocess.run(command, check=True, text=True, env=one_thread, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL)  # fmt: skip
    return done.stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sentences", type=int, nargs=2, default=[2_000, 100_000])
    parser.add_argument("--states", action="store_true", help="sizes of sums, without a study")
    parser.add_argument("--write", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--study", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.states:
        return print_states()
    if given.write:
        return write(Path(given.write[0]), int(given.write[1]))
    if given.study:
        return study(given.study)
    peaks = []
    with tempfile.TemporaryDirectory() as folder:
        for sentences in given.sentences:
            path = f"{folder}/{sentences}.parquet"
            run("--write", path, str(sentences))
            peak, seconds = map(float, run("--study", path).split())
            peaks.append(peak)
            print(f"{sentences:9,d} sentences  {peak:8.0f} MiB  {seconds:7.1f} s", flush=True)
    print(f"{peaks[1] / peaks[0]:.3f} × (the aim: at most 1.1)")
    return None


if __name__ == "__main__":
    main()
