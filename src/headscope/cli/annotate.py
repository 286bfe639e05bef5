"""headscope annotate: raw text to a corpus with sentences, tags and trees."""

from pathlib import Path
from typing import Annotated

import typer


def annotate(
    inputs: Annotated[
        list[Path],
        typer.Argument(
            metavar="INPUT...",
            help=".txt files, a paragraph per line and blank lines between documents, "
            'or .jsonl files with a "text" per document.',
        ),
    ],
    out: Annotated[
        str, typer.Option(metavar="CORPUS.parquet", help="Where the corpus goes: a path or a URL.")
    ],
    spacy: Annotated[
        str, typer.Option(metavar="NAME", help="A spaCy pipeline: a package or a directory.")
    ] = "en_core_web_sm",
    processes: Annotated[
        int | None, typer.Option(metavar="N", help="How many run at once; all cores by default.")
    ] = None,
    engine: Annotated[str, typer.Option(metavar="local|ray", help="Where it is done.")] = "local",
    address: Annotated[
        str | None, typer.Option(metavar="A", help="A running Ray cluster, as host:port or auto.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(metavar="N", help="Ray workers; one per core by default.")
    ] = None,
) -> None:
    """Split raw text into sentences, tag and parse them with spaCy, and write a corpus."""
    from headscope.text.annotate import annotate as annotate_documents
    from headscope.text.documents import DocumentFiles
    from headscope.workers.engine import find_engine

    chosen = find_engine(engine, address=address, workers=workers)
    corpus = annotate_documents(
        DocumentFiles(inputs),
        spacy=spacy,
        out=out,
        processes=processes,
        engine="local" if chosen.name == "local" else chosen,
        progress=True,
    )
    typer.echo(f"{out}: {len(corpus):,} sentences, fingerprint {corpus.fingerprint}")
