"""A comparison of two runs as a table on the terminal."""

from rich.console import Console
from rich.table import Table

from headscope.results.compare import Comparison, Row, clear_and_all, largest


def print_comparison(comparison: Comparison, most: int) -> None:
    """The largest differences, how many are clear of zero, and what was left out."""
    console = Console()
    table = Table(title=f"{comparison.first}  →  {comparison.second}", title_justify="left")
    table.add_column("head")
    table.add_column("measure", overflow="fold")
    percent = f"{comparison.confidence:.0%} interval".replace("%", " %")
    for name in ("first", "second", "difference", percent, "effect"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in largest(comparison, most):
        table.add_row(*_cells(row))
    console.print(table)
    for line in _lines(comparison):
        console.print(line, markup=False, highlight=False)


def _cells(row: Row) -> list[str]:
    measure = f"{row.measure} ({', '.join(row.at)})" if row.at else row.measure
    interval = f"{row.low:+.3f} … {row.high:+.3f}" if row.low == row.low else "–"
    return [
        f"L{row.layer}H{row.head}",
        measure.replace("[", "\\["),
        f"{row.first:.3f}",
        f"{row.second:.3f}",
        f"{row.difference:+.3f}",
        interval,
        f"{row.effect:+.2f}",
    ]


def _lines(comparison: Comparison) -> list[str]:
    clear, count = clear_and_all(comparison)
    by_chance = round(count * (1 - comparison.confidence))
    return [
        "Effect: the difference in standard deviations over the heads of both runs; ordered by how "
        "much of it the interval guarantees.",
        f"{clear:,} of {count:,} intervals leave out zero; about {by_chance:,} would by chance. "
        "They take the runs as independent.",
        *comparison.notes,
    ]
