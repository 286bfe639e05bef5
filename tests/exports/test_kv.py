"""Which heads need all keys and values: what the plan says of heads whose numbers are known."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from headscope.errors import RunError
from headscope.exports.kv import MEASURES, plan_heads, require_distances, write_kv
from headscope.results.measure import Measure
from tests.references.grouped import with_sums

# retrieval, share of the first token, distance
HEADS = {
    "copies from far": ([0.4, 0.9, 5.0], "keep"),
    "may copy": ([0.0999, 0.9, 5.0], "keep"),
    "rests": ([0.01, 0.8, 200.0], "sink"),
    "looks near": ([0.01, 0.2, 5.0], "stream"),
    "looks far": ([0.01, 0.2, 80.0], "keep"),
    "may look far": ([0.01, 0.2, 63.9], "keep"),
}


def made_result(*, noise: float = 0.01) -> xr.Dataset:
    random, data = np.random.default_rng(0), xr.Dataset(attrs={"model": "mine", "is_causal": 1})
    axes = {"layer": [0, 1], "head": [0, 1, 2]}
    for place, name in enumerate(MEASURES):
        values = np.reshape([numbers[place] for numbers, _ in HEADS.values()], (2, 3))
        groups = values * (1 + noise * random.standard_normal((32, 2, 3)))
        groups *= values / groups.mean(0)
        unit = "tokens" if name == "distance" else "share"
        measure = Measure(name, name, "", "", "", unit=unit)
        data = with_sums(data, measure, groups * 10, np.full((32, 1, 1), 10.0), axes)
    return data


def test_a_head_keeps_less_only_where_the_whole_interval_says_so() -> None:
    rows = plan_heads(made_result())
    assert [row["plan"] for row in rows] == [plan for _, plan in HEADS.values()]
    for row, (numbers, _) in zip(rows, HEADS.values(), strict=True):
        for name, number in zip(MEASURES, numbers, strict=True):
            assert row[name] == pytest.approx(number)
            assert row[f"{name}_low"] < number < row[f"{name}_high"]


def test_a_head_whose_error_is_unknown_keeps_everything() -> None:
    rows = plan_heads(made_result(noise=0))
    assert {row["plan"] for row in rows} == {"keep"}
    assert rows[0]["retrieval_low"] is None


def test_json_and_csv_have_the_same_plan(tmp_path: Path) -> None:
    write_kv(made_result(), tmp_path)
    told = json.loads((tmp_path / "kv.json").read_text(), parse_constant=pytest.fail)
    assert told["plan"] == [["keep", "keep", "sink"], ["stream", "keep", "keep"]]
    lines = list(csv.DictReader((tmp_path / "kv.csv").open()))
    assert [line["plan"] for line in lines] == [head["plan"] for head in told["heads"]]


def test_a_run_that_cannot_have_a_plan_is_refused_with_the_reason() -> None:
    with pytest.raises(RunError, match=r"does not measure retrieval with its error; .* luger2026"):
        require_distances(made_result().drop_vars("retrieval"))
    with pytest.raises(RunError, match="mine sees the whole text; it keeps no keys and values"):
        require_distances(made_result().assign_attrs(is_causal=0))
