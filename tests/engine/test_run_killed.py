"""kill -9 at any moment leaves a run that resumes to the same result."""

from pathlib import Path

import pytest
import xarray as xr

from headscope.results import dataset as results
from headscope.studies import STUDIES
from tests.engine import killed_runs
from tests.tools.warm import forking


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for every study, with a calm and a killed run; what was counted is in `said`."""
    folder = tmp_path_factory.mktemp("killed")
    process = forking.Process(target=killed_runs.main, args=(folder,))
    process.start()
    process.join()
    assert process.exitcode == 0
    return folder


def said_of(name: str, folder: Path) -> list[str]:
    said = dict(line.split(" ", 1) for line in (folder / "said").read_text().splitlines())
    return said[name].split()


@pytest.mark.parametrize("study", STUDIES)
def test_a_run_killed_ten_times_gives_the_same_bits_as_a_calm_one(study: str, folder: Path) -> None:
    kills, shards = map(int, said_of(study, folder))
    assert kills == 10
    assert 0 < shards < killed_runs.SHARDS, "the kills should fall in the middle of the run"
    killed, calm = (results.load(folder / study / name) for name in ("killed", "calm"))
    xr.testing.assert_identical(killed, calm)


def test_a_run_killed_while_its_probes_train_goes_on_to_the_same_bits(folder: Path) -> None:
    assert said_of("training", folder) == ["killed"] * 3
    killed, calm = (results.load(folder / "training" / name) for name in ("killed", "calm"))
    assert "parsing_uas" in calm
    xr.testing.assert_identical(killed, calm)
