"""What the API says equals what the run holds."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from starlette.testclient import TestClient

from headscope.explorer.answers import column_title
from headscope.explorer.answers.runs import Library
from headscope.explorer.api import create_app
from headscope.explorer.texts import Texts
from headscope.results.dataset import load, save
from headscope.results.measure import cut
from headscope.results.replicates import margin_of
from headscope.results.statements import Table, make_statements, read_statements, write_statements
from headscope.results.tables import Column, MeasureColumn, head_rows, layer_rows, tabulate
from tests.references.described import with_descriptions
from tests.references.grouped import write_run as write_wired
from tests.references.runs import HOSTILE, write_result, write_run


@pytest.fixture
def vig(folder: Path) -> xr.Dataset:
    return load(folder / "vig")


@pytest.fixture
def clark(folder: Path) -> xr.Dataset:
    return load(folder / "clark")


def test_a_picture_has_the_values_of_the_result_and_half_of_their_intervals(
    visitor: TestClient, vig: xr.Dataset
) -> None:
    picture = visitor.get("/api/runs/vig/measures/pos_to~NOUN").json()
    np.testing.assert_array_equal(picture["values"], vig["pos_to"].sel(tag="NOUN"))
    margin = margin_of(vig, "pos_to")
    assert margin is not None
    np.testing.assert_array_equal(picture["errors"], margin.sel(tag="NOUN"))
    assert picture["baseline"]["value"] == float(vig["tag_frequency"].sel(tag="NOUN"))
    assert picture["published"]["value"] == 0.21


def test_the_profile_is_pooled_where_the_study_pooled(visitor: TestClient, vig: xr.Dataset) -> None:
    pooled = visitor.get("/api/runs/vig/measures/distance").json()["profile"]
    np.testing.assert_array_equal(pooled["values"], vig["distance_by_layer"])
    assert pooled["pooled"]
    plain = visitor.get("/api/runs/vig/measures/entropy").json()["profile"]
    np.testing.assert_allclose(plain["values"], vig["entropy"].mean("head"))
    assert not plain["pooled"]


def test_numeric_labels_are_found_by_their_text(visitor: TestClient, clark: xr.Dataset) -> None:
    picture = visitor.get("/api/runs/clark/measures/offset_share~-1").json()
    np.testing.assert_array_equal(picture["values"], clark["offset_share"].sel(offset=-1))


def test_every_measure_of_the_catalogue_can_be_asked_for(visitor: TestClient) -> None:
    for run in ("vig", "clark"):
        for measure in visitor.get(f"/api/runs/{run}").json()["measures"]:
            spec = "~".join([measure["name"], *(axis["labels"][-1] for axis in measure["axes"])])
            answer = visitor.get(f"/api/runs/{run}/measures/{spec}")
            assert answer.status_code == 200, spec


def test_missing_values_are_null(visitor: TestClient, tmp_path: Path, vig: xr.Dataset) -> None:
    from headscope.explorer.answers.runs import Library
    from headscope.explorer.api import create_app
    from headscope.explorer.texts import Texts

    vig["entropy"][0, 1] = np.nan
    path = tmp_path / "holes"
    path.mkdir()
    write_result(path, vig)
    app = create_app(Library([path]), Texts(None, None))
    holes = TestClient(app, base_url="http://127.0.0.1")
    assert holes.get("/api/runs/holes/measures/entropy").json()["values"][0][1] is None
    line = holes.get("/api/runs/holes/heads/L0H1").json()["measures"][3]
    assert (line["spec"], line["value"], line["rank"], line["of"]) == ("entropy", None, None, 15)


def test_a_card_ranks_its_head_among_all(visitor: TestClient, vig: xr.Dataset) -> None:
    card = visitor.get("/api/runs/vig/heads/L2H1").json()
    lines = {line["spec"]: line for line in card["measures"]}
    values = vig["distance"].values
    assert lines["distance"]["value"] == values[2, 1]
    assert lines["distance"]["rank"] == 1 + int((values > values[2, 1]).sum())
    assert lines["distance"]["of"] == 16
    assert lines["distance"]["mean"] == pytest.approx(values.mean())
    assert lines["dependency_alignment~either"]["baseline"]["value"] == pytest.approx(0.07)


def test_a_card_lists_what_the_head_attends_to_and_from(
    visitor: TestClient, vig: xr.Dataset
) -> None:
    groups = visitor.get("/api/runs/vig/heads/L2H1").json()["groups"]
    assert [group["name"] for group in groups] == ["pos_to", "pos_from", "deprel_to"]
    received = {line["label"]: line["value"] for line in groups[0]["bars"]}
    assert received == {
        str(tag): float(vig["pos_to"].sel(layer=2, head=1, tag=tag)) for tag in vig["tag"].values
    }


def test_the_nearest_heads_are_those_that_diverge_least(
    visitor: TestClient, clark: xr.Dataset
) -> None:
    card = visitor.get("/api/runs/clark/heads/L1H1").json()
    row = clark["head_divergence"].sel(unit="L1H1")
    order = [str(name) for name in row["other"].values[np.argsort(row.values)] if name != "L1H1"]
    assert [one["name"] for one in card["nearest"]["heads"]] == order[:6]
    assert card["behaviour"] == str(clark["behaviour"].sel(layer=1, head=1).values)


def test_without_divergences_the_nearest_heads_have_the_nearest_measures(
    visitor: TestClient, vig: xr.Dataset
) -> None:
    found = visitor.get("/api/runs/vig/heads/L1H1").json()["nearest"]
    names = ["null_share", "variability", "distance", "entropy"]
    table = np.stack([vig[name].values.ravel() for name in names], 1)
    table = (table - table.mean(0)) / table.std(0)
    distance = np.sqrt(((table - table[5]) ** 2).mean(1))
    assert found["heads"][0]["distance"] == pytest.approx(np.sort(distance)[1])
    assert "standard deviations" in found["basis"]


def test_exemplars_are_the_heads_own_surest_first_and_fit_to_be_shown(visitor: TestClient) -> None:
    exemplars = visitor.get("/api/runs/vig/heads/L3H2").json()["exemplars"]
    assert [one["rank"] for one in exemplars] == [0, 1, 2]
    assert exemplars[1]["labels"][2] == HOSTILE  # text, for the page to show as text
    assert exemplars[0]["pieces"] == ["The", "old", "cat", "sat", "on", "the", "mat", "."]
    assert exemplars[0]["spaces"] == [False, True, True, True, True, True, True, False]


def test_the_map_has_every_head(visitor: TestClient, clark: xr.Dataset) -> None:
    found = visitor.get("/api/runs/clark/clusters").json()
    assert [head["name"] for head in found["heads"]] == [str(one) for one in clark["unit"].values]
    assert found["heads"][5]["x"] == float(clark["head_position"].values[5, 0])
    groups = {one["name"]: (one["group"], one["number"]) for one in found["behaviours"]}
    assert groups["next"] == ("position", 0) and groups["other"] == ("unnamed", 0)
    assert groups.keys() == {head["behaviour"] for head in found["heads"]}


def test_tables_findings_and_choices_are_those_stored_with_the_run(
    visitor: TestClient, clark: xr.Dataset
) -> None:
    said = visitor.get("/api/runs/clark/statements").json()
    stored = read_statements(clark)
    assert said["findings"] == [vars(one) for one in stored.findings]
    assert said["choices"] == [vars(one) for one in stored.choices]
    [table] = said["tables"]
    assert (table["name"], table["title"]) == ("relations", stored.tables[0].title)
    assert [each["name"] for each in table["columns"]] == list(stored.tables[0].rows[0])
    assert [each["kind"] for each in table["columns"]] == [
        "text", "number", "head", "number", "number",
    ]  # fmt: skip
    assert table["rows"] == [list(row.values()) for row in stored.tables[0].rows]


def test_a_stored_value_that_is_not_a_number_is_null(visitor: TestClient) -> None:
    [table] = visitor.get("/api/runs/vig/statements").json()["tables"]
    place = [each["name"] for each in table["columns"]].index("to_factor")
    assert {row[place] for row in table["rows"]} == {None}


def test_a_result_of_an_older_version_says_how_to_mend_it(tmp_path: Path) -> None:
    from headscope.explorer.answers.runs import Library
    from headscope.explorer.api import create_app
    from headscope.explorer.texts import Texts

    path = tmp_path / "old"
    path.mkdir()
    values = xr.DataArray(np.zeros((1, 1)), coords={"layer": [0], "head": [0]})
    save(xr.Dataset({"entropy": values}), path / "result.nc")
    old = TestClient(create_app(Library([path]), Texts(None, None)), base_url="http://127.0.0.1")
    assert old.get("/api/runs/old").json()["measures"] == []
    answer = old.get("/api/runs/old/statements")
    assert (answer.status_code, "older headscope" in answer.json()["error"]) == (409, True)


def test_a_measure_says_what_its_study_declared(visitor: TestClient) -> None:
    picture = visitor.get("/api/runs/vig/measures/distance").json()
    assert (picture["title"], picture["unit"], picture["more"]) == (
        "Distance",
        "tokens",
        "looks further",
    )
    assert picture["reference"] == "Vig & Belinkov 2019"
    entries = {one["name"]: one for one in visitor.get("/api/runs/clark").json()["measures"]}
    assert [axis["title"] for axis in entries["relation_accuracy"]["axes"]] == [
        "Direction",
        "Relation",
    ]
    assert "relation_accuracy_numerator" not in entries


def test_layers_go_by_their_own_numbers(tmp_path: Path) -> None:
    from headscope.explorer.answers.runs import Library
    from headscope.explorer.api import create_app
    from headscope.explorer.texts import Texts

    hybrid = write_run(tmp_path / "hybrid", "clark2019", layers=(1, 3, 5))
    app = create_app(Library([hybrid]), Texts(None, None))
    guest = TestClient(app, base_url="http://127.0.0.1")
    run = guest.get("/api/runs/hybrid").json()
    assert (run["layers"], run["heads"]) == ([1, 3, 5], [0, 1, 2, 3])
    assert guest.get("/api/runs/hybrid/measures/entropy").json()["layers"] == [1, 3, 5]
    card = guest.get("/api/runs/hybrid/heads/L5H2").json()
    assert (card["name"], card["layer"], len(card["exemplars"])) == ("L5H2", 5, 3)
    assert guest.get("/api/runs/hybrid/heads/L2H0").status_code == 404
    heads = guest.get("/api/runs/hybrid/clusters").json()["heads"]
    assert {head["layer"] for head in heads} == {1, 3, 5}


def test_a_run_names_its_corpus(visitor: TestClient) -> None:
    runs = {run["slug"]: run for run in visitor.get("/api/session").json()["runs"]}
    assert runs["vig"]["corpus"] == "120 sentences of demo"


def test_a_run_of_another_study_says_what_it_lacks(visitor: TestClient) -> None:
    answer = visitor.get("/api/runs/vig/clusters")
    said = answer.json()["error"]
    assert (answer.status_code, "does not compare how alike heads attend" in said) == (409, True)
    answer = visitor.get("/api/compare/vig/clark")
    assert (answer.status_code, "compare runs of one study" in answer.text) == (409, True)


def test_comparison_finds_the_head_that_was_changed(visitor: TestClient) -> None:
    found = visitor.get("/api/compare/vig/vig-later").json()
    first = found["rows"][0]
    assert (first["first_at"], first["measure"], first["clear"]) == ("L1H2", "entropy", True)
    assert found["by"] == ["index"] and "One network" in found["notes"][0]
    assert first["difference"] == pytest.approx(2.0)
    picture = visitor.get("/api/compare/vig/vig-later/entropy").json()
    assert picture["difference"][1][2] == pytest.approx(2.0)
    assert picture["difference"][0][0] == 0


def test_other_networks_are_compared_by_matched_heads_and_depth(tmp_path: Path) -> None:
    paths = [
        write_run(tmp_path / name, "vig2019", network=name, seed=seed)
        for name, seed in (("one", 0), ("two", 0), ("three", 1))
    ]
    app = create_app(Library(paths), Texts(None, None))
    visitor = TestClient(app, base_url="http://127.0.0.1")
    found = visitor.get("/api/compare/one/two").json()
    assert found["by"] == ["matched", "depth"]
    assert [one["first"] == one["second"] for one in found["matches"]] == [True] * 16
    assert found["rows"] == found["layers"] == []  # what is equal is no difference
    found = visitor.get("/api/compare/one/three").json()
    assert {one["first_at"] for one in found["layers"]} == {f"layer {i}" for i in range(4)}


def test_the_card_says_what_the_head_looks_at(tmp_path: Path) -> None:
    two_heads = xr.Dataset(coords={"layer": [0], "head": [0, 1]})
    data = with_descriptions(two_heads, ["previous token", "unnamed"])
    run = tmp_path / "run"
    write_wired(run, write_statements(data, make_statements((), (), lambda result: [], data)))
    app = create_app(Library([run]), Texts(None, None))
    visitor = TestClient(app, base_url="http://127.0.0.1")
    said = "L0H0 looks at the previous token (98 % of its weight)."
    assert visitor.get("/api/runs/run/heads/L0H0").json()["looks"] == said
    assert visitor.get("/api/runs/run/heads").json()["heads"][0]["looks"] == said


def test_unknown_things_are_404_and_say_what_there_is(visitor: TestClient) -> None:
    asked = {
        "/api/runs/nothing": "vig-later",
        "/api/runs/vig/measures/nothing": "null_share",
        "/api/runs/vig/measures/pos_to~NOTHING": "NOUN",
        "/api/runs/vig/measures/entropy~x": "needs a label",
        "/api/runs/vig/heads/L9H9": "L0H0 to L3H3",
        "/api/runs/vig/heads/L٣H0": "L4H11",
    }
    for path, said in asked.items():
        answer = visitor.get(path)
        assert answer.status_code == 404
        assert said in answer.json()["error"]


def test_unfinished_and_damaged_runs_are_listed_with_their_notes(visitor: TestClient) -> None:
    runs = {run["slug"]: run for run in visitor.get("/api/session").json()["runs"]}
    assert (runs["stopped"]["state"], runs["damaged"]["state"]) == ("unfinished", "damaged")
    answer = visitor.get("/api/runs/stopped/measures/entropy")
    assert (answer.status_code, "shards are done" in answer.text) == (409, True)


def test_the_app_needs_no_torch_until_a_model_is_loaded(folder: Path) -> None:
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from starlette.testclient import TestClient\n"
        "from headscope.explorer.api import create_app\n"
        "from headscope.explorer.answers.runs import Library\n"
        "from headscope.explorer.texts import Texts\n"
        f"app = create_app(Library([Path({str(folder / 'vig')!r})]), Texts(None, None))\n"
        "visitor = TestClient(app, base_url='http://127.0.0.1')\n"
        "for path in ('/', '/api/runs/vig/heads/L0H0', '/api/compare/vig/vig'):\n"
        "    assert visitor.get(path).status_code == 200, path\n"
        "print({'torch', 'scipy.stats'} & set(sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_a_measure_has_one_name_on_every_page(clark: xr.Dataset) -> None:
    columns = [
        MeasureColumn("offset_share", "previous token", {"offset": "-1"}),
        MeasureColumn("special_share", "sep", {"special": "sep"}),
        MeasureColumn("entropy"),
    ]
    by_head, by_layer = (
        tabulate(rows)[0] for rows in (head_rows(clark, columns), layer_rows(clark, columns))
    )
    table = Table("t", "T", "", (*by_head, Column("to_held_out", "text")), (), "t")
    previous, sep = (cut(clark, spec).title for spec in ("offset_share~-1", "special_share~sep"))
    titles = {each.name: column_title(clark, table, each) for each in table.columns}
    assert titles == {
        "head": "head", "behaviour": "behaviour",
        "previous token": previous, "previous token margin of error": f"± {previous}",
        "sep": sep, "sep margin of error": f"± {sep}",
        "entropy": "Entropy", "entropy margin of error": "± Entropy", "to_held_out": "to held out",
    }  # fmt: skip
    layers = Table("t", "T", "", by_layer, (), "t")
    pooled = [column_title(clark, layers, each) for each in by_layer if each.kind == "by layer"]
    assert all(title.endswith(", pooled over heads") for title in pooled)


def test_pages_without_content_are_named_with_the_reason(visitor: TestClient) -> None:
    runs = {one["slug"]: one for one in visitor.get("/api/session").json()["runs"]}
    assert "no map of them" in runs["vig"]["closed"]["clusters"]
    assert "clusters" not in runs["clark"]["closed"]
    assert runs["stopped"]["closed"] == {}
