"""Fifty visitors for a minute, some of them hostile: nothing breaks, nobody starves.

    python -m benchmarks.server [--model mini-gpt2] [RUN...]

The visitors ask for pages, measures, cards and traces, and send wrong hosts, wrong origins, paths
that climb, broken JSON and bodies that are too large.
"""

import argparse
import asyncio
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx

import headscope as hs
from tests.explorer.crowd import Tally, crowd, percentile, resident

REST = 5  # seconds after the crowd has left until its memory is counted


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="*", type=Path, help="a short one is made if none is given")
    parser.add_argument("--model", default="mini-gpt2")
    parser.add_argument("--visitors", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        visit(asked, asked.runs or [short_run(asked.model, Path(folder) / "run")])


def short_run(model: str, folder: Path) -> Path:
    hs.study("vig2019", hs.load(model), hs.demo_corpus(), folder, sentences=40)
    return folder


def visit(asked: argparse.Namespace, runs: list[Path]) -> None:
    command = [sys.executable, "-m", "headscope", "serve", "--no-browser", "--port", "0"]
    process = subprocess.Popen(
        [*command, "--model", asked.model, *map(str, runs)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    place = next(w for w in process.stdout.readline().split() if w.startswith("http")).rstrip("/")
    try:
        run = httpx.get(f"{place}/api/session").json()["runs"][0]["slug"]
        asyncio.run(crowd(place, run, asked.visitors, 10))  # the model is loaded, caches are full
        before = resident(process.pid)
        tally = asyncio.run(crowd(place, run, asked.visitors, asked.seconds))
        time.sleep(REST)
        after = resident(process.pid)
    finally:
        process.terminate()
        process.wait()
    report(asked, tally, before, after)


def report(asked: argparse.Namespace, tally: Tally, before: float, after: float) -> None:
    total = tally.good.total() + tally.bad.total()
    print(f"{asked.visitors} visitors, {asked.seconds:g} s, {total:,} requests, ", end="")
    print(f"{total / asked.seconds:,.0f} a second, slowest answer {tally.slowest:.1f} s")
    answered, wanted = tally.traces[200], tally.traces.total()
    print(f"traces: {answered} of {wanted} answered ({answered / max(1, wanted):.0%}), ", end="")
    print(_times(tally.waits))
    print(f"reads: {len(tally.reads):,}, {_times(tally.reads)}")
    print(f"good requests: {dict(sorted(tally.good.items()))}")
    print(f"bad requests:  {dict(sorted(tally.bad.items()))}")
    print(f"memory: {before:.0f} MB before, {after:.0f} MB after")
    if tally.broken:
        sys.exit(f"statuses that must not occur: {tally.broken}")


def _times(seconds: list[float]) -> str:
    median, slow = percentile(seconds, 0.5), percentile(seconds, 0.95)
    return f"median {median:.2f} s, 95th percentile {slow:.2f} s"


if __name__ == "__main__":
    main()
