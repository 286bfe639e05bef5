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
    out: Annotated[Path, typer.Option(metavar="CORPUS.parquet", help="Where the corpus goes.")],
    spacy: Annotated[
        str, typer.Option(metavar="NAME", help="A spaCy pipeline: a package or a directory.")
    ] = "en_core_web_sm",
    processes: Annotated[
        int | None, typer.Option(metavar="N", help="How many run at once; all cores by default.")
    ] = None,
) -> None:
    """Split raw text into sentences, tag and parse them with spaCy, and write a corpus."""
    from headscope.text.annotate import annotate as annotate_documents
    from headscope.text.documents import DocumentFiles

    corpus = annotate_documents(
        DocumentFiles(inputs), spacy=spacy, out=out, processes=processes, progress=True
    )
    typer.echo(f"{out}: {len(corpus):,} sentences, fingerprint {corpus.fingerprint}")
