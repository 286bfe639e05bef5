"""headscope report: figures, tables and a page of finished runs."""

from typing import Annotated

import typer

from headscope.cli.output import AsJson, print_file


def report(
    runs: Annotated[
        list[str], typer.Argument(metavar="RUN...", help="Finished runs, or their result.nc.")
    ],
    out: Annotated[
        str | None, typer.Option(metavar="FILE.html", help="The page; RUN/report.html by default.")
    ] = None,
    heads: Annotated[
        str, typer.Option(metavar="HEADS", help="Further heads to show, as L4H11,L0H3.")
    ] = "",
    width: Annotated[
        float | None, typer.Option(metavar="INCHES", help="Width of every figure.")
    ] = None,
    font: Annotated[
        str | None, typer.Option(metavar="FAMILY", help="Font of every figure, as Times.")
    ] = None,
    formats: Annotated[
        str | None,
        typer.Option(metavar="FORMATS", help="Files of every figure, as svg,pdf; all by default."),
    ] = None,
    columns: Annotated[
        str,
        typer.Option(metavar="NAMES", help="Of LaTeX tables, or all; those that fit by default."),
    ] = "",
    study: Annotated[
        str | None,
        typer.Option(metavar="package.module:STUDY", help="Your own study, for its figures."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write figures, tables and one page that needs nothing but itself."""
    import headscope as hs
    from headscope.studies import find_modules_here

    find_modules_here(study or "")
    page = hs.report(
        *runs,
        out=out,
        heads=_names(heads),
        width=width,
        font=font,
        formats=None if formats is None else _names(formats),
        columns=_names(columns),
        study=study,
    )
    print_file(page, as_json)


def _names(listed: str) -> list[str]:
    """What stands between commas."""
    return [name.strip() for name in listed.split(",") if name.strip()]
