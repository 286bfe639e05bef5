"""Heads in words: chosen, ordered and counted; one description where several runs have one."""

import json
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from typer.testing import CliRunner

import headscope as hs
from headscope.cli import app
from headscope.errors import RunError
from headscope.head import Head
from headscope.metrics.importance import MEAN_REPLACEMENT
from headscope.portrait.portraits import Portraits
from headscope.results.describe import PORTRAIT
from headscope.results.heads import changed_heads, choose_heads, describe_heads, pool
from headscope.results.measure import attach
from headscope.results.run import read_finished
from headscope.results.statements import Statements, Table, write_statements
from headscope.results.tables import Column
from tests.references.described import NAMES, with_descriptions
from tests.references.grouped import write_run

EXPLAINED = [0.9, 0.8, 0.7, float("nan"), 0.1]


def empty(heads: int = 5) -> xr.Dataset:
    return xr.Dataset(coords={"layer": [0, 1], "head": np.arange(heads)})


def make_run(path: Path, names: list[str], texts: int = 100) -> Path:
    result = with_descriptions(empty(), names, EXPLAINED)
    result.attrs["portrait_texts"] = json.dumps({"fit": texts})
    return write_run(path, write_statements(result, Statements()))


def test_heads_are_chosen_by_name_group_or_words_and_put_in_order() -> None:
    model = describe_heads(with_descriptions(empty(), list(NAMES), EXPLAINED))

    def names(**asked: object) -> list[str]:
        return [head.head for head in choose_heads(model, **asked)]  # type: ignore[arg-type]

    assert names(role="previous") == names(role="position") == ["L0H0", "L1H0"]
    assert names(role="its object") == ["L0H2", "L1H2"]
    assert names(layer=1, order="explained") == ["L1H0", "L1H1", "L1H2", "L1H4", "L1H3"]
    assert names(layer=0, order="role") == ["L0H0", "L0H2", "L0H1", "L0H3", "L0H4"]
    with pytest.raises(RunError, match="no layer 4; there are 0 to 1"):
        names(layer=4)
    with pytest.raises(RunError, match="'nsubj'; the names in this run are first token, previous"):
        names(role="nsubj")


def test_a_relation_is_answered_by_the_table_that_has_its_best_head(tmp_path: Path) -> None:
    columns = (Column("relation"), Column("head", "head"), Column("accuracy", "number"))
    rows = ({"relation": "nsubj", "head": "L1H2", "accuracy": 0.68},)
    shown = tuple(column.name for column in columns)
    table = Table("best", "Table 1", "", columns, rows, "table1", shown)
    result = with_descriptions(empty(), list(NAMES), EXPLAINED)
    run = write_run(tmp_path / "run", write_statements(result, Statements(tables=(table,))))
    told = CliRunner().invoke(app, ["heads", str(run), "--role", "nsubj"])
    assert told.stdout.splitlines()[-1] == "Table 1: relation nsubj, head L1H2, accuracy 0.68."
    plain = make_run(tmp_path / "plain", list(NAMES))
    told = CliRunner().invoke(app, ["heads", str(plain), "--role", "dobj"])
    assert "from a verb to its object" in told.stdout.splitlines()[0]
    assert told.stderr == "The best head for dobj is in Table 1 of `headscope study clark2019`.\n"


def test_a_run_without_portraits_says_why() -> None:
    result = empty()
    with pytest.raises(RunError, match="no portraits; run the study again in a new directory"):
        describe_heads(result)
    result.attrs["left_out"] = json.dumps({"explained": "too few documents"})
    with pytest.raises(RunError, match=r"^This run has no portraits: too few documents\."):
        describe_heads(result)


def test_a_description_of_a_stranger_is_refused() -> None:
    result = with_descriptions(empty(), list(NAMES))
    result[PORTRAIT] = result[PORTRAIT].copy(data=np.full((2, 5), '{"name": 1}'))
    with pytest.raises(RunError, match="The portrait of L0H0 cannot be read"):
        describe_heads(result)


def test_runs_of_one_model_describe_a_head_once_by_the_run_that_knows_most(tmp_path: Path) -> None:
    few = make_run(tmp_path / "few", ["unnamed"], 10)
    many = make_run(tmp_path / "many", ["previous token"], 100)
    table = hs.heads(few, many)
    assert table["head"].is_unique
    assert set(table["name"]) == {"previous token"}
    pooled = pool([read_finished(few), read_finished(many)])
    assert (pooled[0].data[PORTRAIT] == pooled[1].data[PORTRAIT]).all()


def test_what_it_costs_to_lose_a_head_stands_beside_its_sentence(tmp_path: Path) -> None:
    plain = make_run(tmp_path / "plain", list(NAMES))
    result = with_descriptions(empty(), list(NAMES), EXPLAINED)
    costs = np.array([[0.2, 0, 0, 0, 0], [0, 0, 0, 0, 0.0]])
    measured = attach(
        result.assign(mean_replacement=(("layer", "head"), costs)), [MEAN_REPLACEMENT]
    )
    losses = write_run(tmp_path / "losses", write_statements(measured, Statements()))
    cost = "Replaced by its mean, the loss rises by 0.2 nats per predicted token; the median head "
    assert hs.heads(plain, losses)["cost"].tolist()[0] == cost + "costs 0."
    printed = CliRunner().invoke(app, ["heads", str(plain), str(losses)]).stdout.splitlines()
    assert printed[0].endswith(f"(98 % of its weight). {cost}costs 0.")
    assert set(hs.heads(plain)["cost"]) == {None}


def test_the_command_prints_the_sentences_of_the_run(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", list(NAMES))
    printed = CliRunner().invoke(app, ["heads", str(run), "--layer", "0"]).stdout.splitlines()
    described = describe_heads(with_descriptions(empty(), list(NAMES), EXPLAINED))
    sentences = {cell.head: cell.sentence for cell in described.cells}
    assert printed[0] == f" 90 %  {sentences['L0H0']}"
    assert printed[3] == f" even  {sentences['L0H3']}"
    assert printed[-1] == described.summary
    [stored] = json.loads(
        CliRunner().invoke(app, ["heads", str(run), "--json", "--role", "verb"]).stdout
    )
    assert [head["sentence"] for head in stored["heads"]] == [
        sentences[name] for name in ("L0H2", "L1H2")
    ]
    assert CliRunner().invoke(app, ["heads", str(run), "--sort", "name"]).exit_code == 2


def test_the_command_lists_the_heads_that_a_text_shows_the_clearest_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(tmp_path / "run", list(NAMES))
    given: list[str] = []

    def shown_by(self: Portraits, text: str) -> dict[str, float]:
        given.append(text)
        return {"L1H2": 0.97, "L0H0": 0.61}

    monkeypatch.setattr(Portraits, "shown_by", shown_by)
    asked = ["heads", str(run), "--text", "The old ship."]
    printed = CliRunner().invoke(app, asked).stdout.splitlines()
    assert given == ["The old ship."]
    assert [line.split()[2] for line in printed[:2]] == ["L1H2", "L0H0"]
    assert printed[0].endswith("In this text: 97 %.")
    of_layer = CliRunner().invoke(app, [*asked, "--layer", "0"]).stdout.splitlines()
    assert [line.split()[2] for line in of_layer[:1]] == ["L0H0"]
    none = CliRunner().invoke(app, [*asked, "--role", "evenly"])
    assert none.exit_code != 0


def test_pairs_of_heads_with_other_names_are_told_the_best_explained_first() -> None:
    first, second = (
        describe_heads(with_descriptions(empty(), names, EXPLAINED))
        for names in (["previous token", "evenly"], ["unnamed", "evenly"])
    )
    changed = changed_heads(first, second)
    assert [pair.first.head for pair in changed] == ["L0H0", "L1H1", "L0H2", "L0H4", "L1H3"]
    assert changed[0].sentence == (
        "L0H0 looks at the previous token (98 % of its weight). → L0H0 looks at nothing that has a "
        "name."
    )
    assert changed_heads(first, second, [(Head(0, 1), Head(1, 0))]) == []
    assert changed_heads(first, first) == []
