"""What is said of a result is computed once, stored with it, and read back as it was."""

from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from scipy import stats

import headscope as hs
from headscope.errors import RunError
from headscope.results.claims import Evidence, Replicates, claim
from headscope.results.dataset import load, save
from headscope.results.measure import Measure, attach
from headscope.results.replicates import share_interval
from headscope.results.statements import (
    Choice,
    Statements,
    Tabulation,
    make_statements,
    read_statements,
    write_statements,
)
from headscope.results.tables import MeasureColumn, head_rows, layer_rows, tabulate
from headscope.studies.clark2019.published import (
    OF_MEASURES,
    STRUCTURAL_PROBE,
    published_relation,
)
from tests.references.results import make_result
from tests.references.tiny_models import MODELS, annotated

FAST = {"gradients": False, "repeated_sequences": 2, "period": 8, "probe_seeds": 1}


@pytest.fixture(scope="module", params=list(MODELS))
def clark(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> xr.Dataset:
    folder = tmp_path_factory.mktemp("runs") / "run"
    hs.study("clark2019", MODELS[request.param](), annotated(), folder, **FAST)
    return load(folder)


@pytest.fixture(scope="module", params=list(MODELS))
def vig(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> xr.Dataset:
    folder = tmp_path_factory.mktemp("runs") / "run"
    hs.study("vig2019", MODELS[request.param](), annotated(), folder)
    return load(folder)


def rows_of(result: xr.Dataset, name: str) -> tuple:
    table = read_statements(result).table(name)
    assert table is not None
    return table.rows


def plainly_best(result: xr.Dataset, relation: str) -> tuple[float, str, str, float, float]:
    """The best head of a relation, read from the counts one by one."""
    correct = result["relation_accuracy_numerator"].sel(relation=relation).sum("group")
    scored = result["relation_accuracy_denominator"].sel(relation=relation).sum("group")
    best = (-1.0, "", "", 0.0, 0.0)
    for layer in result["layer"].values:
        for head in result["head"].values:
            for direction in result["direction"].values:
                total = float(scored.sel(direction=direction))
                if total < float(scored.max()):  # a causal model sees the other words here
                    continue
                right = float(correct.sel(layer=layer, head=head, direction=direction))
                if right / total > best[0]:
                    best = (right / total, f"L{layer}H{head}", str(direction), right, total)
    return best


def test_the_stored_best_head_of_every_relation_is_the_one_of_the_counts(
    clark: xr.Dataset,
) -> None:
    rows = rows_of(clark, "relations")
    scored = clark["relation_accuracy_denominator"].sum(("group", "direction"))
    known = set(scored["relation"].values[scored.values > 0].tolist())
    assert {row["relation"] for row in rows} == known - {"root", "punct"}  # left out by default
    for row in rows:
        share, head, direction, right, total = plainly_best(clark, row["relation"])
        assert (row["head"], row["accuracy"]) == (head, share)
        assert row["direction"].split(" ")[0] == direction.split("_")[0]
        layer, number = head[1:].split("H")
        at = {"layer": int(layer), "head": int(number), "direction": direction}
        ends = clark["relation_accuracy_ci"].sel(at | {"relation": row["relation"]})
        low, high = row["accuracy low"], row["accuracy high"]
        assert (low, high) == pytest.approx(ends.values.tolist())
        assert low <= right / total <= high
        assert row["margin"] == pytest.approx(share - row["baseline"])
        assert row["coverage"] == total / row["words"]


def test_the_stored_best_head_of_each_set_of_candidates_is_the_one_of_the_counts(
    clark: xr.Dataset,
) -> None:
    rows = {row["system"]: row for row in rows_of(clark, "coreference")}
    for candidates in clark["candidates"].values.tolist():
        row = rows[f"best head, candidates: {candidates}"]
        shares = clark["coref_accuracy"].sel(candidates=candidates, mention="all")
        layer, head = np.unravel_index(int(np.nanargmax(shares.values)), shares.shape)
        assert row["head"] == f"L{shares['layer'].values[layer]}H{head}"
        for mention in clark["mention"].values.tolist():
            value = clark["coref_accuracy"].sel(
                candidates=candidates, mention=mention, layer=layer, head=head
            )
            np.testing.assert_equal(row[mention], float(value))
    assert [row["published"] for row in rows.values()][:3] == [0.27, 0.52, 0.69]


def test_the_stored_probes_are_those_of_the_result(clark: xr.Dataset) -> None:
    *rows, structural = rows_of(clark, "parsing")
    assert [row["UAS"] for row in rows] == clark["parsing_uas"].values.tolist()
    assert [row["published"] for row in rows] == [0.26, 0.58, 0.3, 0.61, 0.77]
    assert np.isnan(structural["UAS"]) and structural["published"] == STRUCTURAL_PROBE / 100


@pytest.mark.parametrize(
    ("table", "label", "variable", "axis", "prefix"),
    [
        ("tags", "tag", "pos_to", "tag", "to_"),
        ("tags", "tag", "pos_from", "tag", "from_"),
        ("relations", "relation", "deprel_to", "deprel", ""),
    ],
)
def test_the_stored_best_head_of_every_tag_and_relation_has_the_largest_share(
    vig: xr.Dataset, table: str, label: str, variable: str, axis: str, prefix: str
) -> None:
    rows = rows_of(vig, table)
    assert {row[label] for row in rows} == set(vig[axis].values)
    for row in rows:
        shares = vig[variable].sel({axis: row[label]})
        place = shares.stack(head_of=("layer", "head")).idxmax("head_of").item()
        assert row[f"{prefix}head"] == f"L{place[0]}H{place[1]}"
        assert row[f"{prefix}best"] == float(shares.max())


def test_statements_come_back_from_the_file_as_they_were(tmp_path: Path) -> None:
    rows = [{"a": float("nan"), "b": np.float64(0.5), "c": np.int64(3), "d": "<ü>"}]
    table = Tabulation("t", "T", "C", ("x",), lambda result: rows, file="table9")
    skipped = Tabulation("u", "U", "", ("missing",), lambda result: rows)

    @claim("claim", "0.5", above=0.5)
    def present(data: Replicates) -> Evidence:
        return Evidence(data["y"])

    @claim("other", "", above=0.0)
    def absent(data: Replicates) -> Evidence:
        return Evidence(data["missing"])

    sums = {
        "y_numerator": ("group", [0.3, 0.4, 0.5, 0.4] * 4),
        "y_denominator": ("group", np.ones(16)),
    }
    result = xr.Dataset({"x": ("layer", [1.0]), "y": ((), 0.4), **sums})
    said = make_statements(
        (table, skipped), (present, absent), lambda _: [Choice("table1", 0, 1, "why")], result
    )
    save(write_statements(result, said), tmp_path / "result.nc")
    again = read_statements(load(tmp_path))
    (read,) = again.tables
    assert (read.name, read.file, read.title) == ("t", "table9", "T")
    (row,) = read.rows
    assert isinstance(row["a"], float) and np.isnan(row["a"])
    assert {name: row[name] for name in "bcd"} == {"b": 0.5, "c": 3, "d": "<ü>"}
    assert [each.holds for each in again.findings] == ["no", "not measured"]
    assert again.findings == said.findings
    judged, missing = again.findings
    assert (judged.value, judged.threshold) == (pytest.approx(0.4), 0.5)
    assert judged.low is not None and judged.high is not None
    assert 0.2 < judged.low < 0.4 < judged.high < 0.6
    assert missing.measured == "the result has no missing"
    assert (missing.value, missing.low, missing.high, missing.threshold) == (None, None, None, 0.0)
    assert again.choices == (Choice("table1", 0, 1, "why"),)
    assert again.table("u") is None


def test_many_heads_fit_into_the_file(tmp_path: Path) -> None:
    rows = [{f"column {i}": 0.123456789 * i for i in range(25)} for _ in range(1024)]
    table = Tabulation("heads", "", "", (), lambda result: rows)
    result = xr.Dataset({"x": ("layer", [1.0])})
    said = make_statements((table,), (), lambda _: [], result)
    save(write_statements(result, said), tmp_path / "result.nc")
    assert read_statements(load(tmp_path)) == said


def test_a_result_of_an_older_version_says_how_to_make_it_anew() -> None:
    with pytest.raises(RunError, match="Run the same `headscope study` command again"):
        read_statements(xr.Dataset())
    assert read_statements(write_statements(xr.Dataset(), Statements())) == Statements()


def test_the_papers_values_are_those_of_equal_relations() -> None:
    assert published_relation("compound") == published_relation("nn") == (70.4, 1, 70.2)
    assert published_relation("poss") is None  # the paper lets the clitic answer
    assert published_relation("nmod:poss with 's") == (80.5, 1, 47.7)
    by_relation = {each.at["relation"]: each.value for each in OF_MEASURES["relation_accuracy"]}
    assert by_relation["obj"] == by_relation["dobj"] == 0.868


def test_tables_of_heads_and_layers_have_every_value_of_a_plain_loop() -> None:
    result = make_result(3, 2)
    result["pos_to"] = result["pos_to"].transpose("tag", "head", "layer")
    columns = (MeasureColumn("entropy"), MeasureColumn("pos_to", "nouns", {"tag": "NOUN"}))
    for name in ("entropy", "pos_to"):
        random = np.random.default_rng(len(name))
        x = random.random((32, *result[name].shape))
        result[f"{name}_numerator"] = ("group", *result[name].dims), x
        result[f"{name}_denominator"] = "group", np.arange(32.0)  # the first says nothing
    result = attach(result, [Measure("pos_to", "Nouns", "", "", "", unit="share")])
    _, rows = tabulate(head_rows(result, columns))
    _, layers = tabulate(layer_rows(result, columns))
    reach = stats.t(30).ppf(0.975)
    assert [row["layer"] for row in layers] == result["layer"].values.tolist()
    for layer in result["layer"].values.tolist():
        own = result.sel(layer=layer, tag="NOUN")
        assert layers[layer]["entropy"] == float(own["entropy_by_layer"])
        margin = layers[layer]["entropy margin of error"]
        assert margin == pytest.approx(reach * float(own["entropy_by_layer_se"]))
        for head in result["head"].values.tolist():
            one, row = own.sel(head=head), rows[2 * layer + head]
            assert list(row) == [
                "head", "entropy", "entropy margin of error", "nouns", "nouns margin of error",
            ]  # fmt: skip
            assert row["head"] == f"L{layer}H{head}"
            assert (row["entropy"], row["nouns"]) == (float(one["entropy"]), float(one["pos_to"]))
            margin = reach * float(one["entropy_se"])
            assert row["entropy margin of error"] == pytest.approx(margin)
            share, error = float(one["pos_to"]), float(one["pos_to_se"])
            low, high = share_interval(np.array(share), np.array(error), 31, np.array(496.0))
            assert row["nouns margin of error"] == pytest.approx((high - low) / 2)
