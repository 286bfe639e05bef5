"""Every example runs: the Python and `headscope` lines of the README and the docs, page by page."""

import re
import shlex
from importlib import import_module
from pathlib import Path

import pytest

from headscope import cli

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# What a shell block may hold besides headscope's own commands: set-up, and commands that wait.
NOT_RUN = re.compile(r"(pip|make|git|cd|python) |headscope serve|#|$")


def run_python(source: str, page: Path, names: dict[str, object]) -> None:
    exec(compile(source, f"{page.name} (example)", "exec"), names)


def run_shell(source: str) -> None:
    for line in source.replace("\\\n", " ").splitlines():
        if not NOT_RUN.match(line):
            program, *arguments = shlex.split(line, comments=True)
            assert program == "headscope", f"a shell example that no test runs: {line}"
            cli.app(arguments, standalone_mode=False)


@pytest.fixture(autouse=True)
def _one_format(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports draw SVG alone; that they write every format is claimed in tests/report."""
    # headscope.report is also a function, which is what a dotted name would find.
    monkeypatch.setattr(import_module("headscope.report"), "FORMATS", ("svg",))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_examples_of_a_page_run_from_top_to_bottom(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    for language, source in BLOCK.findall(page.read_text(encoding="utf-8")):
        if language == "python":
            run_python(source, page, names)
        elif language == "sh":
            run_shell(source)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_to_a_file_leads_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    missing = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert missing == []
