"""headscope annotate: raw text, or a corpus that lacks something, to one with tags and trees."""

from typing import Annotated

import typer

from headscope.text.readers import SUFFIXES
from headscope.wording import counted


def annotate(
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="INPUT...",
            help="Raw text: .txt, a paragraph per line and blank lines between documents; .jsonl, "
            "Parquet or Arrow with a text per document; a dataset of the hub, saved or by its "
            "name; - for standard input. Or a corpus that lacks tags or trees. Endings: "
            f"{', '.join(SUFFIXES)}, text also with .gz or .zst.",
        ),
    ],
    out: Annotated[
        str, typer.Option(metavar="CORPUS.parquet", help="Where the corpus goes: a path or a URL.")
    ],
    spacy: Annotated[
        str, typer.Option(metavar="NAME", help="A spaCy pipeline: a package or a directory.")
    ] = "en_core_web_sm",
    column: Annotated[
        str, typer.Option(metavar="NAME", help="The column or key that holds the text.")
    ] = "text",
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
    """Tag and parse raw text with spaCy, or add to a corpus what it lacks, and write a corpus."""
    from headscope.text.annotate import annotate as annotate_texts
    from headscope.text.annotate import find_inputs
    from headscope.workers import find_engine

    chosen = find_engine(engine, address=address, workers=workers)
    corpus = annotate_texts(
        find_inputs(inputs, column),
        spacy=spacy,
        out=out,
        processes=processes,
        engine="local" if chosen.name == "local" else chosen,
        progress=True,
    )
    count = counted(len(corpus), "sentences")
    typer.echo(f"{out}: {count}, fingerprint {corpus.fingerprint}")
