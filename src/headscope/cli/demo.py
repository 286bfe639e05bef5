"""headscope demo: everything, on what the package carries."""

from pathlib import Path
from typing import Annotated

import typer


def demo(
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="A new or empty directory, or an earlier demo's.")
    ] = Path("headscope-demo"),
    sentences: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Draw so many instead of all.")
    ] = None,
) -> None:
    """Run both studies on the bundled models and corpus, offline; write reports and views."""
    from headscope.demo import demo as run_demo

    run_demo(out, say=typer.echo, sentences=sentences)
