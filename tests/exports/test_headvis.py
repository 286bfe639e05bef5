"""The tree of HeadVis: of the shape that its page reads, with the run's numbers in it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jsonschema import Draft202012Validator

from headscope.errors import RunError
from headscope.exports import export
from headscope.results.dataset import load, save
from headscope.results.records import CHECKSUMS
from headscope.results.run import read_run
from tests.references.luger2026_run import write_luger_run
from tests.references.runs import write_run

SCHEMA = json.loads(Path(__file__).with_name("headvis_schema.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_luger_run(tmp_path_factory.mktemp("runs") / "luger", layers=2, heads=2)


@pytest.fixture(scope="module")
def tree(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export(run, tmp_path_factory.mktemp("exports") / "headvis", "headvis")


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def faults(content: Any, part: str) -> list[str]:
    checker = Draft202012Validator({**SCHEMA, "$ref": f"#/$defs/{part}"})
    return [error.message for error in checker.iter_errors(content)]


@pytest.mark.parametrize(
    ("file", "part"),
    [
        ("config.json", "config"),
        ("scatter_data.json", "scatter"),
        ("server_config.json", "server"),
        ("attributions/manifest.json", "manifest"),
        *((f"heads/L{layer}H{head}.json", "head") for layer in range(2) for head in range(2)),
    ],
)
def test_every_file_is_as_the_schema_says(tree: Path, file: str, part: str) -> None:
    assert faults(read(tree / file), part) == []


def test_the_schema_refuses_other_trees(tree: Path) -> None:
    broken = read(tree / "heads" / "L0H0.json")
    broken["sequences"][0]["attention_values"] = [[0.5]]
    broken["sequences"][1]["interval"] = "top"
    del broken["histogram"]
    assert len(faults(broken, "head")) == 3


def test_there_are_no_other_files(tree: Path) -> None:
    assert sorted(path.name for path in tree.rglob("*") if path.is_file()) == [
        "L0H0.json", "L0H1.json", "L1H0.json", "L1H1.json", "config.json", "manifest.json",
        "scatter_data.json", "server_config.json",
    ]  # fmt: skip


def test_rows_of_the_scatter_are_the_runs_measures(run: Path, tree: Path) -> None:
    data, row = load(run), read(tree / "scatter_data.json")[3]
    assert (row["layer"], row["head"]) == (1, 1)
    assert row["prev_token_score"] == float(data["previous_share"][1, 1])
    assert row["induction_score"] == float(data["induction"][1, 1])
    assert row["qk_distance_variance"] == pytest.approx(float(data["distance_spread"][1, 1]) ** 2)


def test_sparse_weights_unfold_to_those_of_the_examples(run: Path, tree: Path) -> None:
    records, found = read_run(run).records, read(tree / "heads" / "L1H0.json")["sequences"]
    examples = {(min(one.band + 1, 5), one.input): one for one in records.examples(1, 0)}
    assert [(one["interval"], one["sequence_id"]) for one in found] == list(examples)
    for sequence, own in zip(found, examples.values(), strict=True):
        n = sequence["seq_len"]
        weights = np.zeros((n, n))
        weights.flat[sequence["attention_indices"]] = sequence["attention_values"]
        expected = np.zeros((n, n))
        for query, key, weight in zip(own.query, own.key, own.weight, strict=True):
            expected[query, key] = weight
        np.testing.assert_allclose(weights, expected, atol=1e-5)
        assert sequence["tokens"] == list(records.inputs([own.input])[own.input].tokens)
        assert sequence["max_activation"] == own.peak


def test_the_configuration_names_what_the_files_have(tree: Path) -> None:
    config, head = read(tree / "config.json"), read(tree / "heads" / "L1H1.json")
    assert config["heads"] == [[0, 0], [0, 1], [1, 0], [1, 1]]
    assert set(config["metrics"]) < set(read(tree / "scatter_data.json")[0])
    assert config["metric_descriptions"].keys() == set(config["metrics"])
    shown = [one["key"] for one in config["custom_plots"] + config["custom_tables"]]
    assert set(shown) == head.keys() - {"sequences", "statistics"}
    assert config["statistics_display"].keys() == head["statistics"].keys()


def test_histograms_and_their_mean_are_the_runs(run: Path, tree: Path) -> None:
    data, head = load(run), read(tree / "heads" / "L0H1.json")
    shares = data["peak_histogram"][0, 1]
    inputs = int(data.attrs["sentences"])
    assert head["histogram"]["bin_values"] == [round(share * inputs) for share in shares.values]
    assert len(head["histogram"]["bin_edges"]) == 51
    middles = data["peak"].values + 0.01
    mean = float((middles * shares).sum())
    assert head["statistics"]["mean_max_activation"] == pytest.approx(mean)
    assert head["statistics"]["n_samples"] == len(head["sequences"])
    distances = head["qk_distance_histogram"]
    assert distances["bin_values"] == data["distance_histogram"][0, 1].values.tolist()
    assert distances["bin_edges"][-1] == 1024


def test_a_run_without_examples_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    run = write_run(tmp_path / "vig", "vig2019", layers=(0, 1), heads=3)
    save(load(run).assign_attrs({CHECKSUMS: "{}"}), run / "result.nc")
    with pytest.raises(RunError, match=r"keeps no examples of heads; .* study luger2026`"):
        export(run, tmp_path / "out", "headvis")
    assert not (tmp_path / "out").exists()
