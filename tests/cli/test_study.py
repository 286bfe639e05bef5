"""`--json`: what programs read is valid JSON and says what the library says."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import headscope as hs
from headscope.cli import app
from headscope.errors import RunError
from headscope.results.statements import read_statements
from headscope.studies import STUDIES, find_study
from tests.references.tiny_models import causal_model, treebank

BRIEF: dict[str, Any] = {"portrait": False, "untrained": False, "probes": False}


def test_study_says_where_the_run_is_and_what_was_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    options = ["--model", "mini-gpt2", "--corpus", "demo", "--sentences", "8", "--out", "run"]
    done = CliRunner().invoke(app, ["study", "vig2019", *options, "--json"])
    assert done.exit_code == 0
    found = json.loads(done.stdout, parse_constant=lambda name: pytest.fail(name))
    result = hs.study("vig2019", hs.load("mini-gpt2"), hs.demo_corpus(), sentences=8)
    assert (found["run"], found["sentences"]) == ("run", result.attrs["sentences"])
    assert found["variables"] == sorted(map(str, result.data_vars))
    said = [(each["claim"], each["holds"]) for each in found["findings"]]
    assert said == [(each.claim, each.holds) for each in read_statements(result).findings]


def test_the_help_of_study_lists_the_options_of_every_study() -> None:
    for study in STUDIES:
        shown = CliRunner().invoke(app, ["study", study, "--help"])
        assert shown.exit_code == 0
        assert f"Options of {study}" in shown.stdout


def test_a_study_counts_what_it_draws_by_its_own_name() -> None:
    for name, own in (("vig2019", "sentences"), ("clark2019", "segments"), ("luger2026", "texts")):
        study = find_study(name)
        assert study.sample_size(**{own: 3}) == study.sample_size(sentences=3) == 3
        assert study.sample_size(sentences=None, segments=None, texts=None) is None
    with pytest.raises(RunError, match="vig2019 draws sentences, not segments"):
        find_study("vig2019").sample_size(segments=3)
    model, corpus = causal_model(), treebank(40)
    by_name = hs.study("clark2019", model, corpus, segments=2, **BRIEF)
    assert by_name.attrs["sentences"] == 2
    assert by_name.identical(hs.study("clark2019", model, corpus, sentences=2, **BRIEF))


def test_the_help_names_every_study_that_there_is() -> None:
    shown = CliRunner(env={"COLUMNS": "200"}).invoke(app, ["study", "--help"]).stdout
    assert "|".join([*STUDIES, "package.module:STUDY"]) in shown
