"""Raw text, or a corpus that lacks something, to a corpus with tags and trees, by spaCy.

A paragraph is split into sentences. A sentence of a corpus stays one sentence of the same words,
and only what it lacks is taken from the pipeline.
"""

import os
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from itertools import chain, count, islice, pairwise, tee
from pathlib import Path
from typing import TYPE_CHECKING

from headscope.errors import CorpusError
from headscope.files import find_place
from headscope.progress import show_progress
from headscope.text.corpus import Corpus
from headscope.text.read import demo_corpus, read_corpus
from headscope.text.readers.raw import TEXT, Document, cut_documents, is_raw
from headscope.text.sentence import ROOT, Sentence, Word
from headscope.text.sources import DEMO, Documents, names_of, read_documents
from headscope.wording import counted
from headscope.workers import Engine, find_engine

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc, Token

_TAGS = ("upos", "xpos", "feats")
_TREE = ("head", "deprel")
DEFAULT_PIPELINE = "en_core_web_sm"
BATCH = 64  # texts handed to a process at once: small, so that progress is steady
_ADDED = ("words", "upos", "xpos", "feats", "head", "deprel")
Texts = str | Corpus | Iterable[str | Document]
Parsed = list[list[Sentence]]  # what becomes of each paragraph, or of each sentence


def load_pipeline(name: str) -> "Language":
    """A pipeline by the name of its package, installed or importable, or by its directory."""
    try:
        import spacy
    except ImportError as error:
        raise CorpusError(
            "spaCy is not installed; install it with `pip install 'headscope[parse]'`."
        ) from error
    try:
        return spacy.load(name)
    except OSError as error:
        if name.isidentifier() and find_spec(name) is not None:
            return import_module(name).load()
        raise CorpusError(
            f"The spaCy pipeline {name!r} is not installed; "
            f"install it with `python -m spacy download {name}`."
        ) from error


def missing_fields(sentence: Sentence) -> list[str]:
    """What no word of the sentence has; heads and relations are one tree, given or not."""
    fields = [
        name
        for name in (*_TAGS, *_TREE)
        if all(getattr(word, name) is None for word in sentence.words)
    ]
    return fields if {*_TREE} <= {*fields} else [name for name in fields if name in _TAGS]


def _doc_of(sentence: Sentence, pipeline: "Language") -> "Doc":
    """One token per word, however the pipeline would split the text, and one sentence."""
    from spacy.tokens import Doc

    words = sentence.words
    if words:
        follows = [later.start > word.end for word, later in pairwise(words)]
        doc = Doc(pipeline.vocab, words=[word.text for word in words], spaces=[*follows, False])
    else:
        doc = pipeline.make_doc(sentence.text)
    for token in doc:
        token.is_sent_start = token.i == 0  # a parser splits no sentence that has been marked
    return doc


def _split(doc: "Doc", paragraph: Sentence) -> Iterator[Sentence]:
    """Sentences; tokens of nothing but space are no words."""
    if not doc.has_annotation("SENT_START"):
        raise CorpusError(
            "The spaCy pipeline does not split sentences; "
            "use one with a parser, a senter or a sentencizer."
        )
    has_tree = doc.has_annotation("DEP")
    for number, span in enumerate(doc.sents, start=1):
        tokens = [token for token in span if not token.is_space]
        if tokens:
            start, end = tokens[0].idx, tokens[-1].idx + len(tokens[-1])
            yield replace(
                paragraph,
                text=doc.text[start:end],
                words=tuple(_words(tokens, start, has_tree)),
                id=f"{paragraph.document}-{paragraph.paragraph + 1}-{number}",
            )


def _complete(sentence: Sentence, doc: "Doc") -> Sentence:
    has_tree = doc.has_annotation("DEP")
    if not sentence.words:
        tokens = [token for token in doc if not token.is_space]
        return replace(sentence, words=tuple(_words(tokens, 0, has_tree)))
    fields = missing_fields(sentence)
    words = (
        replace(word, **{name: getattr(parsed, name) for name in fields})
        for word, parsed in zip(sentence.words, _words(list(doc), 0, has_tree), strict=True)
    )
    return replace(sentence, words=tuple(words))


def _words(tokens: "list[Token]", base: int, has_tree: bool) -> Iterator[Word]:
    place = {token.i: index for index, token in enumerate(tokens)}
    for token in tokens:
        start = token.idx - base
        head, deprel = None, token.dep_.lower() or None
        if has_tree:
            governor = _governor(token, place)
            head = ROOT if governor is None else place[governor.i]
            deprel = "root" if governor is None else deprel
        yield Word(
            token.text,
            start,
            start + len(token),
            upos=token.pos_ or None,
            xpos=token.tag_ or None,
            feats=str(token.morph) or None,
            head=head,
            deprel=deprel,
        )


def _governor(token: "Token", words: Container[int]) -> "Token | None":
    """The nearest ancestor that is a word, None for the root."""
    while token.head.i != token.i:
        token = token.head
        if token.i in words:
            return token
    return None


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
    splits = not isinstance(texts, Corpus)
    source = _short_enough(_sentences_of(texts), pipeline.max_length)
    if engine == "local":
        parsed = _parse(pipeline, source, splits, processes or os.cpu_count() or 1)
    else:
        parsed = _parse_elsewhere(spacy, pipeline, source, splits, engine)
    if progress:
        parsed = show_progress(parsed, *_amount(texts))
    sentences = chain.from_iterable(parsed)
    if isinstance(texts, Corpus):
        sentences = _that_gained(sentences, texts, spacy)
    return Corpus.from_sentences(sentences) if out is None else Corpus.write(out, sentences)


def find_inputs(paths: Sequence[str | Path], column: str = TEXT) -> Iterable[Document] | Corpus:
    """What is to be annotated: raw text from any source, or a corpus of any format."""
    if names_of(paths) == [DEMO]:
        return demo_corpus()
    documents = read_documents(paths, column)
    if not isinstance(documents, Documents):
        return documents
    raw = {is_raw(file): file for file in documents.files}
    if len(raw) == 2:
        raise CorpusError(
            f"{raw[True]} is raw text and {raw[False]} a corpus; annotate one, then the other."
        )
    return documents if True in raw else read_corpus(paths)


def _check(out: str | Path | None, processes: int | None, engine: str | Engine) -> None:
    if out is not None and find_place(out).suffix != ".parquet":
        raise CorpusError(f"The corpus cannot be written to {out}; give a name in .parquet.")
    if processes is not None and processes < 1:
        raise CorpusError(
            f"{counted(processes, 'processes')} cannot annotate; ask for at least one."
        )
    if processes is not None and engine != "local":
        raise CorpusError("Processes are for the local engine; ask Ray for workers instead.")


def _sentences_of(texts: Texts) -> Iterable[Sentence]:
    """The sentences of a corpus, or the paragraphs of raw text, each as one without words."""
    if isinstance(texts, Corpus):
        return texts
    documents = _documents_of([texts] if isinstance(texts, str) else texts)
    return cut_documents(documents, "paragraphs")


def _documents_of(texts: Iterable[str | Document]) -> Iterator[Document]:
    for number, text in enumerate(texts, start=1):
        document = Document(text) if isinstance(text, str) else text
        yield Document(document.text, document.name or str(number))


def _amount(texts: Texts) -> tuple[int | None, str]:
    """How many there are, if they can be counted without using them up, and of what."""
    if isinstance(texts, Corpus):
        return len(texts), "sentences"
    is_once = isinstance(texts, Iterator)
    return None if is_once else sum(1 for _ in _sentences_of(texts)), "paragraphs"


def _short_enough(sentences: Iterable[Sentence], limit: int) -> Iterator[Sentence]:
    for sentence in sentences:
        if len(sentence.text) > limit:
            raise CorpusError(
                f"{_name(sentence)} has {len(sentence.text):,} characters, spaCy takes {limit:,}; "
                "break it into lines."
            )
        yield sentence


def _name(sentence: Sentence) -> str:
    return f"Text {sentence.id!r} of document {sentence.document!r}"


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


def _parse(
    pipeline: "Language", source: Iterable[Sentence], splits: bool, processes: int = 1
) -> Iterator[list[Sentence]]:
    """The sentences that each paragraph is split into, or each sentence completed, in order."""
    to_read, to_complete = tee(source)
    inputs = (sentence.text if splits else _doc_of(sentence, pipeline) for sentence in to_read)
    docs = pipeline.pipe(inputs, batch_size=BATCH, n_process=processes)
    for doc, sentence in zip(docs, to_complete, strict=True):
        yield list(_split(doc, sentence)) if splits else [_complete(sentence, doc)]


def _parse_elsewhere(
    spacy: str,
    pipeline: "Language",
    source: Iterable[Sentence],
    splits: bool,
    engine: str | Engine,
) -> Iterator[list[Sentence]]:
    """The same on the workers of an engine, in order; `pipeline` is the one of that name here."""
    place = str(Path(spacy).absolute()) if Path(spacy).is_dir() else spacy
    work = Parse(place, _version(pipeline), splits)
    engine = find_engine(engine) if isinstance(engine, str) else engine
    with engine.open() as pool:
        for parsed in _in_order(pool.run(work, _batches(source))):
            yield from parsed


@dataclass(frozen=True)
class Batch:
    """Consecutive paragraphs or sentences."""

    number: int  # of the batch, from 0
    sentences: tuple[Sentence, ...]


@dataclass(frozen=True)
class Parse:
    """The work on one batch; every process loads the pipeline by its name.

    The batches are those that spaCy makes of the same texts in one process, because what else is
    in a batch decides the last bits of its scores.
    """

    spacy: str
    version: str
    splits: bool  # paragraphs into sentences; else a sentence stays one
    threads: int = 1
    needs_gpu: bool = False

    def open(self) -> None:
        """Load the pipeline; it must be the one that the asking process has."""
        version = _version(self._pipeline)
        if version != self.version:
            raise CorpusError(
                f"{self.spacy} has version {version} here and {self.version} where the work was "
                "started; install the same on every node."
            )

    def __call__(self, batch: Batch, /) -> Parsed:
        """What becomes of each sentence or paragraph of a batch."""
        return list(_parse(self._pipeline, batch.sentences, self.splits))

    def describe(self, batch: Batch, /) -> str:
        """The batch by its first text."""
        size, first = len(batch.sentences), _name(batch.sentences[0])
        return f"The batch of {size} that begins with {first[0].lower()}{first[1:]}"

    @cached_property
    def _pipeline(self) -> "Language":
        return load_pipeline(self.spacy)


def _batches(source: Iterable[Sentence]) -> Iterator[Batch]:
    stream = iter(source)
    for number in count():
        sentences = tuple(islice(stream, BATCH))
        if not sentences:
            return
        yield Batch(number, sentences)


def _in_order(done: Iterable[tuple[Batch, Parsed]]) -> Iterator[Parsed]:
    """Hold back what arrives too early; one batch per worker is in progress."""
    early: dict[int, Parsed] = {}
    number = 0
    for batch, parsed in done:
        early[batch.number] = parsed
        while number in early:
            yield early.pop(number)
            number += 1


def _version(pipeline: "Language") -> str:
    return str(pipeline.meta.get("version", ""))
