"""headscope compare, as typed."""

from pathlib import Path

from typer.testing import CliRunner

from headscope.cli import app
from tests.explorer.runs import write_run


def test_the_largest_difference_is_printed_first_and_everything_is_written(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a", "vig2019")
    b = write_run(tmp_path / "b", "vig2019", shift=3.0)
    out = tmp_path / "all.csv"
    command = ["compare", str(a), str(b), "--out", str(out), "--rows", "1"]
    shown = CliRunner().invoke(app, command, env={"COLUMNS": "120"})
    assert shown.exit_code == 0
    (row,) = [line for line in shown.stdout.splitlines() if "L1H2" in line]
    assert "entropy" in row and "+3.000" in row
    assert f"{out}: 592 differences" in shown.stdout.replace("\n", "")
    assert len(out.read_text().splitlines()) == 593


def test_a_missing_run_is_one_sentence() -> None:
    shown = CliRunner().invoke(app, ["compare", "no/such", "run"])
    assert "no/such has no result.nc" in str(shown.exception)
