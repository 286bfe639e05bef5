"""The `headscope` program: collects the commands and turns a user's mistake into one sentence."""

import io
import sys
import warnings
from collections.abc import Sequence
from contextlib import nullcontext, redirect_stderr
from itertools import pairwise
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

import headscope
from headscope.cli.annotate import annotate
from headscope.cli.check import check
from headscope.cli.compare import compare
from headscope.cli.demo import demo
from headscope.cli.export import export
from headscope.cli.heads import heads
from headscope.cli.mcp import mcp
from headscope.cli.report import report
from headscope.cli.serve import serve
from headscope.cli.site import site
from headscope.cli.study import StudyCommand, study
from headscope.cli.view import view
from headscope.errors import HeadscopeError
from headscope.wording import plain

MISTAKE, QUIET = 2, "--quiet"
INTERRUPTED = 130  # what Typer makes of Ctrl-C, without a word

# Click's class, or that of the copy of Click inside newer versions of Typer.
_UsageError: type[Exception] = typer.BadParameter.__bases__[0]


class _Commands(TyperGroup):
    """Refuses what no command can mean, before any of them sees it."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        _check_arguments(args)
        return super().parse_args(ctx, args)


app = typer.Typer(
    name="headscope",
    cls=_Commands,
    help="What does each attention head look at? From one sentence to a corpus.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"headscope {headscope.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: bool = typer.Option(
        False, "--version", callback=_print_version, is_eager=True, help="Print the version."
    ),
    quiet: bool = typer.Option(
        False, QUIET, help="Print results and mistakes alone, with any command."
    ),
) -> None:
    """What does each attention head look at? From one sentence to a corpus."""


COMMANDS = (annotate, check, compare, demo, export, heads, mcp, report, serve, site, study, view)
for _command in COMMANDS:
    app.command(cls=StudyCommand if _command is study else None)(_command)


def main() -> None:
    """Run the program: exit code 2 for a user's mistake, 130 for Ctrl-C."""
    warnings.formatwarning = _remark
    args = [argument for argument in sys.argv[1:] if argument != QUIET]
    is_quiet = len(args) < len(sys.argv) - 1
    try:
        with redirect_stderr(io.StringIO()) if is_quiet else nullcontext():
            code = app(args=args or ["--help"], prog_name="headscope", standalone_mode=False)
    except HeadscopeError as error:
        _stop(str(error))
    except _UsageError as error:
        _stop(_usage(error))
    except Exception as error:
        if _is_out_of_memory(error):
            _stop("The memory ran out; close other programs, or give it less to read at a time.")
        if not isinstance(error, OSError) or error.filename is None:
            raise
        _stop(f"{error.filename}: {error.strerror}; check the path.")
    if code == INTERRUPTED:
        print("headscope: stopped; run the same command again to go on.", file=sys.stderr)
    sys.exit(code)


def _stop(message: str) -> NoReturn:
    print(f"headscope: {plain(message)}", file=sys.stderr)
    sys.exit(MISTAKE)


def _is_out_of_memory(error: BaseException | None) -> bool:
    """Whether memory that ran out is the error, or the cause of one met while files are closed."""
    while error is not None:
        if isinstance(error, MemoryError):
            return True
        if isinstance(error, RuntimeError) and "torch" in sys.modules:
            from headscope.model.loading.memory import is_out_of_memory

            if is_out_of_memory(error):
                return True
        error = error.__context__
    return False


def _remark(message: Any, category: type, filename: str, line: int, text: Any = None) -> str:
    """A warning of our own as a sentence; of other libraries it matters where it comes from."""
    if filename.startswith(headscope.__path__[0]):
        return f"headscope: {plain(str(message))}\n"
    return f"{filename}:{line}: {category.__name__}: {message}\n"


def _usage(error: Any) -> str:
    """What Click says of a wrong option, on one line, and where the right ones are listed."""
    said = " ".join(error.format_message().split()).removesuffix(".")
    command = error.ctx.command_path if error.ctx else "headscope"
    see = " See" if said.endswith("?") else "; see"
    return f"{said}{see} `{command} --help`."


def _check_arguments(args: Sequence[str]) -> None:
    for before, value in pairwise(["", *args]):
        if value == "" or (value.startswith("--") and value.endswith("=")):
            option = value[:-1] or (before if before.startswith("-") else "An argument")
            raise HeadscopeError(
                f"{option} is empty; give a value, or leave it out. "
                "A shell variable that is not set looks like this."
            )
        if any("\udc80" <= character <= "\udcff" for character in value):
            shown = value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
            raise HeadscopeError(
                f"{shown!r} is not UTF-8; type it in a UTF-8 terminal, or rename the file."
            )
