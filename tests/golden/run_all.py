"""Write the whole run directories of the golden runs, to compare two commits bit for bit.

python -m tests.golden.run_all OUT

With PYTHONPATH=OTHER/src they are those of another commit. Then
python -m tests.golden.compare_runs BEFORE AFTER says what differs.
"""

import sys
import time
from pathlib import Path

from tests.golden.runs import RUNS, compute


def main() -> int:
    """Compute every run; refuse a folder with anything in it, as finished runs are only read."""
    if len(sys.argv) != 2:
        print(__doc__)
        return 2
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    if any(out.iterdir()):
        print(f"{out} is not empty; give a new folder.")
        return 2
    for run in RUNS:
        start = time.perf_counter()
        compute(run, out / run.name)
        print(f"{run.name}: {time.perf_counter() - start:.1f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
