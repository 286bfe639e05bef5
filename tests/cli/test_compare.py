"""headscope compare, as typed."""

from pathlib import Path

from typer.testing import CliRunner

from headscope.cli import app
from tests.results.test_compare import write_run


def test_the_largest_difference_is_printed_first_and_everything_is_written(tmp_path: Path) -> None:
    a, b = write_run(tmp_path / "a"), write_run(tmp_path / "b", shift=3.0)
    out = tmp_path / "all.csv"
    command = ["compare", str(a), str(b), "--out", str(out), "--rows", "1"]
    shown = CliRunner().invoke(app, command, env={"COLUMNS": "160"})
    assert shown.exit_code == 0
    (row,) = [line for line in shown.stdout.splitlines() if "L1H1" in line]
    assert "Share of attention: DET" in row and "+3.000" in row
    assert f"{out}: 12 differences" in shown.stdout.replace("\n", "")
    assert len(out.read_text().splitlines()) == 13


def test_a_missing_run_is_one_sentence() -> None:
    shown = CliRunner().invoke(app, ["compare", "no/such", "run"])
    assert "no/such has no result.nc" in str(shown.exception)
