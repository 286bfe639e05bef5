"""Compute the golden runs and store what they give, for later commits to be compared with.

python -m tests.golden.record [NAME ...]    all runs, or only those

Do this only when numbers move on purpose, and add the reason to MOVED in `runs.py`.
"""

import json
import sys
from pathlib import Path

from tests.golden import summaries
from tests.golden.claims import Claims, judge_all
from tests.golden.runs import MOVED, RUNS, compute

STORED = Path(__file__).with_name("stored")
CLAIMS = STORED / "claims.json"


def numbers_file(name: str) -> Path:
    """The file with the numbers of a run."""
    return STORED / f"{name}.npz"


def read_claims() -> dict[str, Claims]:
    """The stored claims: of every run."""
    return json.loads(CLAIMS.read_text(encoding="utf-8")) if CLAIMS.exists() else {}


def main() -> None:
    """Store the runs that are named, or all, and print what moved on purpose."""
    STORED.mkdir(exist_ok=True)
    claims = read_claims()
    for run in RUNS:
        if sys.argv[1:] and run.name not in sys.argv[1:]:
            continue
        result = compute(run)
        summaries.write(numbers_file(run.name), summaries.summarise(result))
        claims[run.name] = judge_all(run.study, result)
        print(f"{run.name}: {numbers_file(run.name).stat().st_size / 1000:.0f} kB")
    CLAIMS.write_text(_lay_out(claims), encoding="utf-8")
    for variable, reason in MOVED.items():
        print(f"{variable} moved: {reason}")


def _lay_out(claims: dict[str, Claims]) -> str:
    """JSON with a line for every claim of a run, so that a difference is read in Git."""
    runs: list[str] = []
    for run, by_claim in sorted(claims.items()):
        lines = [f"{_dump(claim)}: {_dump(answers)}" for claim, answers in by_claim.items()]
        runs.append(f"{_dump(run)}: {{\n" + ",\n".join(lines) + "\n}")
    return "{\n" + ",\n".join(runs) + "\n}\n"


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


if __name__ == "__main__":
    main()
