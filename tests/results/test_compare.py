"""Comparing runs: the intervals, the order, and what is refused."""

import csv
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from headscope.cli import app
from headscope.errors import RunError
from headscope.results.compare import (
    Comparison,
    clear_and_all,
    compare,
    compare_results,
    largest,
    write_csv,
)
from headscope.results.dataset import save
from headscope.results.measure import Measure, attach

Z = 1.959963984540054
SHARE = Measure("share", "Share of attention", "What a tag receives.", "", "")


def result(
    values: np.ndarray, errors: np.ndarray | None, tags: tuple[str, ...], study: str = "mine"
) -> xr.Dataset:
    layers, heads, _ = values.shape
    axes = {"layer": np.arange(layers), "head": np.arange(heads), "tag": list(tags)}
    data = xr.Dataset(attrs={"study": study})
    data["share"] = xr.DataArray(values, coords=axes, dims=list(axes))
    if errors is not None:
        data["share_se"] = xr.DataArray(errors, coords=axes, dims=list(axes))
    return attach(data, [SHARE])


def random_result(seed: int, tags: tuple[str, ...] = ("DET", "NOUN")) -> xr.Dataset:
    random = np.random.default_rng(seed)
    shape = (3, 2, len(tags))
    return result(random.random(shape), random.random(shape) * 0.1, tags)


def compared(a: xr.Dataset, b: xr.Dataset) -> Comparison:
    return compare_results(a, b, names=("a", "b"))


@given(st.integers(0, 10_000))
@settings(max_examples=20)
def test_every_row_equals_a_plain_reading_of_the_interval(seed: int) -> None:
    a, b = random_result(seed), random_result(seed + 1)
    rows = largest(compared(a, b))
    assert len(rows) == 3 * 2 * 2
    for row in rows:
        at = {"layer": row.layer, "head": row.head, "tag": row.at[0]}
        first, second = float(a["share"].sel(at)), float(b["share"].sel(at))
        error = np.hypot(float(a["share_se"].sel(at)), float(b["share_se"].sel(at)))
        both = np.concatenate([data["share"].sel(tag=row.at[0]).values.ravel() for data in (a, b)])
        assert row.difference == pytest.approx(second - first)
        assert row.low == pytest.approx(second - first - Z * error)
        assert row.high == pytest.approx(second - first + Z * error)
        assert row.effect == pytest.approx((second - first) / both.std())


@given(st.integers(0, 10_000))
@settings(max_examples=20)
def test_swapping_the_runs_turns_every_sign(seed: int) -> None:
    a, b = random_result(seed), random_result(seed + 1)
    there, back = largest(compared(a, b)), largest(compared(b, a))
    assert [row.difference for row in there] == [-row.difference for row in back]
    assert [row.low for row in there] == pytest.approx([-row.high for row in back])


def test_a_run_does_not_differ_from_itself() -> None:
    same = compared(random_result(1), random_result(1))
    assert clear_and_all(same) == (0, 12)
    assert {row.difference for row in largest(same)} == {0.0}


def test_a_sure_difference_comes_before_a_wilder_one_that_may_be_noise() -> None:
    values, errors = np.zeros((1, 3, 1)), np.full((1, 3, 1), 0.01)
    later, unsure = values.copy(), errors.copy()
    later[0, 1], later[0, 2] = 0.5, 0.9
    unsure[0, 2] = 1.0
    rows = largest(compared(result(values, errors, ("NOUN",)), result(later, unsure, ("NOUN",))))
    assert [row.head for row in rows] == [1, 2, 0]
    assert [row.is_clear for row in rows] == [True, False, False]


def test_the_intervals_cover_the_truth_as_often_as_they_say() -> None:
    random = np.random.default_rng(0)
    truth, errors = random.random((40, 50, 1)), np.full((40, 50, 1), 0.05)
    noisy = [truth + random.normal(0, 0.05, truth.shape) for _ in range(2)]
    found = compared(*(result(values, errors, ("NOUN",)) for values in noisy))
    clear, count = clear_and_all(found)
    assert count == 2000
    assert 0.035 < clear / count < 0.065


def test_labels_of_one_run_alone_are_left_out_and_said() -> None:
    found = compared(random_result(1, ("DET", "NOUN")), random_result(2, ("NOUN", "VERB")))
    assert {row.at for row in largest(found)} == {("NOUN",)}
    assert "Only one of the runs has tag DET, VERB." in found.notes


def test_without_standard_errors_there_is_no_interval_and_it_is_said() -> None:
    a, b = random_result(1), random_result(2).drop_vars("share_se")
    found = compared(a, b)
    assert all(np.isnan(row.low) and not row.is_clear for row in largest(found))
    assert found.notes == ("Without standard errors, hence without interval: share.",)


def test_missing_values_are_no_difference() -> None:
    a, b = random_result(1), random_result(2)
    a["share"][0, 0, 0] = np.nan
    assert len(largest(compared(a, b))) == 11


def test_other_shapes_and_studies_are_refused_by_what_differs() -> None:
    wide = result(np.zeros((3, 4, 1)), None, ("NOUN",))
    with pytest.raises(RunError, match="a has 3 × 2 layers × heads, b 3 × 4"):
        compared(random_result(1), wide)
    other = result(np.zeros((3, 2, 1)), None, ("NOUN",), study="clark2019")
    with pytest.raises(RunError, match="a is a run of mine, b of clark2019"):
        compared(random_result(1), other)
    with pytest.raises(RunError, match="share no measure"):
        compared(random_result(1), random_result(1).rename(share="part", share_se="part_se"))


def write_run(path: Path, shift: float = 0.0) -> Path:
    data = random_result(1)
    data["share"][1, 1, 0] += shift
    path.mkdir()
    save(data, path / "result.nc")
    return path


def test_runs_are_compared_from_disk_and_written_as_csv(tmp_path: Path) -> None:
    a, b = write_run(tmp_path / "a"), write_run(tmp_path / "b", shift=3.0)
    found = compare(a, b / "result.nc")
    assert write_csv(found, tmp_path / "out.csv") == 12
    with (tmp_path / "out.csv").open(newline="") as file:
        first = next(csv.DictReader(file))
    assert (first["measure"], first["layer"], first["head"]) == ("share", "1", "1")
    assert first["title"] == "Share of attention: DET"
    assert float(first["difference"]) == pytest.approx(3.0)


def test_the_command_prints_the_titles_of_measures(tmp_path: Path) -> None:
    a, b = write_run(tmp_path / "a"), write_run(tmp_path / "b", shift=3.0)
    printed = CliRunner().invoke(app, ["compare", str(a), str(b)], env={"COLUMNS": "160"})
    assert printed.exit_code == 0
    assert "L1H1" in printed.output and "Share of attention: DET" in printed.output


def test_a_variable_that_no_measure_declares_is_not_compared() -> None:
    a = random_result(1).assign(counts=(("layer", "head"), np.ones((3, 2))))
    assert [one.name for one in compared(a, a).measures] == ["share"]


def test_an_unwritable_file_and_an_unfinished_run_are_said(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a")
    with pytest.raises(RunError, match="cannot be written"):
        write_csv(compare(a, a), tmp_path / "no" / "such" / "folder.csv")
    (tmp_path / "b").mkdir()
    with pytest.raises(RunError, match=r"has no result\.nc"):
        compare(a, tmp_path / "b")


def test_labels_of_a_run_cannot_command_the_terminal(tmp_path: Path) -> None:
    for name, shift in (("a", 0.0), ("b", 3.0)):
        data = random_result(1).assign_coords(tag=["\x1b]0;x\x07[red]", "NOUN"])
        data["share"][1, 1, 0] += shift
        (tmp_path / name).mkdir()
        save(data, tmp_path / name / "result.nc")
    asked = ["compare", str(tmp_path / "a"), str(tmp_path / "b")]
    printed = CliRunner().invoke(app, asked, env={"COLUMNS": "160"})
    assert printed.exit_code == 0
    assert "\ufffd]0;x\ufffd[red]" in printed.output and "\x1b]" not in printed.output
