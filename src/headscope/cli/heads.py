"""headscope heads: what each head of a finished run looks at."""

from pathlib import Path
from typing import Annotated

import typer


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
