import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "corpora.md"


def test_the_examples_of_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 2
    exec("\n".join(blocks), {})
