"""The comparison of two demos finds a single changed bit and takes NaN as equal."""

from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from headscope.results.dataset import save
from tests.golden.compare_runs import changed_files, closeness, differences, main


def write(folder: Path, attributes: dict[str, str] | None = None, **values: object) -> Path:
    (folder / "run").mkdir(parents=True)
    save(xr.Dataset(values, attrs=attributes), folder / "run" / "result.nc")
    return folder


def test_the_same_numbers_are_no_difference_and_one_bit_is(tmp_path: Path) -> None:
    values = np.array([1.0, np.nan, 0.1 + 0.2])
    a = write(tmp_path / "a", x=("layer", values), label=("layer", ["a", "b", "c"]))
    b = write(tmp_path / "b", x=("layer", values), label=("layer", ["a", "b", "c"]))
    assert list(differences(a, b)) == []
    nearly = np.nextafter(values, 1.0)
    c = write(tmp_path / "c", x=("layer", nearly), label=("layer", ["a", "b", "d"]))
    assert list(differences(a, c)) == [
        "run: label differs in 1 of 3 values",
        "run: x differs in 1 of 3 values",
    ]


def test_missing_runs_variables_and_other_shapes_are_listed(tmp_path: Path) -> None:
    a = write(tmp_path / "a", x=("layer", [1.0]), y=("layer", [1.0]))
    b = write(tmp_path / "b", x=("layer", [1.0, 2.0]))
    assert list(differences(a, b)) == [
        "run: x is {'layer': 1}, then {'layer': 2}",
        "run: y is only in the first",
    ]
    (tmp_path / "none").mkdir()
    assert next(differences(tmp_path / "none", a)).endswith("has no runs")


def test_close_numbers_are_listed_and_do_not_count_as_differences(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    values = np.array([100.0, np.nan, 0.1])
    a = write(tmp_path / "a", x=("layer", values), y=("layer", [1, 2, 3]), z=("layer", values))
    near = values + np.array([0, 0, 1e-3])  # a hundred-thousandth of the largest
    b = write(tmp_path / "b", x=("layer", near), y=("layer", [1, 2, 3]), z=("layer", values))
    close = closeness(a, b)
    assert (close.equal, close.differences) == (2, [])
    assert close.moved == {"run: x": pytest.approx(1e-5)}
    assert main([str(a), str(b), "--close"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "2 variables are the same, bit for bit; 1 moved",
        "  run: x by 1.0e-05",
        "no variable moved by more than 2e-05 of its largest value",
    ]
    assert main([str(a), str(b)]) == 1
    assert capsys.readouterr().out == "run: x differs in 1 of 3 values\n"


def test_far_numbers_other_integers_and_other_unknown_values_are_not_close(tmp_path: Path) -> None:
    values = np.array([100.0, np.nan, 0.1])
    a = write(tmp_path / "a", x=("layer", values), y=("layer", [1, 2, 3]), z=("layer", values))
    far = values + np.array([0, 0, 1e-2])
    known = np.nan_to_num(values)
    b = write(tmp_path / "b", x=("layer", far), y=("layer", [1, 2, 4]), z=("layer", known))
    close = closeness(a, b)
    assert close.equal == 0
    assert close.moved == {"run: x": pytest.approx(1e-4)}
    assert close.differences == [
        "run: x differs in 1 of 3 values",
        "run: y differs in 1 of 3 values",
        "run: z differs in 1 of 3 values",
    ]
    assert main([str(a), str(b), "--close"]) == 1


def test_other_files_are_compared_by_their_checksums(tmp_path: Path) -> None:
    sums = {"exemplars_sha256": "12", "records_sha256": '{"edges.parquet": "34", "maps": "56"}'}
    a = write(tmp_path / "a", sums, x=("layer", [1.0]))
    other = {**sums, "records_sha256": '{"edges.parquet": "35", "maps": "56"}'}
    b = write(tmp_path / "b", other, x=("layer", [1.0]))
    assert list(changed_files(a, a)) == []
    assert list(changed_files(a, b)) == ["run: edges.parquet differs"]
    assert (main([str(a), str(b)]), main([str(a), str(b), "--files"])) == (0, 1)
