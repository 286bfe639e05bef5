"""headscope compare: what differs between two runs of one study."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from headscope.cli.output import AsJson
from headscope.errors import RunError
from headscope.wording import counted, plain

if TYPE_CHECKING:
    from rich.table import Table

    from headscope.results.compare import Comparison
    from headscope.results.compare.matching import Match

MOST_MATCHES = 20
MOST_CHANGED = 10
PIPE_WIDTH = 160  # columns where there is no terminal


def compare(
    run_a: Annotated[Path, typer.Argument(metavar="RUN_A", help="A finished run.")],
    run_b: Annotated[Path, typer.Argument(metavar="RUN_B", help="Another run of the same study.")],
    by: Annotated[
        Literal["auto", "index", "matched", "depth"],
        typer.Option(
            metavar="WAY",
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

    if out is not None and (out.is_dir() or not out.parent.is_dir()):
        reason = "is a directory" if out.is_dir() else "its folder is not there"
        raise RunError(f"{out} cannot be written: {reason}; give another with --out.")
    comparison = compare_runs(run_a, run_b, by=by)
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

    from headscope.results.compare import clear_and_all, exported, rows_of

    clear, count = clear_and_all(comparison)
    answer = {
        "notes": comparison.notes,
        "clear": clear,
        "count": count,
        "differences": {
            kind: exported(rows_of(comparison, kind, most)) for kind in comparison.kinds
        },
        "changed": changed,
    }
    typer.echo(msgspec.json.format(msgspec.json.encode(answer), indent=2).decode())


def _print(comparison: "Comparison", most: int) -> None:
    """How the runs relate, matched heads, the largest differences, and how many stand."""
    from rich.console import Console

    from headscope.results.compare import rows_of

    width = None if sys.stdout.isatty() else PIPE_WIDTH
    console = Console(width=width, markup=False, emoji=False, highlight=False)
    for line in comparison.notes:
        console.print(plain(line))
    if comparison.matching is not None:
        console.print(_matches(comparison.matching.matches[:MOST_MATCHES]))
    for kind in comparison.kinds:
        rows = rows_of(comparison, kind, most)
        if rows:
            title = f"{kind.capitalize()}: {comparison.first}  →  {comparison.second}"
            console.print(_differences(rows, title, comparison.confidence))
    for line in _lines(comparison):
        console.print(plain(line))


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


def _differences(rows: Sequence[Mapping[str, Any]], title: str, confidence: float) -> "Table":
    interval = f"{confidence:.0%} interval".replace("%", " %")
    table = _table(title, ("at", "measure"), ("first", "second", "difference", interval, "q"))
    for row in rows:
        table.add_row(*map(plain, _cells(row)))
    return table


def _matches(matches: "tuple[Match, ...]") -> "Table":
    title = "Heads that do the same, nearest first"
    table = _table(title, ("first", "second"), ("distance", "chance"))
    for match in matches:
        numbers = f"{match.distance:.2f}", f"{match.chance:.3f}"
        style = None if match.is_good else "dim"
        table.add_row(str(match.first), str(match.second), *numbers, style=style)
    return table


def _table(title: str, names: Sequence[str], numbers: Sequence[str]) -> "Table":
    from rich.table import Table

    table = Table(title=plain(title), title_justify="left")
    for name in names:
        table.add_column(name, overflow="fold")
    for name in numbers:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _cells(row: Mapping[str, Any]) -> list[str]:
    low, high, q = row["low"], row["high"], row["q"]
    return [
        row["place"],
        row["title"],
        f"{row['first']:.3f}",
        f"{row['second']:.3f}",
        f"{row['difference']:+.3f}",
        f"{low:+.3f} … {high:+.3f}" if low == low else "–",
        "–" if q != q else f"{q:.3f}" if q >= 0.0005 else "<0.001",
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
