"""Finding a spaCy pipeline, and the sentences it makes of a text."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from headscope.errors import CorpusError
from headscope.text.documents import Paragraph
from headscope.text.sentence import ROOT, Sentence, Word

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc, Token

if TYPE_CHECKING:
    from spacy.language import Language

    from headscope.workers.engine import Engine


BATCH = 64  # paragraphs handed to a process at once: small, so that progress is steady


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


def sentences_of(doc: "Doc", source: Paragraph) -> Iterator[Sentence]:
    """The sentences of an annotated paragraph; tokens of nothing but space are no words."""
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
            words = tuple(_words(tokens, has_tree))
            text = doc.text[tokens[0].idx : tokens[-1].idx + len(tokens[-1])]
            yield Sentence(text, words, (), source.document, source.number, name)


def _words(tokens: "list[Token]", has_tree: bool) -> Iterator[Word]:
    base = tokens[0].idx
    place = {token.i: index for index, token in enumerate(tokens)}
    for token in tokens:
        start = token.idx - base
        head = _head(token) if has_tree else None
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


def _head(token: "Token") -> "Token | None":
    """The nearest ancestor that is a word, None for the root."""
    while token.head.i != token.i:
        token = token.head
        if not token.is_space:
            return token
    return None


@dataclass(frozen=True)
class Paragraphs:
    """Consecutive paragraphs, and how many came before them."""

    number: int  # of the batch
    items: tuple[Paragraph, ...]


Parsed = list[list[Sentence]]  # the sentences of each paragraph


@dataclass(frozen=True)
class Parse:
    """The work on one batch; every process loads the pipeline by its name."""

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

    def __call__(self, batch: Paragraphs, /) -> Parsed:
        """The sentences of a batch."""
        texts = [item.text for item in batch.items]
        docs = self._pipeline.pipe(texts, batch_size=BATCH)
        return [list(sentences_of(doc, item)) for doc, item in zip(docs, batch.items, strict=True)]

    def describe(self, batch: Paragraphs, /) -> str:
        """The batch by its first paragraph."""
        first = batch.items[0]
        return (
            f"The batch of {len(batch.items)} paragraphs that begins with paragraph "
            f"{first.number + 1} of document {first.document}"
        )

    @cached_property
    def _pipeline(self) -> "Language":
        return load_pipeline(self.spacy)


def parse_elsewhere(
    spacy: str, pipeline: "Language", source: Iterable[Paragraph], engine: "str | Engine"
) -> Iterator[list[Sentence]]:
    """The sentences of every paragraph, in order; `pipeline` is the one of that name here."""
    from headscope.workers.engine import find_engine

    place = str(Path(spacy).absolute()) if Path(spacy).is_dir() else spacy
    work = Parse(place, _version(pipeline))
    chosen = find_engine(engine) if isinstance(engine, str) else engine
    with chosen.open() as pool:
        for parsed in _in_order(pool.run(work, _batches(source))):
            yield from parsed


def _batches(source: Iterable[Paragraph]) -> Iterator[Paragraphs]:
    stream, number = iter(source), 0
    while items := tuple(islice(stream, BATCH)):
        yield Paragraphs(number, items)
        number += 1


def _in_order(done: Iterable[tuple[Paragraphs, Parsed]]) -> Iterator[Parsed]:
    """Hold back what comes too early; an engine does not run far ahead."""
    early: dict[int, Parsed] = {}
    number = 0
    for batch, parsed in done:
        early[batch.number] = parsed
        while number in early:
            yield early.pop(number)
            number += 1


def _version(pipeline: "Language") -> str:
    return str(pipeline.meta.get("version", ""))
