"""Every Python file that a page names is there, but for those that its reader is to write."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
NAMED = re.compile(r"`([\w./-]+/[\w-]+\.py)`")
WRITTEN_BY_THE_READER = "self_share.py"
ROOTS = ("", "src", "src/headscope")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_file_that_a_page_names_is_there(page: Path) -> None:
    named = set(NAMED.findall(page.read_text(encoding="utf-8")))
    ours = {name for name in named if not name.endswith(WRITTEN_BY_THE_READER)}
    assert {name for name in ours if not any((ROOT / at / name).exists() for at in ROOTS)} == set()
