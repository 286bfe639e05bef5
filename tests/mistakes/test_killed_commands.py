"""kill -9 while a command writes leaves no half file, and the same command makes it whole."""

import json
from pathlib import Path

from headscope.files import UNFINISHED
from tests.mistakes import killed_commands
from tests.tools.warm import forking


def test_commands_that_were_killed_write_the_same_when_they_are_run_again(tmp_path: Path) -> None:
    process = forking.Process(target=killed_commands.main, args=(tmp_path,))
    process.start()
    process.join()
    assert process.exitcode == 0
    said = json.loads((tmp_path / "said").read_text())
    assert list(said) == ["annotate", "report", "site"]
    for name, became in said.items():
        assert became["deaths"] == [-9] * 3, name
        assert became["halves"] == [] and became["differ"] == [], name
        assert all(file.endswith(UNFINISHED) for file in became["left"]), name
        assert became["run"] == "complete", name
