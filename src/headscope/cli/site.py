"""headscope site: the explorer of finished runs as plain files."""

from pathlib import Path
from typing import Annotated

import typer

from headscope.cli.output import AsJson, print_file


def site(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN...", help="Directories made by `study`, or their result.nc."),
    ],
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="A new or empty directory, or an earlier site.")
    ],
    as_json: AsJson = False,
) -> None:
    """Write the explorer of finished runs as plain files: no server, any web host."""
    from headscope.explorer.site import site as write_site

    page = write_site(runs, out) / "index.html"
    print_file(page, as_json, ": open it, or put the folder on any web host.")
