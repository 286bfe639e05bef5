"""The careless user: a bad value is one sentence and exit code 2, and nothing is written."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import headscope as hs
from headscope import cli
from headscope.errors import HeadscopeError
from headscope.studies import STUDIES, find_study
from tests.references.tiny_models import causal_model, treebank

BAD = [
    ("vig2019", "exemplars=-1"),
    ("vig2019", "exemplars=0"),
    ("vig2019", "exemplars=2.5"),
    ("vig2019", "exemplars=many"),
    ("vig2019", "exemplars=true"),
    ("vig2019", "exemplars="),
    ("vig2019", "exemplars=[5]"),
    ("vig2019", "self_exemplars=maybe"),
    ("vig2019", "self_exemplars=2"),
    ("vig2019", "self_exemplars="),
    ("vig2019", "corner=0"),
    ("vig2019", "corner=-10"),
    ("vig2019", "example_tokens=0"),
    ("vig2019", "example_tokens=NaN"),
    ("vig2019", "context=1"),
    ("vig2019", "context=long"),
    ("vig2019", "attention=sparse"),
    ("vig2019", "attention="),
    ("vig2019", "exemplar=5"),
    ("vig2019", "probes=true"),
    ("vig2019", "exemplars"),
    ("vig2019", "=5"),
    ("clark2019", "max_tokens=1"),
    ("clark2019", "segment_ids=perhaps"),
    ("clark2019", "offsets=3"),
    ("clark2019", "offsets=[1.5]"),
    ("clark2019", "offsets=[true]"),
    ("clark2019", 'offsets=["a"]'),
    ("clark2019", "gradients=maybe"),
    ("clark2019", "gradients=-1"),
    ("clark2019", "masked_share=-1"),
    ("clark2019", "masked_share=0"),
    ("clark2019", "masked_share=1.5"),
    ("clark2019", "masked_share=Infinity"),
    ("clark2019", "thresholds=3"),
    ("clark2019", 'thresholds={"comma": 0.5}'),
    ("clark2019", 'thresholds={"sep": "high"}'),
    ("clark2019", 'thresholds={"sep": -1}'),
    ("clark2019", "sink_threshold=2"),
    ("clark2019", "repeated_sequences=0"),
    ("clark2019", "period=0"),
    ("clark2019", "row=last"),
    ("clark2019", "few=-5"),
    ("clark2019", "window=2"),
    ("clark2019", "windows=some"),
    ("clark2019", "probes=maybe"),
    ("clark2019", "train="),
    ("clark2019", "vectors="),
    ("clark2019", "epochs=-1"),
    ("clark2019", "epochs=0"),
    ("clark2019", "epochs=1.5"),
    ("clark2019", "probe_batch=0"),
    ("clark2019", "probe_rate=0"),
    ("clark2019", "probe_rate=fast"),
    ("clark2019", "probe_seeds=0"),
    ("clark2019", "probe_seeds=None"),
]


def run_command(
    monkeypatch: pytest.MonkeyPatch, study: str, out: str, *more: str, corpus: str = "demo"
) -> int:
    command = ["headscope", "study", study, "--model", "mini-gpt2", "--corpus", corpus]
    monkeypatch.setattr(sys, "argv", [*command, "--out", out, *more])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    return int(stopped.value.code or 0)


def is_one_sentence(said: str) -> bool:
    return said.count("\n") == 1 and said.startswith("headscope: ") and said[-2] in ".?"


@pytest.mark.parametrize(("study", "pair"), BAD, ids=lambda each: each)
def test_a_bad_option_on_the_command_line_is_refused_in_a_sentence(
    study: str,
    pair: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "run"
    assert run_command(monkeypatch, study, str(out), "--option", pair) == 2
    assert is_one_sentence(capsys.readouterr().err)
    assert not out.exists()


@pytest.mark.parametrize(("study", "pair"), [each for each in BAD if "=" in each[1][1:]])
def test_python_refuses_what_the_command_line_refuses(
    study: str, pair: str, tmp_path: Path
) -> None:
    name, _, text = pair.partition("=")
    try:
        value = json.loads(text)
    except ValueError:
        value = text
    out = tmp_path / "run"
    for given in (text, value):
        options: dict[str, Any] = {name: given}
        with pytest.raises(HeadscopeError, match=name):
            hs.study(study, causal_model(), treebank(40), out, **options)
    assert not out.exists()


@pytest.mark.parametrize(
    "given",
    [
        {"seed": "a"},
        {"seed": -1},
        {"seed": 1.5},
        {"seed": None},
        {"sentences": 0},
        {"sentences": "all"},
        {"batch_tokens": -5},
        {"engine": "spark"},
        {"out": ""},
        {"out": "  "},
    ],
    ids=str,
)
def test_bad_arguments_in_python_are_refused(given: dict[str, Any], tmp_path: Path) -> None:
    arguments = {"out": tmp_path / "run", **given}
    with pytest.raises(HeadscopeError):
        hs.study("vig2019", causal_model(), treebank(40), **arguments)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("flag", ["--out", "--corpus", "--model"])
def test_an_empty_name_is_refused_and_the_current_directory_is_left_alone(
    flag: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_command(monkeypatch, "vig2019", "run", flag, "") == 2
    assert f"{flag} is empty" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["False", "FALSE", "false", "no", "off", "0", False, 0])
def test_every_way_to_say_no_is_false(text: Any) -> None:
    options = {"segment_ids": text, "gradients": text, "probes": text}
    filled = find_study("clark2019").with_options(options)
    assert [filled[name] for name in options] == [False, False, False]


@pytest.mark.parametrize("text", ["True", "yes", "ON", "1", True, 1])
def test_every_way_to_say_yes_is_true(text: Any) -> None:
    assert find_study("vig2019").with_options({"self_exemplars": text})["self_exemplars"] is True


@pytest.mark.parametrize("study", STUDIES)
def test_defaults_pass_their_own_check_and_come_back_unchanged(study: str) -> None:
    chosen = find_study(study)
    for option in chosen.options:
        assert option.read(option.default) == option.default
        assert option.read(option.shown_default) == option.default
    assert list(chosen.with_options({})) == [option.name for option in chosen.options]


def test_a_run_that_has_computed_nothing_may_be_started_with_other_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("headscope.engine.measure.Measuring.compute", stop)
        with pytest.raises(KeyboardInterrupt):
            hs.study("vig2019", causal_model(), treebank(40), tmp_path, exemplars=2)
    assert json.loads((tmp_path / "run.json").read_text())["options"]["exemplars"] == 2
    found = hs.study("vig2019", causal_model(), treebank(40), tmp_path, exemplars=3)
    assert found.sizes["pick"] == 3
    assert json.loads((tmp_path / "run.json").read_text())["options"]["exemplars"] == 3


@pytest.mark.parametrize("content", ["the 0.1 0.2\ncat 0.1\n", "the quick brown\n", ""])
def test_a_malformed_vector_file_is_noticed_before_the_forward_pass(
    content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vectors = tmp_path / "vectors.txt"
    vectors.write_text(content)
    monkeypatch.setattr(
        "headscope.engine.measure.Measuring.compute", lambda *_: pytest.fail("too late")
    )
    with pytest.raises(HeadscopeError, match=r"vectors\.txt"):
        hs.study("clark2019", causal_model(), treebank(40), tmp_path / "run", vectors=str(vectors))
    assert not (tmp_path / "run").exists()
