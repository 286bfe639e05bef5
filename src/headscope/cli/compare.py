"""headscope compare: what differs between two runs of one study."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from headscope.cli.output import AsJson
from headscope.wording import counted, plain

if TYPE_CHECKING:
    from rich.table import Table

    from headscope.results.compare import Comparison, Row
    from headscope.results.compare.differences import By
    from headscope.results.compare.matching import Match

MOST_MATCHES = 20
MOST_CHANGED = 10
PIPE_WIDTH = 160  # columns where there is no terminal


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
    as_json: AsJson = False,
) -> None:
    """Show what differs between two runs, largest differences first."""
    from headscope.results.compare import compare as compare_runs
    from headscope.results.compare import write_csv

    comparison = compare_runs(run_a, run_b, by=cast("By", by))
    changed = list(_changed(comparison, run_a, run_b))
    if as_json:
        _print_json(comparison, changed, rows)
    else:
        _print(comparison, rows)
        for line in changed:
            typer.echo(plain(line))
    if out is not None:
        count = write_csv(comparison, out)
        typer.echo(f"{out}: {counted(count, 'differences')}", err=as_json)


def _print_json(comparison: "Comparison", changed: list[str], most: int) -> None:
    import msgspec

    from headscope.results.compare import clear_and_all, rows_of

    clear, count = clear_and_all(comparison)
    answer = {
        "notes": comparison.notes,
        "clear": clear,
        "count": count,
        "differences": {
            part.kind: rows_of(comparison, part.kind, most) for part in comparison.parts
        },
        "changed": changed,
    }
    typer.echo(msgspec.json.format(msgspec.json.encode(answer), indent=2).decode())


def _print(comparison: "Comparison", most: int) -> None:
    """How the runs relate, matched heads, the largest differences, and how many stand."""
    from rich.console import Console

    from headscope.results.compare import rows_of

    console = Console(width=None if sys.stdout.isatty() else PIPE_WIDTH)
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


def _changed(comparison: "Comparison", run_a: Path, run_b: Path) -> Iterator[str]:
    """Which heads look at something else, in the sentences of their portraits."""
    from headscope.results.head_map import map_heads
    from headscope.results.heads import changed_heads
    from headscope.results.run import read_finished

    first, second = (map_heads(read_finished(run).data) for run in (run_a, run_b))
    if first is None or second is None:
        return
    pairs = None
    if comparison.matching is not None:
        matches = [match for match in comparison.matching.matches if match.is_good]
        pairs = [(match.first, match.second) for match in matches]
    changed = changed_heads(first, second, pairs)
    count = len(first.cells) if pairs is None else len(pairs)
    yield f"{len(changed)} of {counted(count, 'pairs')} of heads look at something else:"
    for pair in changed[:MOST_CHANGED]:
        yield f"  {pair.sentence}"


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
