"""Random damage until the time is over: `python -m tests.fuzz --seed S --seconds N [NAME...]`.

Every input is drawn from the seed and its own number, so that a failure can be repeated with
`--first NUMBER`. Prints the tracebacks and exits with 1 if there are any.
"""

import argparse
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import FrameType

from headscope.errors import HeadscopeError
from tests.fuzz.fuzzers import FUZZERS, Fuzzer

LONGEST = 30  # seconds for one input


@dataclass
class Outcome:
    """How many inputs were tried and refused, and the tracebacks of the others."""

    inputs: int = 0
    refused: int = 0
    failures: list[str] = field(default_factory=list)


def main() -> None:
    """Run the fuzzers one after the other, each for its share of the time."""
    parser = argparse.ArgumentParser(description=__doc__)
    names = [one.name for one in FUZZERS]
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(names)}")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    asked = parser.parse_args()
    chosen = [one for one in FUZZERS if not asked.names or one.name in asked.names]
    failed = False
    for kind in chosen:
        outcome = fuzz(kind, asked.seed, asked.seconds / len(chosen), asked.first)
        print(f"{kind.name}: {outcome.inputs:,} inputs, {outcome.refused:,} refused, ", end="")
        print(f"{len(outcome.failures)} failures", flush=True)
        print("".join(outcome.failures[:10]), end="", flush=True)
        failed = failed or bool(outcome.failures)
    sys.exit(1 if failed else 0)


def fuzz(kind: type[Fuzzer], seed: int, seconds: float, first: int = 0) -> Outcome:
    """Feed one fuzzer until the time is over."""
    outcome = Outcome()
    with tempfile.TemporaryDirectory() as folder:
        fuzzer = kind(Path(folder))
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            number = first + outcome.inputs
            outcome.inputs += 1
            try:
                with _limited():
                    fuzzer.one(Random(f"{seed} {kind.name} {number}"))
            except HeadscopeError:
                outcome.refused += 1
            except Exception:
                said = f"--seed {seed} --first {number}\n{traceback.format_exc()}\n"
                outcome.failures.append(said)
    return outcome


@contextmanager
def _limited() -> Iterator[None]:
    """An input that takes too long is a failure."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"longer than {LONGEST} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(LONGEST)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


if __name__ == "__main__":
    main()
