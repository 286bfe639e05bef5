"""A stage is computed piece by piece after the shards: kept, resumed, and done by any engine."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest
import xarray as xr

import headscope as hs
from tests.engine.own_study import STUDY
from tests.engine.tiny import causal_model, treebank

SUMS = [0, 1, 3, 6, 10]


def run(out: Path, **options: Any) -> xr.Dataset:
    return hs.study(STUDY, causal_model(), treebank(40), out, **options)


def begun(folder: Path) -> list[str]:
    return sorted(path.name.split("-")[1] for path in folder.glob("begun-*"))


def test_every_piece_is_computed_once_and_kept(tmp_path: Path) -> None:
    found = run(tmp_path)
    assert json.loads(found.attrs["sums"]) == SUMS
    assert begun(tmp_path) == list("01234")
    kept = sorted(path.name for path in (tmp_path / "stages" / "sums").iterdir())
    assert kept == [f"{number:05d}.bin" for number in range(5)]


def test_a_continued_run_computes_only_the_pieces_that_are_missing(tmp_path: Path) -> None:
    first = run(tmp_path)
    (tmp_path / "result.nc").unlink()
    (tmp_path / "stages" / "sums" / "00003.bin").unlink()
    for trace in tmp_path.glob("begun-*"):
        trace.unlink()
    xr.testing.assert_identical(run(tmp_path), first)
    assert begun(tmp_path) == ["3"]


def test_a_damaged_piece_is_computed_again_and_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run(tmp_path)
    (tmp_path / "result.nc").unlink()
    file = tmp_path / "stages" / "sums" / "00002.bin"
    file.write_bytes(file.read_bytes()[:-1])
    with caplog.at_level(logging.WARNING, logger="headscope"):
        assert json.loads(run(tmp_path).attrs["sums"]) == SUMS
    assert "Sum 2" in caplog.text and "computed again" in caplog.text


def test_a_stage_without_pieces_leaves_no_folder(tmp_path: Path) -> None:
    assert json.loads(run(tmp_path, sums=0).attrs["sums"]) == []
    assert not (tmp_path / "stages").exists()
