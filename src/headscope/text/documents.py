"""Raw documents, not yet cut into sentences, streamed from wherever text is kept."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from headscope.errors import CorpusError
from headscope.text.readers import suffix_of
from headscope.text.readers.columns import TABLES, Row
from headscope.text.readers.lines import document_numbers
from headscope.text.readers.raw import TEXT, is_raw, read_rows
from headscope.text.segments import joined
from headscope.text.sentence import Sentence
from headscope.text.sources import (
    DEMO,
    Named,
    Reading,
    Sources,
    demo_sentences,
    find_sources,
    read_sentences,
)
from headscope.text.storage import LONGEST_TEXT


@dataclass(frozen=True)
class RawDocument:
    """A text of one or more paragraphs, one per line, and its name."""

    text: str
    name: str = ""


class Paragraph(NamedTuple):
    """One line of a document."""

    text: str
    document: str
    number: int


@dataclass(frozen=True)
class Documents:
    """The documents of files, of standard input or of a hub's dataset, read as they are asked for.

    One without a name is called by its number, counted from 1 over everything that is read; texts
    of nothing but space are left out.
    """

    source: Sources
    column: str = TEXT

    @property
    def can_repeat(self) -> bool:
        """Whether going through them again is possible and costs no download."""
        return bool(self.source.files) or self.source.name == DEMO

    def __iter__(self) -> Iterator[RawDocument]:
        found = False
        for number, row in enumerate(self._rows(), start=1):
            name = row.name or str(number)
            if len(row.text) > LONGEST_TEXT:
                raise CorpusError(
                    f"Document {name} of {self.source.said} has more than {LONGEST_TEXT:,} "
                    "characters; cut it."
                )
            if row.text.strip():
                found = True
                yield RawDocument(row.text, name)
        if not found:
            raise CorpusError(f"There is no text in {self._where()}; give one that has some.")

    def _rows(self) -> Iterator[Row]:
        if self.source.name == DEMO:
            return _documents_of(demo_sentences())
        if not self.source.files:
            return self.source.stream(self.column)
        names = document_numbers()
        return (row for file in self.source.files for row in _of_file(file, self.column, names))

    def _where(self) -> str:
        tables = any(suffix_of(file) in TABLES for file in self.source.files)
        where = self.source.said
        has_columns = tables or self.source.dataset is not None
        return f"the column {self.column!r} of {where}" if has_columns else where


def read_documents(source: Named, column: str = TEXT) -> Documents:
    """The documents of a source, read one after another; memory does not grow with their number.

    `source` is a file, several, or a directory: .txt (blank lines between documents), .jsonl,
    Parquet, Arrow or Feather with a column of text, a dataset saved to disk, an annotated corpus
    (the texts of its documents), each also as .gz or .zst. Or the name of a dataset on the hub
    (NAME:CONFIGURATION:SPLIT), "-" for standard input, "demo" for the bundled corpus. `column` is
    the column of a table, or the key of a .jsonl.
    """
    if not column:
        raise CorpusError("The name of the column is empty; name the one that holds the text.")
    return Documents(Sources(DEMO) if source == DEMO else find_sources(source), column)


def paragraphs(documents: Iterable[str | RawDocument]) -> Iterator[Paragraph]:
    """The paragraphs of documents, those that hold nothing but space left out."""
    for position, document in enumerate(documents, start=1):
        raw = RawDocument(document) if isinstance(document, str) else document
        lines = (line.strip() for line in raw.text.splitlines())
        for number, line in enumerate(filter(None, lines)):
            yield Paragraph(line, raw.name or str(position), number)


def _of_file(path: Path, column: str, names: Iterator[str]) -> Iterator[Row]:
    if is_raw(path):
        return read_rows(path, column)
    return _documents_of(read_sentences(path, names, Reading()))


def _documents_of(sentences: Iterable[Sentence]) -> Iterator[Row]:
    for document, run in groupby(sentences, key=attrgetter("document")):
        yield Row(joined(run), document)
