"""Raw text, or a corpus that lacks something, to a corpus with tags and trees, by spaCy.

A spaCy pipeline: finding one, what it reads, and the sentences made of what it returns.

A paragraph is split into sentences. A sentence of a corpus stays one sentence of the same words,
and only what it lacks is taken from the pipeline.
"""

import os
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from itertools import chain, islice, pairwise, tee
from pathlib import Path
from typing import TYPE_CHECKING

from headscope.errors import CorpusError
from headscope.files import find_place
from headscope.progress import show_progress
from headscope.text.corpus import Corpus
from headscope.text.read import demo_corpus, read_corpus
from headscope.text.readers.raw import TEXT, is_raw
from headscope.text.sentence import ROOT, Sentence, Word
from headscope.text.sources import (
    DEMO,
    Documents,
    Paragraph,
    RawDocument,
    paragraphs,
    read_documents,
)
from headscope.wording import counted
from headscope.workers import Engine, find_engine

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc, Token


Item = Paragraph | Sentence
_TAGS = ("upos", "xpos", "feats")
_TREE = ("head", "deprel")
DEFAULT_PIPELINE = "en_core_web_sm"
BATCH = 64  # texts handed to a process at once: small, so that progress is steady
_ADDED = ("words", "upos", "xpos", "feats", "head", "deprel")
Texts = str | Corpus | Iterable[str | RawDocument]
Parsed = list[list[Sentence]]  # the sentences of each item


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


def input_of(item: Item, pipeline: "Language") -> "str | Doc":
    """What the pipeline reads: the text of a paragraph, or the words of a sentence as one."""
    if isinstance(item, Paragraph):
        return item.text
    doc = _doc_of_words(item, pipeline) if item.words else pipeline.make_doc(item.text)
    for token in doc:
        token.is_sent_start = token.i == 0  # a parser splits no sentence that has been marked
    return doc


def output_of(doc: "Doc", item: Item) -> list[Sentence]:
    """The sentences of an annotated paragraph, or the completed sentence."""
    if isinstance(item, Paragraph):
        return list(_split(doc, item))
    return [_complete(item, doc)]


def missing_fields(sentence: Sentence) -> list[str]:
    """What no word of the sentence has; heads and relations are one tree, given or not."""
    fields = [
        name
        for name in (*_TAGS, *_TREE)
        if all(getattr(word, name) is None for word in sentence.words)
    ]
    return fields if {*_TREE} <= {*fields} else [name for name in fields if name in _TAGS]


def _doc_of_words(sentence: Sentence, pipeline: "Language") -> "Doc":
    """One token per word, however the tokenizer of the pipeline would split the text."""
    from spacy.tokens import Doc

    words = sentence.words
    follows = [later.start > word.end for word, later in pairwise(words)]
    return Doc(pipeline.vocab, words=[word.text for word in words], spaces=[*follows, False])


def _split(doc: "Doc", source: Paragraph) -> Iterator[Sentence]:
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
            name = f"{source.document}-{source.number + 1}-{number}"
            words = tuple(_words(tokens, tokens[0].idx, has_tree))
            text = doc.text[tokens[0].idx : tokens[-1].idx + len(tokens[-1])]
            yield Sentence(text, words, (), source.document, source.number, name)


def _complete(sentence: Sentence, doc: "Doc") -> Sentence:
    has_tree = doc.has_annotation("DEP")
    if not sentence.words:
        tokens = [token for token in doc if not token.is_space]
        return replace(sentence, words=tuple(_words(tokens, 0, has_tree)))
    fields = missing_fields(sentence)
    parsed = _words(list(doc), 0, has_tree)
    words = (
        replace(word, **{name: getattr(found, name) for name in fields})
        for word, found in zip(sentence.words, parsed, strict=True)
    )
    return replace(sentence, words=tuple(words))


def _words(tokens: "list[Token]", base: int, has_tree: bool) -> Iterator[Word]:
    place = {token.i: index for index, token in enumerate(tokens)}
    for token in tokens:
        start = token.idx - base
        head = _head(token, place) if has_tree else None
        is_root = has_tree and head is None
        yield Word(
            token.text,
            start,
            start + len(token),
            upos=token.pos_ or None,
            xpos=token.tag_ or None,
            feats=str(token.morph) or None,
            head=ROOT if is_root else None if head is None else place[head.i],
            deprel="root" if is_root else token.dep_.lower() or None,
        )


def _head(token: "Token", words: Container[int]) -> "Token | None":
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


def find_inputs(paths: Sequence[str | Path], column: str = TEXT) -> Documents | Corpus:
    """What is to be annotated: raw text from any source, or a corpus of any format."""
    found = read_documents(paths[0] if len(paths) == 1 else paths, column)
    files = found.source.files
    if not files:
        return demo_corpus() if found.source.name == DEMO else found
    raw = {is_raw(file): file for file in files}
    if len(raw) == 2:
        raise CorpusError(
            f"{raw[True]} is raw text and {raw[False]} a corpus; annotate one, then the other."
        )
    return found if True in raw else read_corpus(paths)


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
    is_once = isinstance(texts, Iterator) or (isinstance(texts, Documents) and not texts.can_repeat)
    total = None if is_once else sum(1 for _ in _items(texts))
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
    stream = iter(source)
    chunks = iter(lambda: tuple(islice(stream, BATCH)), ())
    return (Batch(number, items) for number, items in enumerate(chunks))


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
