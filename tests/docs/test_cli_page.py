"""The page of commands is what the program says of itself."""

from importlib.metadata import version

import pytest

from tests.docs.page_module import DOCS, load_page


def pinned(package: str) -> str:
    lines = (DOCS.parent / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return dict(line.split("==") for line in lines)[package]


@pytest.mark.skipif(version("typer") != pinned("typer"), reason="each Typer words help differently")
def test_the_page_of_commands_is_current() -> None:
    assert (DOCS / "cli.md").read_text(encoding="utf-8") == load_page("cli_page").page()
