"""What commands print: results on standard output, for people or, with --json, for programs."""

import json
from pathlib import Path
from typing import Annotated

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


def print_file(file: str | Path, as_json: bool, more: str = "") -> None:
    """Name the file that was written, and what to do with it."""
    typer.echo(json.dumps({"file": str(file)}) if as_json else f"{file}{more}")
