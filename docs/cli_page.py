"""Print docs/cli.md: what `headscope --help` and the help of every command say.

python docs/cli_page.py > docs/cli.md
"""

from typer.testing import CliRunner

from headscope.cli import COMMANDS, app
from headscope.studies import STUDIES

HEADER = """# Commands

Printed by `python docs/cli_page.py`. Exit code 0: done; 2: a mistake, in one sentence;
130: stopped with Ctrl-C, run the same command again to go on.
"""


def section(*command: str) -> str:
    """The help of one command."""
    shown = CliRunner(env={"COLUMNS": "100"}).invoke(app, [*command, "--help"]).output
    lines = (line.rstrip() for line in shown.strip().splitlines())
    title, text = " ".join(("headscope", *command[:1])), "\n".join(lines)
    if len(command) > 1:
        title, text = "Options of studies", text[text.index("Options of ") :]
    return f"\n## {title}\n\n```text\n{text}\n```\n"


def page() -> str:
    """The whole page."""
    names = [command.__name__ for command in COMMANDS]
    return HEADER + section() + "".join(map(section, names)) + section("study", *STUDIES)


if __name__ == "__main__":
    print(page(), end="")
