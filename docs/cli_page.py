"""Print docs/cli.md: what `headscope --help` and the help of every command say.

python docs/cli_page.py > docs/cli.md
"""

from typer.testing import CliRunner

from headscope.cli import COMMANDS, app

HEADER = """# Commands

Printed by `python docs/cli_page.py`. Exit code 0: done; 2: a mistake, in one sentence;
130: stopped with Ctrl-C, run the same command again to go on. `headscope study NAME --help` lists
the options of a study; its page says what they are for: [vig2019](studies.md),
[clark2019](clark2019.md) with its [probes](probes.md), [luger2026](luger2026.md).
"""


def section(*command: str) -> str:
    """The help of one command."""
    shown = CliRunner(env={"COLUMNS": "100"}).invoke(app, [*command, "--help"]).output
    lines = (line.rstrip() for line in shown.strip().splitlines())
    text = "\n".join(lines)
    return f"\n## {' '.join(('headscope', *command))}\n\n```text\n{text}\n```\n"


def page() -> str:
    """The whole page."""
    names = [command.__name__ for command in COMMANDS]
    return HEADER + section() + "".join(map(section, names))


if __name__ == "__main__":
    print(page(), end="")
