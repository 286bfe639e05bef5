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

    from headscope.results.heads import choose_heads, describe_runs
    from headscope.results.run import read_finished

    models = describe_runs([read_finished(run) for run in runs])
    answer = []
    for name, described in models:
        chosen = choose_heads(described, role=role, layer=layer, order=cast("Order", sort))
        answer.append({"model": name, "summary": described.summary, "heads": chosen})
        if not as_json:
            if len(models) > 1:
                typer.echo(f"{name}:")
            for head in chosen:
                typer.echo(_line(head))
            typer.echo(described.summary)
    if as_json:
        typer.echo(msgspec.json.format(msgspec.json.encode(answer), indent=2).decode())


def _line(head: "MapCell") -> str:
    """The sentence behind the share that is explained, and what it costs to lose the head."""
    share = "even" if head.explained is None else f"{100 * head.explained:.0f} %"
    return f"{share:>5}  {head.sentence}{f' {head.cost}' if head.cost else ''}"
