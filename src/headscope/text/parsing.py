"""Parsing on the workers of an engine: batches of paragraphs go out, sentences come back in order.

The batches are those that spaCy makes of the same paragraphs in one process, because what else is
in a batch decides the last bits of its scores.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from headscope.errors import CorpusError
from headscope.text.documents import Paragraph
from headscope.text.pipeline import BATCH, load_pipeline, sentences_of
from headscope.text.sentence import Sentence

if TYPE_CHECKING:
    from spacy.language import Language

    from headscope.workers.engine import Engine


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
