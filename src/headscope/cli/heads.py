"""headscope heads: what each head of a model looks at, from finished runs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

if TYPE_CHECKING:
    from headscope.results.head_map import MapCell
    from headscope.results.heads import Order


def _read_sort(given: str) -> str:
    if given not in ("explained", "layer", "role"):
        raise typer.BadParameter(f"{given!r} is none of explained, layer and role")
    return given


def heads(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN…", help="Finished runs.")],
    role: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Heads with this name, group or word: previous, syntax."),
    ] = None,
    layer: Annotated[int | None, typer.Option(metavar="N", help="Heads of one layer.")] = None,
    sort: Annotated[
        str,
        typer.Option(
            metavar="ORDER",
            callback=_read_sort,
            help="explained: the best explained first; role: by what they look at; or layer.",
        ),
    ] = "layer",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON: models with their heads.")
    ] = False,
) -> None:
    """Say what each head looks at, and how much of its attention that explains.

    Runs of one model are read together, so that a head is described once.
    """
    import msgspec

    from headscope.results.fact_words import RELATIONS
    from headscope.results.heads import choose_heads, describe_runs, tell_rows
    from headscope.results.run import read_finished

    opened = [read_finished(run) for run in runs]
    rows = [] if role is None else [line for run in opened for line in tell_rows(run.data, role)]
    models = describe_runs(opened)
    answer = []
    for name, described in models:
        chosen = choose_heads(
            described, role=role, layer=layer, order=cast("Order", sort), is_answered=bool(rows)
        )
        answer.append({"model": name, "summary": described.summary, "heads": chosen})
        if not as_json:
            if len(models) > 1:
                typer.echo(f"{name}:")
            for head in chosen:
                typer.echo(_line(head))
            typer.echo(described.summary)
    for line in rows:
        typer.echo(line, err=as_json)
    if role in RELATIONS and not rows:
        typer.echo(
            f"The best head for {role} is in Table 1 of `headscope study clark2019`.", err=True
        )
    if as_json:
        typer.echo(msgspec.json.format(msgspec.json.encode(answer), indent=2).decode())


def _line(head: "MapCell") -> str:
    """The sentence behind the share that is explained, and what it costs to lose the head."""
    share = "even" if head.explained is None else f"{100 * head.explained:.0f} %"
    return f"{share:>5}  {head.sentence}{f' {head.cost}' if head.cost else ''}"
