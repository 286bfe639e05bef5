"""Comparing runs: how two runs relate, the intervals, the order, and what is refused."""

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
    compare_runs,
    largest,
    rows_of,
    write_csv,
)
from headscope.results.compare.differences import By
from headscope.results.replicates import GROUPS
from tests.references.grouped import (
    SHARE,
    moved,
    permuted,
    random_result,
    run_of,
    sketch,
    with_sums,
    write_run,
)


def compared(
    a: xr.Dataset,
    b: xr.Dataset,
    *,
    networks: tuple[int, int] = (0, 0),
    seeds: tuple[int, int] = (0, 0),
    by: By = "auto",
) -> Comparison:
    first = run_of(a, network=networks[0], seed=seeds[0])
    second = run_of(b, network=networks[1], seed=seeds[1])
    return compare_runs(first, second, names=("a", "b"), by=by)


def plain_error(a: xr.Dataset, b: xr.Dataset, at: dict[str, object], name: str) -> float:
    """A jackknife of the difference, group by group, in plain numbers."""
    sums = [
        [each[f"{name}_{part}"].sel(at).values.tolist() for part in ("numerator", "denominator")]
        for each in (a, b)
    ]
    values = []
    for left in range(GROUPS):
        keep = [group for group in range(GROUPS) if group != left]
        first, second = (sum(x[g] for g in keep) / sum(y[g] for g in keep) for x, y in sums)
        values.append(second - first)
    return float(np.sqrt((GROUPS - 1) / GROUPS * np.sum((np.array(values) - np.mean(values)) ** 2)))


@given(st.integers(0, 1000))
@settings(max_examples=5, deadline=None)
def test_runs_over_the_same_texts_have_the_error_of_paired_differences(seed: int) -> None:
    a, b = random_result(seed), random_result(seed + 1)
    found = compared(a, b, by="index")
    assert found.relation.same_texts
    for row in (row for row in largest(found) if row["measure"] == "spread"):
        layer, head = int(row["first_at"][1]), int(row["first_at"][3])
        error = plain_error(a, b, {"layer": layer, "head": head}, "spread")
        reach = 2.0395134464  # Student's t, 31 degrees of freedom
        assert row["low"] == pytest.approx(row["difference"] - reach * error, abs=1e-9)
        assert row["high"] == pytest.approx(row["difference"] + reach * error, abs=1e-9)


def test_what_the_texts_have_in_common_cancels_only_where_they_are_the_same() -> None:
    a, b = random_result(1), random_result(2)
    same, apart = compared(a, b), compared(a, b, seeds=(0, 1))
    assert same.relation.same_texts and not apart.relation.same_texts
    assert "seed" in apart.relation.texts
    paired = {(row["spec"], row["place"]): row["high"] - row["low"] for row in largest(same)}
    for row in largest(apart):
        assert paired[row["spec"], row["place"]] < 0.7 * (row["high"] - row["low"])


@given(st.integers(0, 1000))
@settings(max_examples=5, deadline=None)
def test_swapping_the_runs_turns_every_sign(seed: int) -> None:
    a, b = random_result(seed), random_result(seed + 1)
    there = {(row["spec"], row["place"]): row for row in largest(compared(a, b))}
    for row in largest(compared(b, a)):
        other = there[row["spec"], row["place"]]
        assert row["difference"] == pytest.approx(-other["difference"])
        assert (row["low"], row["high"]) == pytest.approx((-other["high"], -other["low"]))
        assert row["q"] == pytest.approx(other["q"])


def test_a_run_does_not_differ_from_itself() -> None:
    same = compared(random_result(1), random_result(1))
    assert clear_and_all(same)[0] == 0
    assert {row["difference"] for row in largest(same)} == {0.0}
    assert all(row["high"] - row["low"] > 0 for row in largest(same) if np.isfinite(row["low"]))


def test_sums_that_differ_in_their_last_digits_are_no_difference() -> None:
    a, b = random_result(1), random_result(1)
    for name in [name for name in b if str(name).endswith(("_numerator", "_denominator"))]:
        b[name] = b[name] / 3
    rows = largest(compared(a, b))
    assert any(row["first"] != row["second"] for row in rows)
    assert {row["difference"] for row in rows} == {0.0}


def test_two_samples_of_one_network_differ_no_more_often_than_chance_says() -> None:
    random = np.random.default_rng(0)
    rates = 0.2 + 0.6 * random.random((10, 40, 1))
    weight = np.full((GROUPS, 1, 1, 1), 50.0)
    axes = {"layer": range(10), "head": range(40), "tag": ["NOUN"]}
    a, b = (
        with_sums(xr.Dataset(attrs={"study": "mine"}), SHARE,
                  random.binomial(50, rates, (GROUPS, *rates.shape)).astype(float), weight, axes)
        for _ in range(2)
    )  # fmt: skip
    found = compared(a, b, seeds=(0, 1))
    rows = largest(found)
    outside = np.mean([row["low"] > 0 or row["high"] < 0 for row in rows])
    assert (len(rows), found.by) == (400, ("index",))
    assert outside < 0.08
    assert clear_and_all(found)[0] <= 2


def test_shares_of_nothing_or_everything_have_an_interval_within_the_range() -> None:
    axes = {"layer": range(2), "head": range(2), "tag": ["DET", "NOUN"]}
    words = np.zeros((GROUPS, 1, 1, 2))
    words[0], words[1:4, ..., 1] = 1.0, 3.0  # of DET one word, in one group
    none = np.zeros((GROUPS, 2, 2, 2))
    made = [with_sums(xr.Dataset(attrs={"study": "mine"}), SHARE, x, words, axes)
            for x in (none, none + words)]  # fmt: skip
    for seeds in ((0, 0), (0, 1)):
        for row in largest(compared(*made, seeds=seeds)):
            assert row["difference"] == 1.0
            assert -1 <= row["low"] < row["high"] <= 1
            assert (row["low"] < 0) == (row["at"] == ("DET",))  # one word shows nothing


def test_a_sure_difference_comes_before_a_wilder_one_that_may_be_noise() -> None:
    a = random_result(1)
    rows = largest(compared(a, moved(a, 0.3)))
    assert (rows[0]["place"], rows[0]["at"], rows[0]["clear"]) == ("L1H1", ("DET",), True)
    assert not any(row["clear"] for row in rows[1:])


def test_checkpoints_of_one_lineage_are_compared_head_with_head() -> None:
    a, b = random_result(1), random_result(2)
    first, second = run_of(a, network=1), run_of(b, network=2)
    tuned = np.fromstring(sketch(1), sep=" ") + np.random.default_rng(9).normal(0, 0.3, 256)
    second.about["model"]["sketch"] = " ".join(f"{x:.4g}" for x in tuned)
    found = compare_runs(first, second, names=("a", "b"))
    assert found.by == ("index",)
    assert "One lineage: the embeddings correlate 0.9" in found.relation.networks


def test_heads_of_networks_trained_apart_are_never_paired_by_their_number() -> None:
    a = random_result(1, tags=("DET", "NOUN", "VERB", "ADJ"))
    b, went = permuted_sums(a, 5)
    found = compared(a, b, networks=(1, 2))
    assert found.by == ("matched", "depth")
    assert "trained apart" in found.notes[0]
    assert {(row["first_at"], row["second_at"]) for row in rows_of(found, "heads")} == went
    forced = compared(a, b, networks=(1, 2), by="index")
    assert "as asked" in " ".join(forced.notes)
    assert all(row["first_at"] == row["second_at"] for row in largest(forced))


def permuted_sums(data: xr.Dataset, seed: int) -> tuple[xr.Dataset, set[tuple[str, str]]]:
    """The heads of a result in another order, and the pairs they make."""
    front = data.transpose("layer", "head", ...)
    grid = [name for name in front.data_vars if {"layer", "head"} <= set(front[name].dims)]
    made, went = permuted(front[grid], seed)
    heads = data.sizes["head"]
    pairs = {(f"L{i // heads}H{i % heads}", str(to)) for i, to in enumerate(went)}
    rest = {name: front[name] for name in front.data_vars if name not in grid}
    return made.assign(rest).assign_attrs(data.attrs), pairs


def test_networks_of_other_shapes_are_matched_and_their_layers_interpolated() -> None:
    a = random_result(1, layers=4, tags=("DET", "NOUN", "VERB", "ADJ"))
    b = a.isel(layer=[0, 1, 3]).assign_coords(layer=[0, 1, 2])
    found = compared(a, b, networks=(1, 2))
    assert found.matching is not None
    assert {str(head) for head in found.matching.first_alone} == {f"L2H{i}" for i in range(4)}
    assert {row["difference"] for row in rows_of(found, "heads")} == {0.0}
    pairs = [(row["first_at"], row["second_at"]) for row in rows_of(found, "layers")]
    assert set(pairs) == {("layer 0.167", "layer 0"), ("layer 1.5", "layer 1"),
                          ("layer 2.83", "layer 2")}  # fmt: skip
    middle = [row for row in rows_of(found, "layers")
              if row["second_at"] == "layer 1" and row["at"] == ("NOUN",)]  # fmt: skip
    pooled = a["share_by_layer"].sel(tag="NOUN").values
    assert middle[0]["first"] == pytest.approx((pooled[1] + pooled[2]) / 2)
    with pytest.raises(RunError, match=r"cannot be compared by index.*--by matched"):
        compared(a, b, networks=(1, 2), by="index")


def test_q_values_are_corrected_over_heads_and_layers_together() -> None:
    a, b = random_result(1, tags=("A", "B", "C")), random_result(2, tags=("A", "B", "C"))
    found = compared(a, b, networks=(1, 2))
    p, q = found.differences["p"].values, found.differences["q"].values
    known = np.isfinite(p)
    assert known.sum() == clear_and_all(found)[1]
    order = np.sort(p[known])
    plain = [min(order[k:] * len(order) / np.arange(k + 1, len(order) + 1))
             for k in range(len(order))]  # fmt: skip
    np.testing.assert_allclose(np.sort(q[known]), np.minimum(plain, 1), atol=1e-12)


def test_labels_of_one_run_alone_are_left_out_and_said() -> None:
    found = compared(random_result(1, tags=("DET", "NOUN")), random_result(2, tags=("NOUN", "X")))
    assert {row["at"] for row in largest(found) if row["measure"] == "share"} == {("NOUN",)}
    assert "Only one of the runs has tag DET, X." in found.notes


def test_relations_of_two_schemes_of_annotation_are_not_compared() -> None:
    ours, theirs = (
        random_result(seed, tags=tags).rename(tag="deprel")
        for seed, tags in ((1, ("dobj", "cc")), (2, ("obj", "cc")))
    )
    found = compared(ours, theirs)
    assert {row["measure"] for row in largest(found)} == {"spread"}
    (note,) = [note for note in found.notes if "annotated" in note]
    assert "by Stanford dependencies and Universal Dependencies" in note
    assert note.endswith("share are not compared.")
    same = compared(ours, ours.copy(deep=True))
    assert "share" in {row["measure"] for row in largest(same)}


def test_networks_whose_profiles_say_too_little_are_compared_by_depth() -> None:
    a, b = random_result(1), random_result(2)
    for name in ("share", "spread"):
        b[f"{name}_se"] = xr.full_like(b[name].drop_attrs(), 1e3)
    found = compared(a, b, networks=(1, 2))
    assert found.by == ("depth",) and found.matching is None
    assert any("share too few measures" in note for note in found.notes)
    with pytest.raises(RunError, match="share too few measures"):
        compared(a, b, networks=(1, 2), by="matched")


def test_a_measure_without_sums_has_no_interval_and_it_is_said() -> None:
    a, b = (random_result(seed).drop_vars(["spread_numerator", "spread_denominator"])
            for seed in (1, 2))  # fmt: skip
    found = compared(a, b)
    bare = [row for row in largest(found) if row["measure"] == "spread"]
    assert len(bare) == 12
    assert all(np.isnan([row["low"], row["high"], row["q"]]).all() for row in bare)
    assert "Without sums over groups, hence without interval: spread." in found.notes


def test_heads_without_a_value_are_no_difference_and_disturb_no_other() -> None:
    a, b = random_result(1), random_result(2)
    broken = a.copy(deep=True)
    for name in ("share", "share_numerator", "share_denominator"):
        broken[name].loc[{"layer": 0, "head": 0}] = 0 if "_" in name else np.nan
    whole = {(row["spec"], row["place"]): row["low"] for row in largest(compared(a, b))}
    rows = largest(compared(broken, b))
    assert len(rows) == len(whole) - 2
    assert all(row["low"] == whole[row["spec"], row["place"]] for row in rows)


def test_what_cannot_be_compared_is_refused_by_what_differs() -> None:
    with pytest.raises(RunError, match="a is a run of mine, b of clark2019"):
        compared(random_result(1), random_result(1, study="clark2019"))
    other = random_result(1)
    names = {str(name): str(name).replace("share", "x").replace("spread", "y") for name in other}
    with pytest.raises(RunError, match="share no measure"):
        compared(random_result(1), other.rename(names))
    old = random_result(1)[["share", "share_se", "spread"]]
    with pytest.raises(RunError, match=r"a holds no sums.*again with a new --out"):
        compared(old, random_result(1))


def test_runs_are_compared_from_disk_and_written_as_csv(tmp_path: Path) -> None:
    data = random_result(1)
    a, b = write_run(tmp_path / "a", data), write_run(tmp_path / "b", moved(data, 0.3))
    found = compare(a, b / "result.nc")
    assert write_csv(found, tmp_path / "out.csv") == 36
    with (tmp_path / "out.csv").open(newline="") as file:
        first = next(csv.DictReader(file))
    assert (first["measure"], first["first_at"], first["at"]) == ("share", "L1H1", "DET")
    assert first["title"] == "Share of attention: DET"
    assert float(first["q"]) < 0.05


def test_an_unwritable_file_and_an_unfinished_run_are_said(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a", random_result(1))
    with pytest.raises(RunError, match=r"cannot be written"):
        write_csv(compare(a, a), tmp_path / "no" / "such" / "folder.csv")
    (tmp_path / "b").mkdir()
    with pytest.raises(RunError, match=r"has no result\.nc"):
        compare(a, tmp_path / "b")


def test_labels_of_a_run_cannot_command_the_terminal(tmp_path: Path) -> None:
    for name, shift in (("a", 0.0), ("b", 3.0)):
        data = random_result(1).assign_coords(tag=["\x1b]0;x\x07[red]", "NOUN"])
        data["share"][1, 1, 0] += shift
        write_run(tmp_path / name, data)
    asked = ["compare", str(tmp_path / "a"), str(tmp_path / "b")]
    printed = CliRunner().invoke(app, asked, env={"COLUMNS": "160"})
    assert printed.exit_code == 0
    assert "\ufffd]0;x\ufffd[red]" in printed.output and "\x1b]" not in printed.output
