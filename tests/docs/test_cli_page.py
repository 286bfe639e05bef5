"""The page of commands is what the program says of itself."""

from tests.docs.page_module import DOCS, load_page


def test_the_page_of_commands_is_current() -> None:
    assert (DOCS / "cli.md").read_text(encoding="utf-8") == load_page("cli_page").page()
