"""Files of a few kilobytes that say gigabytes are refused before they take them."""

import json
import subprocess
import sys
from pathlib import Path

from tests.mistakes.amplifiers import AMPLIFIERS, COMMANDS, amplify

GIGABYTE = 2**30


def test_no_command_takes_a_gigabyte_for_any_file(tmp_path: Path) -> None:
    assert len(list(amplify(tmp_path))) == len(AMPLIFIERS)
    program = [sys.executable, "-m", "tests.mistakes.amplifiers", str(tmp_path)]
    answer = subprocess.run(program, capture_output=True, text=True, check=True)
    outcomes = [json.loads(line) for line in answer.stdout.splitlines()]
    assert len(outcomes) == len(AMPLIFIERS) * len(COMMANDS)
    for outcome in outcomes:
        assert outcome["exit"] in (0, 2), outcome
        assert "Traceback" not in outcome["said"], outcome
        assert outcome["memory"] < GIGABYTE, outcome
