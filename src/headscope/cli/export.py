"""headscope export: a finished run as files of other tools."""

from pathlib import Path
from typing import Annotated

import typer

from headscope.cli.output import AsJson, print_file


def export(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A finished run, or its result.nc.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="A new or empty directory.")],
    format: Annotated[
        str,
        typer.Option(
            metavar="csv|parquet|headvis|graph|kv",
            help="csv, parquet: everything in long form. Of runs that have it: headvis, heads with "
            "their examples; graph, what feeds heads (JSON, GraphML); kv, which heads need all "
            "keys and values of a long text.",
        ),
    ] = "csv",
    as_json: AsJson = False,
) -> None:
    """Write everything in a run as files of other tools."""
    from headscope.exports import export as write_export

    folder = write_export(run, out, format)  # pyright: ignore[reportArgumentType]
    print_file(folder, as_json)
