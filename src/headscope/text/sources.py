"""The documents of any source: texts that are not yet cut into sentences, one after another."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from pathlib import Path

from headscope.errors import CorpusError
from headscope.text.read import (
    DEMO,
    STANDARD_INPUT,
    Named,
    demo_file,
    find_files,
    names_of,
    open_stream,
    read_sentences,
    require_one,
    title_of,
)
from headscope.text.readers import TABLES, suffix_of
from headscope.text.readers.lines import document_numbers
from headscope.text.readers.raw import TEXT, Document, is_raw, numbered, read_raw
from headscope.text.segments import joined
from headscope.text.sentence import Sentence


@dataclass(frozen=True)
class Documents(Iterable[Document]):
    """The documents of files, which are read each time that they are gone through."""

    files: tuple[Path, ...]
    column: str
    title: str  # what messages call them

    def __iter__(self) -> Iterator[Document]:
        has_columns = any(suffix_of(file) in TABLES for file in self.files)
        where = f"the column {self.column!r} of {self.title}" if has_columns else self.title
        return require_one(self._read(), _no_text(where))

    def _read(self) -> Iterator[Document]:
        names, numbers = document_numbers(), document_numbers()
        for path in self.files:
            if is_raw(path):
                documents = read_raw(path, self.column)
            else:
                documents = _joined(read_sentences([path], names))
            yield from numbered(documents, numbers, path)


def _joined(sentences: Iterable[Sentence]) -> Iterator[Document]:
    for name, run in groupby(sentences, key=attrgetter("document")):
        yield Document(joined(run), name)


def read_documents(source: Named, column: str = TEXT) -> Iterable[Document]:
    """The documents of a source, read one after another; memory does not grow with their number.

    `source` is a file, several, or a directory: .txt (blank lines between documents) or .jsonl,
    also as .gz or .zst; Parquet, Arrow or Feather with a column of text, a dataset saved to disk,
    an annotated corpus (the texts of its documents). Or the name of a dataset on the hub
    (NAME:CONFIGURATION:SPLIT), "-" for standard input, "demo" for the bundled corpus. `column` is
    the column of a table, or the key of a .jsonl.

    Each has a `text` and a `name`; one without a name is called by its number, counted from 1 over
    everything that is read. Files can be gone through again, the others only once.
    """
    if not column:
        raise CorpusError("The name of the column is empty; name the one that holds the text.")
    named = names_of(source)
    if named == [DEMO]:
        return Documents((demo_file(),), column, DEMO)
    stream = open_stream(named, column)
    if stream is not None:
        in_column = "" if named == [STANDARD_INPUT] else f"the column {column!r} of "
        return require_one(stream, _no_text(f"{in_column}{title_of(named)}"))
    return Documents(tuple(find_files(named)), column, title_of(named))


def _no_text(where: str) -> str:
    return f"There is no text in {where}; give one that has some."
