"""headscope compare, as typed."""

import re
from pathlib import Path

from typer.testing import CliRunner

from headscope.cli import app
from tests.references.grouped import moved, random_result, write_run

WIDE = {"COLUMNS": "200"}


def test_the_largest_difference_is_printed_first_and_everything_is_written(tmp_path: Path) -> None:
    data = random_result(1)
    a, b = write_run(tmp_path / "a", data), write_run(tmp_path / "b", moved(data, 0.3))
    out = tmp_path / "all.csv"
    command = ["compare", str(a), str(b), "--out", str(out), "--rows", "1"]
    shown = CliRunner().invoke(app, command, env=WIDE)
    assert shown.exit_code == 0
    (row,) = [line for line in shown.stdout.splitlines() if "L1H1" in line]
    assert "Share of attention: DET" in row and "<0.001" in row
    assert re.search(r"\b1 of \d+ differences stand", shown.stdout)
    assert "One network: compared head with head." in shown.stdout
    assert f"{out}: 36 differences" in shown.stdout.replace("\n", "")
    assert len(out.read_text().splitlines()) == 37


def test_other_networks_are_shown_by_matched_heads_and_by_depth(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a", random_result(1, tags=("A", "B", "C")), network=1)
    b = write_run(tmp_path / "b", random_result(1, tags=("A", "B", "C")), network=2)
    shown = CliRunner().invoke(app, ["compare", str(a), str(b)], env=WIDE).stdout
    assert "trained apart" in shown and "Heads that do the same" in shown and "layer 0" in shown
    forced = CliRunner().invoke(app, ["compare", str(a), str(b), "--by", "index"], env=WIDE).stdout
    assert "by index as asked" in forced and "Heads that do the same" not in forced
