"""headscope heads: what each head of a model looks at, from finished runs."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from headscope.errors import RunError

if TYPE_CHECKING:
    from headscope.results.head_map import MapCell
    from headscope.results.run import Run


def heads(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN…", help="Finished runs.")],
    role: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Heads with this name, group or word: previous, syntax."),
    ] = None,
    layer: Annotated[int | None, typer.Option(metavar="N", help="Heads of one layer.")] = None,
    sort: Annotated[
        Literal["explained", "layer", "role"],
        typer.Option(
            metavar="ORDER",
            help="explained: the best explained first; role: by what they look at; or layer.",
        ),
    ] = "layer",
    text: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Heads that this text shows, the clearest first."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON: models with their heads.")
    ] = False,
) -> None:
    """Say what each head looks at, and how much of its attention that explains.

    Runs of one model are read together, so that a head is described once. With a text the model of
    the run reads it, and the heads are listed that do there what they are called.
    """
    import msgspec

    from headscope.results.fact_words import RELATIONS
    from headscope.results.heads import by_model, choose_heads, describe_runs, richest, tell_rows
    from headscope.results.run import read_finished

    opened = [read_finished(run) for run in runs]
    rows = [] if role is None else [line for run in opened for line in tell_rows(run.data, role)]
    models = describe_runs(opened)
    answer = []
    for of_model, (name, described) in zip(by_model(opened), models, strict=True):
        chosen = choose_heads(described, role=role, layer=layer, order=sort, is_answered=bool(rows))
        if text is not None:
            chosen = _shown_by(text, richest(of_model), chosen)
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


def _shown_by(text: str, run: "Run", heads: "list[MapCell]") -> "list[MapCell]":
    """Those of the heads that a text shows, and in the sentence how well; none is refused."""
    from headscope.portrait.portraits import Portraits

    shown = Portraits(run.data, run.model).shown_by(text)
    by_name = {cell.head: cell for cell in heads}
    clear: list[MapCell] = []
    for name, share in shown.items():
        if name in by_name:
            sentence = f"{by_name[name].sentence} In this text: {100 * share:.0f} %."
            clear.append(replace(by_name[name], sentence=sentence))
    if not clear:
        raise RunError(
            "None of these heads does in this text what it is called; give a longer one."
        )
    return clear


def _line(head: "MapCell") -> str:
    """The sentence behind the share that is explained, and what it costs to lose the head."""
    share = "even" if head.explained is None else f"{100 * head.explained:.0f} %"
    return f"{share:>5}  {head.sentence}{f' {head.cost}' if head.cost else ''}"
