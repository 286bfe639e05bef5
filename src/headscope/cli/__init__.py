"""The `headscope` program: collects the commands and turns a user's mistake into one sentence."""

import pkgutil
import sys
from importlib import import_module

import typer

import headscope
from headscope.errors import HeadscopeError

INTERRUPTED = 130  # what Typer makes of Ctrl-C, without a word

app = typer.Typer(
    name="headscope",
    help="What does each attention head look at? From one sentence to a corpus.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
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
) -> None:
    """What does each attention head look at? From one sentence to a corpus."""


for _module in pkgutil.iter_modules(__path__):  # adding a command is adding its file
    _found = import_module(f"headscope.cli.{_module.name}")
    app.command(cls=getattr(_found, "Command", None))(getattr(_found, _module.name))


def main() -> None:
    """Run the program: exit code 2 for a user's mistake, 130 for Ctrl-C."""
    try:
        app()
    except HeadscopeError as error:
        print(f"headscope: {error}", file=sys.stderr)
        sys.exit(2)
    except SystemExit as end:
        if end.code == INTERRUPTED:
            print("headscope: stopped; run the same command again to go on.", file=sys.stderr)
        raise
