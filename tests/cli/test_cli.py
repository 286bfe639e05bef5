"""The program as a whole: light to import, quick to help, plain about mistakes."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import headscope
from headscope import cli
from headscope.results import dataset
from headscope.results.run import read_run
from tests.references.runs import write_run


def run_python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def run_headscope(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "headscope", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


HEAVY = "{'torch', 'transformers', 'matplotlib', 'xarray', 'pyarrow', 'spacy', 'sklearn'}"


def test_importing_the_package_imports_nothing_heavy() -> None:
    assert run_python(f"import sys, headscope; print({HEAVY} & set(sys.modules))") == "set()"


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys, headscope.cli\n"
        "from typer.testing import CliRunner\n"
        "result = CliRunner().invoke(headscope.cli.app, ['--help'])\n"
        f"print(result.exit_code, {HEAVY} & set(sys.modules))"
    )
    assert run_python(code) == "0 set()"


def test_an_unknown_public_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        headscope.nonsense  # type: ignore[attr-defined]


def test_help_lists_every_command_of_the_design() -> None:
    shown = run_headscope("--help").stdout
    for name in ("annotate", "check", "demo", "report", "study", "view"):
        assert f"\n  {name} " in shown


def test_ctrl_c_says_how_to_go_on() -> None:
    code = (
        "import signal, time; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from headscope import cli\n"
        "@cli.app.command()\n"
        "def nap(): print('asleep', flush=True); time.sleep(60)\n"
        "cli.main()"
    )
    napping = subprocess.Popen(
        [sys.executable, "-c", code, "nap"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert napping.stdout is not None and napping.stdout.readline() == "asleep\n"
    napping.send_signal(signal.SIGINT)
    _, said = napping.communicate(timeout=60)
    assert napping.returncode == 130
    assert said == "headscope: stopped; run the same command again to go on.\n"


def test_a_missing_model_directory_is_one_sentence_before_torch_is_imported() -> None:
    command = [sys.executable, "-X", "importtime", "-m", "headscope", "check", "no/such/model"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = done.stderr.splitlines()
    imported = {line.split("|")[-1].strip() for line in lines if line.startswith("import time:")}
    (said,) = [line for line in lines if not line.startswith("import time:")]
    assert done.returncode == 2
    assert said.startswith("headscope: There is no model directory no/such/model;")
    assert "headscope.model.loading.source" in imported and "torch" not in imported


def test_a_warning_of_ours_is_one_sentence_and_of_others_says_where() -> None:
    here = cli.__file__
    assert cli._remark(UserWarning("No font."), UserWarning, here, 3) == "headscope: No font.\n"
    assert cli._remark("Old.", FutureWarning, "/x.py", 3) == "/x.py:3: FutureWarning: Old.\n"


def test_a_command_is_in_the_file_of_its_name() -> None:
    for command in cli.COMMANDS:
        assert command.__module__ == f"headscope.cli.{command.__name__}"


def test_results_are_printed_for_programs_and_quietly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = write_run(tmp_path / "run", "vig2019")
    site = ("site", str(run), "--out", str(tmp_path / "site"), "--json", "--quiet")
    export = ("export", str(run), "--out", str(tmp_path / "csv"), "--json")
    for arguments, name in ((site, "site/index.html"), (export, "csv")):
        monkeypatch.setattr(sys, "argv", ["headscope", *arguments])
        with pytest.raises(SystemExit):
            cli.main()
        assert json.loads(capsys.readouterr().out) == {"file": str(tmp_path / name)}
    monkeypatch.setattr(sys, "argv", ["headscope", "compare", str(run), str(run), "--json", "-h"])
    with pytest.raises(SystemExit):
        cli.main()
    assert "Usage: headscope compare" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["headscope", "compare", str(run), str(run), "--json"])
    with pytest.raises(SystemExit):
        cli.main()
    told = json.loads(capsys.readouterr().out)
    assert told["clear"] == 0 and len(told["differences"]["heads"]) == 20


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes"),
    ],
)
def test_memory_that_runs_out_is_one_sentence(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail_while_closing(**_: object) -> None:
        try:
            raise error
        finally:
            raise ValueError("I/O operation on closed file.")

    monkeypatch.setattr(sys, "argv", ["headscope", "heads", "run"])
    monkeypatch.setattr(cli, "app", fail_while_closing)
    with pytest.raises(SystemExit, match="2"):
        cli.main()
    assert capsys.readouterr().err.startswith("headscope: The memory ran out; ")


def test_a_result_that_memory_is_too_short_for_is_not_to_be_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(file: Path) -> None:
        raise MemoryError

    write_run(tmp_path / "run", "vig2019")
    monkeypatch.setattr(dataset, "_read", fail)
    assert (
        "because the memory ran out; close other programs" in read_run(tmp_path / "run").notes[-1]
    )
