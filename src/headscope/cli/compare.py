"""headscope compare: the same measures of two runs, differences with confidence intervals."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headscope.heads import name_head
from headscope.wording import plain

if TYPE_CHECKING:
    from headscope.results.compare import Comparison, Row


def compare(
    run_a: Annotated[Path, typer.Argument(metavar="RUN_A", help="A finished run.")],
    run_b: Annotated[Path, typer.Argument(metavar="RUN_B", help="Another run of the same study.")],
    out: Annotated[
        Path | None, typer.Option(metavar="FILE.csv", help="Write every difference there.")
    ] = None,
    rows: Annotated[int, typer.Option(metavar="N", min=1, help="How many to print.")] = 20,
) -> None:
    """Show what differs between two runs, head by head, largest differences first."""
    from headscope.results.compare import compare as compare_runs
    from headscope.results.compare import write_csv

    comparison = compare_runs(run_a, run_b)
    _print(comparison, rows)
    if out is not None:
        typer.echo(f"{out}: {write_csv(comparison, out):,} differences")


def _print(comparison: "Comparison", most: int) -> None:
    """The largest differences, how many are clear of zero, and what was left out."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from headscope.results.compare import largest

    console = Console()
    title = Text(plain(f"{comparison.first}  →  {comparison.second}"))
    table = Table(title=title, title_justify="left")
    table.add_column("head")
    table.add_column("measure", overflow="fold")
    percent = f"{comparison.confidence:.0%} interval".replace("%", " %")
    for name in ("first", "second", "difference", percent, "effect"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in largest(comparison, most):
        table.add_row(*map(Text, map(plain, _cells(row))))
    console.print(table)
    for line in _lines(comparison):
        console.print(plain(line), markup=False, highlight=False)


def _cells(row: "Row") -> list[str]:
    interval = f"{row.low:+.3f} … {row.high:+.3f}" if row.low == row.low else "–"
    return [
        name_head(row.layer, row.head),
        row.title,
        f"{row.first:.3f}",
        f"{row.second:.3f}",
        f"{row.difference:+.3f}",
        interval,
        f"{row.effect:+.2f}",
    ]


def _lines(comparison: "Comparison") -> list[str]:
    from headscope.results.compare import clear_and_all

    clear, count = clear_and_all(comparison)
    by_chance = round(count * (1 - comparison.confidence))
    return [
        "Effect: the difference in standard deviations over the heads of both runs; ordered by how "
        "much of it the interval guarantees.",
        f"{clear:,} of {count:,} intervals leave out zero; about {by_chance:,} would by chance. "
        "They take the runs as independent.",
        *comparison.notes,
    ]
