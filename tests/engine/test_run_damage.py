"""No bit of a run changes unnoticed: each flip is refused, computed again, or changes nothing."""

import logging
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import xarray as xr

import headscope as hs
from headscope.engine import RunFolder, measure
from headscope.errors import RunError
from headscope.results.records import EXAMPLES, INPUTS, records_of
from headscope.results.run import read_run, read_settings
from tests.references.own_study import STUDY
from tests.references.tiny_models import causal_model, treebank

FLIPS = 100  # of every kind of file


def run_study(out: Path) -> xr.Dataset:
    return hs.study("vig2019", causal_model(), treebank(48), out)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    before, measure.SHARD_SENTENCES = measure.SHARD_SENTENCES, 16
    out = tmp_path_factory.mktemp("finished") / "run"
    run_study(out)
    hs.study(STUDY, causal_model(), treebank(16), out.parent / "staged")
    measure.SHARD_SENTENCES = before
    return out


@pytest.fixture
def run(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(measure, "SHARD_SENTENCES", 16)
    return Path(shutil.copytree(finished, tmp_path / "run"))


def count_unnoticed(file: Path, notices: Callable[[], bool]) -> int:
    """How many of the flips in a file are not noticed."""
    content, rng, unnoticed = file.read_bytes(), random.Random(file.name), 0
    for _ in range(FLIPS):
        flipped = bytearray(content)
        flipped[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        file.write_bytes(flipped)
        unnoticed += not notices()
    file.write_bytes(content)
    assert not notices()
    return unnoticed


def is_refused(read: Callable[[], object]) -> bool:
    try:
        read()
    except RunError:
        return True
    return False


def test_every_flip_in_the_result_is_noticed(run: Path) -> None:
    assert count_unnoticed(run / "result.nc", lambda: read_run(run).state == "damaged") == 0


@pytest.mark.parametrize("name", [EXAMPLES, INPUTS])
def test_every_flip_in_the_examples_is_noticed(run: Path, name: str) -> None:
    result = read_run(run).data
    assert count_unnoticed(run / name, lambda: is_refused(lambda: records_of(result, run))) == 0


def test_every_flip_in_the_settings_is_noticed_or_changes_nothing(run: Path) -> None:
    file, right, settings = run / "run.json", (run / "run.json").read_bytes(), read_settings(run)

    def notices() -> bool:
        if is_refused(lambda: read_settings(run)):
            return True
        return file.read_bytes() != right and read_settings(run) == settings  # another space

    assert count_unnoticed(file, notices) == 0


@pytest.mark.parametrize(
    ("folder", "place", "ending"), [("run", "shards", ".npz"), ("staged", "stages/sums", ".bin")]
)
def test_every_flip_in_a_piece_is_noticed(
    finished: Path, folder: str, place: str, ending: str
) -> None:
    path = finished.parent / folder
    files = RunFolder(path, read_settings(path)).files(place, ending)
    assert count_unnoticed(files.file(1), lambda: files.missing_or_damaged(2) == [1]) == 0


def test_a_shard_in_the_place_of_another_is_computed_again(
    run: Path, caplog: pytest.LogCaptureFixture
) -> None:
    right = read_run(run).data
    shutil.copy(run / "shards" / "00000.npz", run / "shards" / "00001.npz")
    (run / "result.nc").unlink()
    with caplog.at_level(logging.WARNING, logger="headscope"):
        xr.testing.assert_identical(run_study(run), right)
    assert "Shard 1" in caplog.text and "Shard 0" not in caplog.text


def test_a_shard_of_another_run_is_computed_again(
    run: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    right = read_run(run).data
    hs.study("vig2019", causal_model(), treebank(48), tmp_path / "other", corner=3)
    shutil.copy(tmp_path / "other" / "shards" / "00002.npz", run / "shards" / "00002.npz")
    (run / "result.nc").unlink()
    with caplog.at_level(logging.WARNING, logger="headscope"):
        xr.testing.assert_identical(run_study(run), right)
    assert "Shard 2" in caplog.text


@pytest.mark.parametrize("name", [EXAMPLES, INPUTS])
def test_damaged_examples_are_repaired_as_the_message_says(run: Path, name: str) -> None:
    file, content = run / name, (run / name).read_bytes()
    written = (run / "shards" / "00000.npz").stat().st_mtime_ns
    for spoil in (lambda: file.write_bytes(b"PAR1 nonsense"), file.unlink):
        spoil()
        assert "run the study again into the same RUN" in read_run(run).notes[-1]
        run_study(run)
        assert file.read_bytes() == content and read_run(run).notes == ()
    assert (run / "shards" / "00000.npz").stat().st_mtime_ns == written


def test_a_full_disk_while_the_result_is_written_is_a_sentence(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (run / "result.nc").unlink()
    real = Path.write_bytes

    def fill_up(path: Path, content: bytes) -> int:
        if path.name.startswith("result.nc"):
            real(path, content[:1000])
            raise OSError(28, "No space left on device")
        return real(path, content)

    monkeypatch.setattr(Path, "write_bytes", fill_up)
    with pytest.raises(RunError, match=r"result\.nc cannot be written \(No space left on device\)"):
        run_study(run)
    assert not list(run.glob("result.nc*"))
