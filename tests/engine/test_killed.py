"""kill -9 at any moment leaves a run that resumes to the same result."""

import subprocess
import sys
from pathlib import Path

import pytest
import xarray as xr

from headscope.results import dataset as results
from headscope.studies import STUDIES

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("study", STUDIES)
def test_a_run_killed_ten_times_gives_the_same_bits_as_a_calm_one(
    study: str, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "tests.engine.killed_runs", study, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)
    kills, shards = map(int, done.stdout.split())
    assert kills == 10
    assert 0 < shards < 24, "the kills should fall in the middle of the run"
    killed, calm = (results.load(tmp_path / name) for name in ("killed", "calm"))
    xr.testing.assert_identical(killed, calm)
