"""Raw text, or a corpus that lacks something, to a corpus with tags and trees, by spaCy."""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice, tee
from pathlib import Path
from typing import TYPE_CHECKING

from headscope.errors import CorpusError
from headscope.files import find_place
from headscope.progress import show_progress
from headscope.text.corpus import Corpus
from headscope.text.documents import DocumentFiles, Paragraph, RawDocument, is_raw, paragraphs
from headscope.text.pipeline import Item, input_of, load_pipeline, output_of
from headscope.text.read import find_files, read_corpus
from headscope.text.sentence import Sentence
from headscope.wording import counted
from headscope.workers.engine import Engine, find_engine

if TYPE_CHECKING:
    from spacy.language import Language

DEFAULT_PIPELINE = "en_core_web_sm"
BATCH = 64  # texts handed to a process at once: small, so that progress is steady
_ADDED = ("words", "upos", "xpos", "feats", "head", "deprel")

Texts = str | Corpus | Iterable[str | RawDocument]
Parsed = list[list[Sentence]]  # the sentences of each item


def annotate(
    texts: Texts,
    *,
    spacy: str = DEFAULT_PIPELINE,
    out: str | Path | None = None,
    processes: int | None = None,
    engine: str | Engine = "local",
    progress: bool = False,
) -> Corpus:
    """Split documents into sentences, tag and parse them; or add to a Corpus what it lacks.

    Each text is a document, each line of it a paragraph. A Corpus keeps its words, sentences,
    coreference and every annotation it has. Sentences are written to `out` as they come; without
    it the new corpus is held in memory. `processes` is the number of cores by default; with the
    engine "ray", or a RayEngine, the workers of a cluster take their place. `progress` reports on
    stderr; the time left is known when `texts` can be gone through twice.
    """
    _check(out, processes, engine)
    pipeline = load_pipeline(spacy)
    source = (_short_enough(item, pipeline.max_length) for item in _items(texts))
    if engine == "local":
        parsed = _parse_here(pipeline, source, processes or os.cpu_count() or 1)
    else:
        parsed = _parse_elsewhere(spacy, pipeline, source, engine)
    if progress:
        parsed = show_progress(parsed, *_amount(texts))
    sentences = chain.from_iterable(parsed)
    if isinstance(texts, Corpus):
        sentences = _that_gained(sentences, texts, spacy)
    return Corpus.from_sentences(sentences) if out is None else Corpus.write(out, sentences)


def find_inputs(paths: Sequence[str | Path]) -> DocumentFiles | Corpus:
    """Files and directories to annotate: raw text, or a corpus of any format."""
    files = find_files([find_place(path) for path in paths])
    raw = {is_raw(file): file for file in files}
    if len(raw) == 2:
        raise CorpusError(
            f"{raw[True]} is raw text and {raw[False]} a corpus; annotate one, then the other."
        )
    return DocumentFiles(files) if True in raw else read_corpus(paths)


def _check(out: str | Path | None, processes: int | None, engine: str | Engine) -> None:
    if out is not None and find_place(out).suffix != ".parquet":
        raise CorpusError(f"The corpus cannot be written to {out}; give a name in .parquet.")
    if processes is not None and processes < 1:
        raise CorpusError(
            f"{counted(processes, 'processes')} cannot annotate; ask for at least one."
        )
    if processes is not None and engine != "local":
        raise CorpusError("Processes are for the local engine; ask Ray for workers instead.")


def _items(texts: Texts) -> Iterable[Item]:
    if isinstance(texts, Corpus):
        return texts
    return paragraphs([texts] if isinstance(texts, str) else texts)


def _amount(texts: Texts) -> tuple[int | None, str]:
    """How many items there are, if they can be counted without using them up, and of what."""
    if isinstance(texts, Corpus):
        return len(texts), "sentences"
    total = None if isinstance(texts, Iterator) else sum(1 for _ in _items(texts))
    return total, "paragraphs"


def _short_enough(item: Item, limit: int) -> Item:
    if len(item.text) > limit:
        raise CorpusError(
            f"{_describe(item)} has {len(item.text):,} characters, spaCy takes {limit:,}; "
            "break it into lines."
        )
    return item


def _describe(item: Item) -> str:
    if isinstance(item, Paragraph):
        return f"Paragraph {item.number + 1} of document {item.document}"
    return f"Sentence {item.id!r} of document {item.document}"


def _that_gained(sentences: Iterator[Sentence], corpus: Corpus, spacy: str) -> Iterator[Sentence]:
    """The completed sentences; it is an error if none of them has more than before."""
    gained = False
    for sentence, before in zip(sentences, corpus, strict=True):
        gained = gained or sentence != before
        yield sentence
    if not gained:
        lacks = [name for name in _ADDED if not corpus.has(name)]
        wanted = f"a pipeline that gives {', '.join(lacks)}, or " if lacks else ""
        raise CorpusError(
            f"{spacy} adds nothing to {corpus.source.name}; use {wanted}the corpus as it is."
        )


def _parse_here(
    pipeline: "Language", source: Iterable[Item], processes: int
) -> Iterator[list[Sentence]]:
    """The sentences of every item; spaCy keeps the order."""
    read, kept = tee(source)
    inputs = (input_of(item, pipeline) for item in read)
    docs = pipeline.pipe(inputs, batch_size=BATCH, n_process=processes)
    for doc, item in zip(docs, kept, strict=True):
        yield output_of(doc, item)


def _parse_elsewhere(
    spacy: str, pipeline: "Language", source: Iterable[Item], engine: str | Engine
) -> Iterator[list[Sentence]]:
    """The same on the workers of an engine, in order; `pipeline` is the one of that name here."""
    place = str(Path(spacy).absolute()) if Path(spacy).is_dir() else spacy
    work = Parse(place, _version(pipeline))
    chosen = find_engine(engine) if isinstance(engine, str) else engine
    with chosen.open() as pool:
        for parsed in _in_order(pool.run(work, _batches(source))):
            yield from parsed


@dataclass(frozen=True)
class Batch:
    """Consecutive paragraphs or sentences."""

    number: int  # of the batch, from 0
    items: tuple[Item, ...]


@dataclass(frozen=True)
class Parse:
    """The work on one batch; every process loads the pipeline by its name.

    The batches are those that spaCy makes of the same items in one process, because what else is
    in a batch decides the last bits of its scores.
    """

    spacy: str
    version: str
    threads: int = 1
    needs_gpu: bool = False

    def open(self) -> None:
        """Load the pipeline; it must be the one that the asking process has."""
        found = _version(self._pipeline)
        if found != self.version:
            raise CorpusError(
                f"{self.spacy} has version {found} here and {self.version} where the work was "
                "started; install the same on every node."
            )

    def __call__(self, batch: Batch, /) -> Parsed:
        """The sentences of a batch."""
        inputs = [input_of(item, self._pipeline) for item in batch.items]
        docs = self._pipeline.pipe(inputs, batch_size=BATCH)
        return [output_of(doc, item) for doc, item in zip(docs, batch.items, strict=True)]

    def describe(self, batch: Batch, /) -> str:
        """The batch by its first text."""
        first = _describe(batch.items[0])
        return f"The batch of {len(batch.items)} that begins with {first[0].lower()}{first[1:]}"

    @cached_property
    def _pipeline(self) -> "Language":
        return load_pipeline(self.spacy)


def _batches(source: Iterable[Item]) -> Iterator[Batch]:
    stream, number = iter(source), 0
    while items := tuple(islice(stream, BATCH)):
        yield Batch(number, items)
        number += 1


def _in_order(done: Iterable[tuple[Batch, Parsed]]) -> Iterator[Parsed]:
    """Hold back what arrives too early; an engine does not run far ahead."""
    early: dict[int, Parsed] = {}
    number = 0
    for batch, parsed in done:
        early[batch.number] = parsed
        while number in early:
            yield early.pop(number)
            number += 1


def _version(pipeline: "Language") -> str:
    return str(pipeline.meta.get("version", ""))
