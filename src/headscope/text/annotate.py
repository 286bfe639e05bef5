"""Raw text to a corpus: sentences, tags and trees by spaCy."""

import os
from collections.abc import Iterable, Iterator
from itertools import tee
from pathlib import Path
from typing import TYPE_CHECKING

from headscope.errors import CorpusError
from headscope.progress import show_progress
from headscope.text.corpus import Corpus
from headscope.text.documents import Paragraph, RawDocument, paragraphs
from headscope.text.pipeline import load_pipeline, sentences_of

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

DEFAULT_PIPELINE = "en_core_web_sm"
_BATCH = 64  # paragraphs handed to a process at once: small, so that progress is steady


def annotate(
    texts: str | Iterable[str | RawDocument],
    *,
    spacy: str = DEFAULT_PIPELINE,
    out: str | Path | None = None,
    processes: int | None = None,
    progress: bool = False,
) -> Corpus:
    """Split documents into sentences, tag and parse them, and write them to `out` as they come.

    Each text is a document, each line of it a paragraph. Without `out` the corpus is held in
    memory. `processes` is the number of cores by default. `progress` reports on stderr; the time
    left is known when `texts` can be gone through twice.
    """
    if out is not None and Path(out).suffix != ".parquet":
        raise CorpusError(f"The corpus cannot be written to {out}; give a name in .parquet.")
    if processes is not None and processes < 1:
        raise CorpusError(f"{processes} processes cannot annotate; ask for at least one.")
    pipeline = load_pipeline(spacy)
    documents = [texts] if isinstance(texts, str) else texts
    docs = _run(pipeline, paragraphs(documents), processes or os.cpu_count() or 1)
    if progress:
        total = None if isinstance(documents, Iterator) else sum(1 for _ in paragraphs(documents))
        docs = show_progress(docs, total, "paragraphs")
    sentences = (sentence for doc, source in docs for sentence in sentences_of(doc, source))
    return Corpus.from_sentences(sentences) if out is None else Corpus.write(out, sentences)


def _run(
    pipeline: "Language", source: Iterable[Paragraph], processes: int
) -> Iterator[tuple["Doc", Paragraph]]:
    """Docs with the paragraphs they were made of; spaCy keeps the order."""
    read, kept = tee(source)
    texts = (_short_enough(item, pipeline.max_length).text for item in read)
    return zip(pipeline.pipe(texts, batch_size=_BATCH, n_process=processes), kept, strict=True)


def _short_enough(paragraph: Paragraph, limit: int) -> Paragraph:
    if len(paragraph.text) > limit:
        raise CorpusError(
            f"Paragraph {paragraph.number + 1} of document {paragraph.document} has "
            f"{len(paragraph.text):,} characters, spaCy takes {limit:,}; break it into lines."
        )
    return paragraph
