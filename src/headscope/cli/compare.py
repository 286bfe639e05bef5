"""headscope compare: the same measures of two runs, differences with confidence intervals."""

from pathlib import Path
from typing import Annotated

import typer


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
    from headscope.results.comparison_table import print_comparison

    comparison = compare_runs(run_a, run_b)
    print_comparison(comparison, rows)
    if out is not None:
        typer.echo(f"{out}: {write_csv(comparison, out):,} differences")
