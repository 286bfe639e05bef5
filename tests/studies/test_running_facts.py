"""What a run says of itself: its corpus, what it will lack, and the study's import path."""

import json
import logging
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import headscope as hs
from headscope import cli
from headscope.errors import RunError
from headscope.studies import STUDIES, find_study, running
from headscope.text.corpus import Corpus
from headscope.text.readers import SUFFIXES
from headscope.text.sentence import Sentence
from tests.references.tiny_models import causal_model, make_sentences, treebank

OWN = "tests.references.own_study:STUDY"


def settings(run: Path) -> dict[str, Any]:
    return json.loads((run / "run.json").read_text())


def test_the_corpus_is_named_but_only_its_sentences_are_its_identity(tmp_path: Path) -> None:
    path, moved = tmp_path / "a.parquet", tmp_path / "b.parquet"
    sentences = make_sentences(40)
    hs.study("vig2019", causal_model(), Corpus.write(path, sentences), tmp_path / "run")
    said = settings(tmp_path / "run")["corpus"]
    assert set(said) == {"name", "path", "format", "fingerprint", "sentences"}
    assert said["sentences"] == 40
    (tmp_path / "run" / "result.nc").unlink()
    path.rename(moved)
    hs.study("vig2019", causal_model(), Corpus.open(moved), tmp_path / "run")
    assert (tmp_path / "run" / "result.nc").exists()


def test_what_a_corpus_without_tags_will_lack_is_said_before_the_work_begins(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("headscope.engine.measure.Measuring.compute", stop)
    plain = Corpus.from_sentences([Sentence(each.text) for each in make_sentences(12)])
    with (
        caplog.at_level(logging.WARNING, logger="headscope"),
        pytest.raises(KeyboardInterrupt),
    ):
        hs.study("vig2019", causal_model(), plain)
    assert (
        "Without pos_to, pos_from, tag_frequency: the corpus has no part-of-speech" in caplog.text
    )
    assert "dependency_alignment" in caplog.text


def test_what_was_asked_to_be_left_out_is_not_announced(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING, logger="headscope"):
        running._report_left_out({"gradient": "left out as asked (gradients=False)"})
    assert caplog.text == ""


def test_a_study_of_ones_own_runs_by_its_import_path_and_is_stored_so(tmp_path: Path) -> None:
    found = hs.study(OWN, causal_model(), treebank(40), tmp_path, sums=3)
    assert json.loads(found.attrs["sums"]) == [0, 1, 3]
    assert settings(tmp_path)["study"] == OWN


def test_a_study_in_the_current_directory_is_found_by_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine_here.py").write_text("from tests.references.own_study import STUDY\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    command = ["headscope", "study", "mine_here:STUDY", "--model", "mini-gpt2", "--corpus", "demo"]
    monkeypatch.setattr(sys, "argv", [*command, "--out", "run", "--option", "sums=-1"])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert stopped.value.code == 2
    assert "sums must be a whole number of at least 0, not -1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("tests.references.own_study:NO_STUDY", "is a str, not a Study"),
        ("tests.references.own_study:MISSING", "no attribute 'MISSING'"),
        ("no.such.module:STUDY", "No module named 'no'"),
        (":STUDY", "There is no study at"),
    ],
)
def test_a_path_without_a_study_is_refused(path: str, reason: str) -> None:
    with pytest.raises(RunError, match=reason):
        find_study(path)


def test_the_help_lists_every_corpus_format_and_every_option_with_its_default() -> None:
    for study in STUDIES:
        shown = CliRunner(env={"COLUMNS": "200"}).invoke(cli.app, ["study", study, "--help"]).output
        assert all(ending in shown for ending in SUFFIXES)
        for option in find_study(study).options:
            assert option.name in shown
            assert f"[default: {option.shown_default}]" in " ".join(shown.split())
