"""The comparison of two demos finds a single changed bit and takes NaN as equal."""

from pathlib import Path

import numpy as np
import xarray as xr

from headscope.results.dataset import save
from tests.golden.compare_runs import differences


def write(folder: Path, **values: object) -> Path:
    (folder / "run").mkdir(parents=True)
    save(xr.Dataset(values), folder / "run" / "result.nc")
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
