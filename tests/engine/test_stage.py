"""A stage is computed piece by piece after the shards: kept, resumed, and done by any engine."""

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import xarray as xr

import headscope as hs
from headscope.engine import Setup, Stage
from headscope.results import dataset as results
from tests.references.own_study import FILE, STUDY
from tests.references.tiny_models import causal_model, treebank

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


@pytest.mark.parametrize("spoil", [Path.unlink, lambda file: file.write_text("[0, 1")])
def test_a_file_of_a_stage_is_written_again_from_its_pieces(
    spoil: Callable[[Path], object], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first = run(tmp_path)
    spoil(tmp_path / FILE)
    for trace in tmp_path.glob("begun-*"):
        trace.unlink()
    with caplog.at_level(logging.WARNING, logger="headscope"):
        xr.testing.assert_identical(run(tmp_path), first)
    assert f"{FILE} is missing or damaged. It is written again." in caplog.text
    assert json.loads((tmp_path / FILE).read_text()) == SUMS
    assert begun(tmp_path) == []
    xr.testing.assert_identical(results.load(tmp_path), first)


def test_a_file_of_a_stage_is_written_again_though_a_piece_is_gone(tmp_path: Path) -> None:
    run(tmp_path)
    (tmp_path / FILE).unlink()
    (tmp_path / "stages" / "sums" / "00001.bin").unlink()
    run(tmp_path)
    assert json.loads((tmp_path / FILE).read_text()) == SUMS


def test_every_stage_says_how_far_it_is_and_which_are_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(tmp_path)
    shards, sums = capsys.readouterr().err.splitlines()
    assert shards.startswith("shards, then sums, own on tiny-causal: 40 sentences, ")
    assert sums.startswith("sums, own on tiny-causal: 5 pieces, ")


def test_stages_run_in_their_order_each_on_the_result_of_those_before() -> None:
    @dataclass(frozen=True)
    class Noted(Stage[int]):
        name: str

        def finish(
            self, setup: Setup, result: xr.Dataset, outcomes: Mapping[int, bytes], folder: Path
        ) -> xr.Dataset:
            assert "self_share" in result and not outcomes
            return result.assign_attrs(seen=result.attrs.get("seen", "") + self.name)

    study = replace(STUDY, later_stages=(Noted("a"), Noted("b")))
    assert hs.study(study, causal_model(), treebank(40)).attrs["seen"] == "ab"
