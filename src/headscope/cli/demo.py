"""headscope demo: the studies on what comes with the package."""

from typing import Annotated

import typer


def demo(
    out: Annotated[
        str, typer.Option(metavar="DIR", help="A new or empty directory, or an earlier demo's.")
    ] = "headscope-demo",
    sentences: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Draw this many instead of all.")
    ] = None,
) -> None:
    """Run the studies on the bundled models and corpus, offline; write reports and views."""
    from headscope.demo import demo as run_demo
    from headscope.files import find_place

    run_demo(find_place(out), say=typer.echo, sentences=sentences)
