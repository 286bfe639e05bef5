"""`--json`: what programs read is valid JSON and says what the library says."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import headscope as hs
from headscope.cli import app
from headscope.results.statements import read_statements
from headscope.studies import STUDIES


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
