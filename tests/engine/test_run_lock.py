"""Only one process works on a run; a lock does not outlive its process."""

import os
import signal
from pathlib import Path

import pytest

import headscope as hs
from headscope.engine import lock_run
from headscope.errors import RunError
from tests.references.own_study import STUDY
from tests.references.tiny_models import causal_model, treebank


def hold_in_child(path: Path) -> tuple[int, int]:
    """A child that holds the lock until it is killed."""
    ready, say = os.pipe()
    child = os.fork()
    if child == 0:
        with lock_run(path):
            os.write(say, b"1")
            signal.pause()
    assert os.read(ready, 1) == b"1"
    return child, ready


def test_a_second_process_is_refused_in_a_sentence_until_the_first_is_dead(tmp_path: Path) -> None:
    child, _ = hold_in_child(tmp_path / "run")
    left = tmp_path / "run" / "result.nc.0.unfinished"
    left.write_bytes(b"half")
    try:
        with pytest.raises(RunError, match="Another process is working on"):
            hs.study(STUDY, causal_model(), treebank(8), tmp_path / "run")
        assert left.exists()  # what the other process is writing is not cleared away
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    hs.study(STUDY, causal_model(), treebank(8), tmp_path / "run")
    assert not left.exists()


def test_two_studies_in_one_process_do_not_share_a_run(tmp_path: Path) -> None:
    with lock_run(tmp_path), pytest.raises(RunError, match="Another process"), lock_run(tmp_path):
        pass
    with lock_run(tmp_path):
        pass


def test_a_lock_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.lock").symlink_to(tmp_path / "elsewhere")
    with (
        pytest.raises(RunError, match=r"run\.lock is not a plain"),
        lock_run(tmp_path / "run"),
    ):
        pass
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("name", ["shards", "stages", "figures", "tables", "result.nc"])
def test_a_run_directory_with_links_is_not_written_to(tmp_path: Path, name: str) -> None:
    run, outside = tmp_path / "run", tmp_path / "outside"
    run.mkdir()
    outside.mkdir()
    (outside / "mine.unfinished").write_bytes(b"precious")
    (run / name).symlink_to(outside)
    with pytest.raises(RunError, match=f"{name} is not a (folder|plain file)"):
        hs.study(STUDY, causal_model(), treebank(8), run)
    assert [path.name for path in outside.iterdir()] == ["mine.unfinished"]
