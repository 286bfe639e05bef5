"""Everything in a run is in its CSV and Parquet files, number by number."""

import csv
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import xarray as xr

import headscope as hs
from headscope.errors import RunError
from headscope.explorer.site import site
from headscope.exports import export, long_table, own_variables
from headscope.results.dataset import load
from headscope.results.measure import cut
from headscope.results.run import read_run, read_settings, write_settings
from tests.references.luger2026_run import write_luger_run
from tests.references.runs import unfinished_run, write_run


@pytest.fixture(scope="module")
def clark(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("runs") / "clark", "clark2019", layers=(1, 3), heads=3)


@pytest.fixture(scope="module")
def luger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_luger_run(tmp_path_factory.mktemp("runs") / "luger", layers=1, heads=2)


def lines(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def equal(cell: Any, value: Any) -> bool:
    if isinstance(value, float) and not math.isfinite(value):
        return cell in ("", None)
    return float(cell) == value if isinstance(value, float) else str(cell) == str(value)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_every_number_is_found_under_its_coordinates(
    clark: Path, tmp_path: Path, ending: str
) -> None:
    data, out = load(clark), export(clark, tmp_path / "out", ending)  # pyright: ignore[reportArgumentType]
    index = lines(out / "index.csv") if ending == "csv" else pq.read_table(out / "index.parquet")
    entries = index if isinstance(index, list) else index.to_pylist()
    assert {entry["variable"] for entry in entries} == set(own_variables(data))
    for entry in entries:
        path, name = out / entry["file"], entry["variable"]
        rows = lines(path) if ending == "csv" else pq.read_table(path).to_pylist()
        assert len(rows) == data[name].size
        assert_same(data, name, {column: [row[column] for row in rows] for column in rows[0]})


def assert_same(data: xr.Dataset, name: str, columns: dict[str, list[Any]]) -> None:
    """A loop over all places of the variable, one for each line."""
    values, axes = data[name].values, data[name].dims
    labels = {dim: data[dim].values if dim in data.coords else range(99) for dim in axes}
    errors = data[f"{name}_se"].values if f"{name}_se" in data else None
    assert ("se" in columns) == (errors is not None)
    for line, place in enumerate(np.ndindex(values.shape)):
        for dim, at in zip(axes, place, strict=True):
            assert str(columns[str(dim)][line]) == str(labels[dim][at])
        assert equal(columns["value"][line], values[place].item())
        if errors is not None:
            assert equal(columns["se"][line], errors[place].item())


def test_heads_have_a_line_each_with_every_slice(clark: Path, tmp_path: Path) -> None:
    data = load(clark)
    rows = lines(export(clark, tmp_path / "out") / "heads.csv")
    assert [row["name"] for row in rows] == ["L1H0", "L1H1", "L1H2", "L3H0", "L3H1", "L3H2"]
    spec = "relation_accuracy~dependent_to_head~nsubj:pass"
    own = cut(data, spec)
    assert own.errors is not None
    for column, values in ((spec, own.values), (f"{spec}_se", own.errors)):
        found = [float(row[column]) for row in rows]
        np.testing.assert_array_equal(found, values.values.ravel())


def test_a_variable_of_one_number_and_a_missing_number(tmp_path: Path) -> None:
    data = xr.Dataset({"one": ((), 2.5), "holes": ("rank", [1.0, np.nan])})
    assert long_table(data, "one").to_pylist() == [{"value": 2.5}]
    assert long_table(data, "holes").to_pylist() == [
        {"rank": 0, "value": 1.0}, {"rank": 1, "value": None},
    ]  # fmt: skip


def test_tables_claims_and_settings_come_along(clark: Path, tmp_path: Path) -> None:
    out = export(clark, tmp_path / "out")
    assert len(lines(out / "tables" / "relations.csv")) == 10
    claim = lines(out / "tables" / "claims.csv")[0]
    assert claim["claim"] == "Entropy differs between heads" and claim["holds"] == "yes"
    assert json.loads((out / "run.json").read_text(encoding="utf-8"))["study"] == "clark2019"
    assert len({row["input"] for row in lines(out / "records" / "examples.csv")}) == 3


def test_records_are_written_line_by_line_and_no_token_is_a_formula(
    luger: Path, tmp_path: Path
) -> None:
    out, kept = export(luger, tmp_path / "out") / "records", read_run(luger).records
    tops = lines(out / "top_tokens.csv")
    assert {row["token"] for row in tops} >= {" the", "\n", "'=1+1", "<script>alert(1)</script>"}
    edges = [row for row in lines(out / "examples.csv") if (row["head"], row["band"]) == ("1", "5")]
    own = [one for one in kept.examples(0, 1) if one.band == 5]
    assert [float(row["weight"]) for row in edges] == [w for one in own for w in one.weight]
    assert {row["of"] for row in lines(out / "writes.csv")} == {"mean", "component"}
    tokens = [row["token"] for row in lines(out / "inputs.csv") if row["input"] == "2"]
    written = [f"'{one}" if one == "=1+1" else one for one in kept.inputs([2])[2].tokens]
    assert tokens == written


def test_parquet_keeps_records_as_they_are(luger: Path, tmp_path: Path) -> None:
    out = export(luger, tmp_path / "out", "parquet")
    for name in ("examples.parquet", "maps.parquet", "inputs.parquet"):
        assert pq.read_table(out / "records" / name).equals(pq.read_table(luger / name))


def test_bad_input_is_one_sentence_and_changes_nothing(clark: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(RunError, match="already has something in it; nothing was changed"):
        export(clark, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    with pytest.raises(RunError, match="There is no format 'xls'; there are csv, parquet, headvis"):
        export(clark, tmp_path / "new", "xls")  # pyright: ignore[reportArgumentType]
    with pytest.raises(RunError, match="shards are done"):
        export(unfinished_run(tmp_path / "stopped"), tmp_path / "new")
    with pytest.raises(RunError, match="not a run directory"):
        export(tmp_path / "nowhere", tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_what_others_are_given_names_files_but_not_where_they_lie(tmp_path: Path) -> None:
    run, home = write_luger_run(tmp_path / "home" / "run"), str(tmp_path / "home")
    about = read_settings(run)
    about["model"]["name"] = f"{home}/model"
    about["corpus"] |= {"name": "ewt.conllu", "path": f"{home}/ewt.conllu"}
    about["options"]["train"] = f"{home}/train.conllu"
    write_settings(run, about)
    out = tmp_path / "out"
    site([run], out / "site")
    hs.report(run, out=str(out / "report.html"), formats=["svg"])
    export(run, out / "csv")
    shown = json.loads((out / "csv" / "run.json").read_text())
    assert shown["model"]["name"] == "model"
    assert shown["options"]["train"] == "train.conllu"
    for file in out.rglob("*"):
        assert not file.is_file() or home.encode() not in file.read_bytes(), file
