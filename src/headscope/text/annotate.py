"""Raw text to a corpus: sentences, tags and trees by spaCy."""

import os
from collections.abc import Iterable, Iterator
from itertools import tee
from pathlib import Path
from typing import TYPE_CHECKING

from headscope.errors import CorpusError
from headscope.files import find_place
from headscope.progress import show_progress
from headscope.text.corpus import Corpus
from headscope.text.documents import Paragraph, RawDocument, paragraphs
from headscope.text.pipeline import BATCH, load_pipeline, parse_elsewhere, sentences_of
from headscope.text.sentence import Sentence

if TYPE_CHECKING:
    from spacy.language import Language

    from headscope.workers.engine import Engine

DEFAULT_PIPELINE = "en_core_web_sm"


def annotate(
    texts: str | Iterable[str | RawDocument],
    *,
    spacy: str = DEFAULT_PIPELINE,
    out: str | Path | None = None,
    processes: int | None = None,
    engine: "str | Engine" = "local",
    progress: bool = False,
) -> Corpus:
    """Split documents into sentences, tag and parse them, and write them to `out` as they come.

    Each text is a document, each line of it a paragraph. Without `out` the corpus is held in
    memory. `processes` is the number of cores by default; with the engine "ray", or a RayEngine,
    the workers of a cluster take their place. `progress` reports on stderr; the time left is known
    when `texts` can be gone through twice.
    """
    _check(out, processes, engine)
    pipeline = load_pipeline(spacy)
    documents = [texts] if isinstance(texts, str) else texts
    source = (_short_enough(item, pipeline.max_length) for item in paragraphs(documents))
    if engine == "local":
        parsed = _parse_here(pipeline, source, processes or os.cpu_count() or 1)
    else:
        parsed = parse_elsewhere(spacy, pipeline, source, engine)
    if progress:
        total = None if isinstance(documents, Iterator) else sum(1 for _ in paragraphs(documents))
        parsed = show_progress(parsed, total, "paragraphs")
    sentences = (sentence for paragraph in parsed for sentence in paragraph)
    return Corpus.from_sentences(sentences) if out is None else Corpus.write(out, sentences)


def _check(out: str | Path | None, processes: int | None, engine: "str | Engine") -> None:
    if out is not None and find_place(out).suffix != ".parquet":
        raise CorpusError(f"The corpus cannot be written to {out}; give a name in .parquet.")
    if processes is not None and processes < 1:
        raise CorpusError(f"{processes} processes cannot annotate; ask for at least one.")
    if processes is not None and engine != "local":
        raise CorpusError("Processes are for the local engine; ask Ray for workers instead.")


def _parse_here(
    pipeline: "Language", source: Iterable[Paragraph], processes: int
) -> Iterator[list[Sentence]]:
    """The sentences of every paragraph; spaCy keeps the order."""
    read, kept = tee(source)
    texts = (item.text for item in read)
    docs = pipeline.pipe(texts, batch_size=BATCH, n_process=processes)
    for doc, paragraph in zip(docs, kept, strict=True):
        yield list(sentences_of(doc, paragraph))


def _short_enough(paragraph: Paragraph, limit: int) -> Paragraph:
    if len(paragraph.text) > limit:
        raise CorpusError(
            f"Paragraph {paragraph.number + 1} of document {paragraph.document} has "
            f"{len(paragraph.text):,} characters, spaCy takes {limit:,}; break it into lines."
        )
    return paragraph
