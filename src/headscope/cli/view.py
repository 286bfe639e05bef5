"""headscope view: the attention of one text, as a page or a figure."""

from pathlib import Path
from typing import Annotated, Literal

import typer


def view(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What the model reads.")],
    model: Annotated[
        str,
        typer.Option(metavar="M", help="mini-gpt2, mini-bert, a directory, or a hub id."),
    ],
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where to: .html, .svg, .png or .pdf.")],
    kind: Annotated[Literal["head", "model", "neuron"], typer.Option(help="Which view.")] = "head",
    pair: Annotated[
        str | None, typer.Option(metavar="TEXT", help="A second text, for models of pairs.")
    ] = None,
    target: Annotated[
        str | None, typer.Option(metavar="TEXT", help="What the decoder reads, where there is one.")
    ] = None,
    generate: Annotated[
        int, typer.Option(metavar="N", min=0, help="Let the model write up to N tokens more.")
    ] = 0,
    layer: Annotated[
        int | None, typer.Option(metavar="L", help="The layer to open with; the first is 0.")
    ] = None,
    heads: Annotated[
        str | None, typer.Option(metavar="0,3", help="The heads to show; the first is 0.")
    ] = None,
) -> None:
    """Show what each head looks at in one text."""
    from headscope.model.load import load
    from headscope.views.request import save_view

    save_view(
        load(model),
        text,
        out,
        kind=kind,
        pair=pair,
        target=target,
        generate=generate,
        layer=layer,
        heads=heads,
    )
    typer.echo(str(out))
