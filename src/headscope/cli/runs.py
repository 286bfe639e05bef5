"""What is done with finished runs: say what heads look at, compare, report, export, explore."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from headscope.cli.check import Device, DeviceMap, Dtype, Quantization
from headscope.wording import counted, plain

if TYPE_CHECKING:
    from rich.table import Table

    from headscope.results.compare import Comparison, Row
    from headscope.results.compare.differences import By
    from headscope.results.compare.matching import Match

MOST_MATCHES = 20


def heads(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A finished run.")],
    role: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Heads with this kind of role, label or words: det."),
    ] = None,
    layer: Annotated[int | None, typer.Option(metavar="N", help="Heads of one layer.")] = None,
) -> None:
    """Say what each head of a run looks at, strongest role first."""
    from headscope.errors import RunError
    from headscope.results.run import read_finished
    from headscope.results.statements import choose, read_statements

    found = read_statements(read_finished(run).data).heads
    if not found:
        raise RunError(f"No measure of {run} tells what heads look at; run vig2019 or clark2019.")
    for one in choose(found, role=role, layer=layer):
        share = "" if one.share is None else f"; accounts for {one.share:.0%} of its attention"
        typer.echo(one.sentence + share.replace("%", " %"))


def _read_by(given: str) -> str:
    if given not in ("auto", "index", "matched", "depth"):
        raise typer.BadParameter(f"{given!r} is none of auto, index, matched and depth")
    return given


def compare(
    run_a: Annotated[Path, typer.Argument(metavar="RUN_A", help="A finished run.")],
    run_b: Annotated[Path, typer.Argument(metavar="RUN_B", help="Another run of the same study.")],
    by: Annotated[
        str,
        typer.Option(
            metavar="WAY",
            callback=_read_by,
            help="How heads find each other: index (head with head), matched (by what they do), "
            "depth (layers), or auto: index within one lineage of networks, else both others.",
        ),
    ] = "auto",
    out: Annotated[
        Path | None, typer.Option(metavar="FILE.csv", help="Write every difference there.")
    ] = None,
    rows: Annotated[int, typer.Option(metavar="N", min=1, help="How many to print.")] = 20,
) -> None:
    """Show what differs between two runs, largest differences first."""
    from headscope.results.compare import compare as compare_runs
    from headscope.results.compare import write_csv

    comparison = compare_runs(run_a, run_b, by=cast("By", by))
    _print(comparison, rows)
    if out is not None:
        typer.echo(f"{out}: {counted(write_csv(comparison, out), 'differences')}")


def _print(comparison: "Comparison", most: int) -> None:
    """How the runs relate, matched heads, the largest differences, and how many stand."""
    from rich.console import Console

    from headscope.results.compare import rows_of

    console = Console()
    for line in comparison.notes:
        console.print(plain(line), markup=False, highlight=False)
    if comparison.matching is not None:
        console.print(_matches(comparison.matching.matches[:MOST_MATCHES]))
    for part in comparison.parts:
        rows = rows_of(comparison, part.kind, most)
        if rows:
            title = f"{part.kind.capitalize()}: {comparison.first}  →  {comparison.second}"
            console.print(_differences(rows, title, comparison.confidence))
    for line in _lines(comparison):
        console.print(plain(line), markup=False, highlight=False)


def _differences(rows: "list[Row]", title: str, confidence: float) -> "Table":
    from rich.text import Text

    table = _table(title, "at", "measure")
    percent = f"{confidence:.0%} interval".replace("%", " %")
    for name in ("first", "second", "difference", percent, "q"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*map(Text, map(plain, _cells(row))))
    return table


def _matches(matches: "tuple[Match, ...]") -> "Table":
    table = _table("Heads that do the same, nearest first", "first", "second")
    for name in ("distance", "chance"):
        table.add_column(name, justify="right")
    for one in matches:
        cells = (str(one.first), str(one.second), f"{one.distance:.2f}", f"{one.chance:.3f}")
        table.add_row(*cells, style=None if one.is_good else "dim")
    return table


def _table(title: str, *columns: str) -> "Table":
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(plain(title)), title_justify="left")
    for name in columns:
        table.add_column(name, overflow="fold")
    return table


def _cells(row: "Row") -> list[str]:
    interval = f"{row.low:+.3f} … {row.high:+.3f}" if row.low == row.low else "–"
    return [
        row.place,
        row.title,
        f"{row.first:.3f}",
        f"{row.second:.3f}",
        f"{row.difference:+.3f}",
        interval,
        "–" if row.q != row.q else f"{row.q:.3f}" if row.q >= 0.0005 else "<0.001",
    ]


def _lines(comparison: "Comparison") -> Iterator[str]:
    from headscope.results.compare import clear_and_all

    clear, count = clear_and_all(comparison)
    yield (
        f"{clear:,} of {count:,} differences stand after correction for all of them (q < 0.05); "
        "ordered by how much of the effect the interval guarantees."
    )
    if comparison.matching is not None:
        yield "Chance: share of the matches of strangers that are at least as near."


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
    study: Annotated[
        str | None,
        typer.Option(metavar="package.module:STUDY", help="Your own study, for its figures."),
    ] = None,
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
        study=study,
    )
    typer.echo(str(page))


def _names(listed: str) -> list[str]:
    """What stands between commas."""
    return [name.strip() for name in listed.split(",") if name.strip()]


def export(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A finished run, or its result.nc.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="A new or empty directory.")],
    format: Annotated[
        str,
        typer.Option(
            metavar="csv|parquet|headvis",
            help="csv, parquet: everything in long form; headvis: a run of luger2026.",
        ),
    ] = "csv",
) -> None:
    """Write everything in a run as files of other tools."""
    from headscope.exports import export as write_export

    typer.echo(str(write_export(run, out, format)))  # pyright: ignore[reportArgumentType]


def serve(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[RUN]...", help="Directories made by `study`, or their result.nc."),
    ] = None,
    model: Annotated[
        str | None, typer.Option(metavar="M", help="A model to trace typed texts with.")
    ] = None,
    host: Annotated[
        str, typer.Option(help="Another address than 127.0.0.1 is guarded by a token.")
    ] = "127.0.0.1",
    device: Device = None,
    dtype: Dtype = "float32",
    device_map: DeviceMap = None,
    quantization: Quantization = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8642,
    browser: Annotated[bool, typer.Option(help="Open the explorer in the browser.")] = True,
) -> None:
    """Explore runs, and with --model any text, in the browser."""
    import webbrowser

    from headscope.explorer import serve as serve_runs

    def ready(address: str) -> None:
        typer.echo(f"Headscope explorer: {address}  (Ctrl-C stops it)")
        if browser:
            webbrowser.open(address)

    load = {"device": device, "device_map": device_map, "quantization": quantization}
    load["dtype"] = dtype
    serve_runs(runs or [], model=model, load=load, host=host, port=port, ready=ready)


def site(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN...", help="Directories made by `study`, or their result.nc."),
    ],
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="A new or empty directory, or an earlier site.")
    ],
) -> None:
    """Write the explorer of finished runs as plain files: no server, any web host."""
    from headscope.explorer.site import site as write_site

    folder = write_site(runs, out)
    typer.echo(f"{folder}: open index.html behind any web server,")
    typer.echo(f"as `python -m http.server --directory {folder}` is one.")
