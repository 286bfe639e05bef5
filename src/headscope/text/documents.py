"""Raw documents, not yet cut into sentences, streamed from wherever text is kept."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

import pyarrow as pa

from headscope.errors import CorpusError
from headscope.text.corpus import Corpus
from headscope.text.read import demo_corpus, find_files, place_of, read_corpus
from headscope.text.readers import SUFFIXES
from headscope.text.readers.columns import TABLES, Row, is_corpus, read_column, rows_of
from headscope.text.readers.compressed import (
    cannot_read,
    decompressed,
    ending_of,
    open_bytes,
    spooled,
    suffix_of,
)
from headscope.text.readers.datasets import HubDataset, find_dataset
from headscope.text.readers.jsonl import RecordError, parse_record
from headscope.text.readers.lines import lines_of, mistake, read_lines
from headscope.text.segments import joined
from headscope.text.storage import LONGEST_TEXT
from headscope.wording import shorten

TEXT = "text"  # the column that is read unless another is named
STANDARD_INPUT = "-"
_ENDINGS = (*SUFFIXES, *(ending for ending in TABLES if ending not in SUFFIXES))
_SAID = "standard input"
_TABLE_STARTS = (b"PAR1", b"ARROW1", b"\xff\xff\xff\xff")
_PEEKED = 64  # bytes by which standard input shows its format


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

    name: str
    files: tuple[Path, ...] = ()
    dataset: HubDataset | None = None
    column: str = TEXT

    @property
    def can_repeat(self) -> bool:
        """Whether they can be gone through a second time; standard input cannot."""
        return self.name != STANDARD_INPUT

    def __iter__(self) -> Iterator[RawDocument]:
        found = False
        for number, row in enumerate(self._rows(), start=1):
            name = row.name or str(number)
            if len(row.text) > LONGEST_TEXT:
                raise _too_long(self.name, name)
            if row.text.strip():
                found = True
                yield RawDocument(row.text, name)
        if not found:
            raise CorpusError(f"There is no text in {self._where()}; give one that has some.")

    def _rows(self) -> Iterator[Row]:
        if self.dataset is not None:
            yield from self.dataset.read(self.column)
        elif self.name == STANDARD_INPUT:
            yield from _standard_input(self.column)
        elif self.name == "demo" and not self.files:
            yield from _documents_of(demo_corpus())
        for file in self.files:
            yield from _of_file(file, self.column)

    def _where(self) -> str:
        has_columns = self.dataset is not None or any(suffix_of(f) in TABLES for f in self.files)
        name = _SAID if self.name == STANDARD_INPUT else self.name
        return f"the column {self.column!r} of {name}" if has_columns else name


def read_documents(source: str | Path | Iterable[str | Path], column: str = TEXT) -> Documents:
    """The documents of a source, read one after another; memory does not grow with their number.

    `source` is a file, several, or a directory: .txt (blank lines between documents), .jsonl,
    Parquet, Arrow or Feather with a column of text, a dataset saved to disk, an annotated corpus
    (the texts of its documents), each also as .gz or .zst. Or the name of a dataset on the hub
    (NAME:CONFIGURATION:SPLIT), "-" for standard input, "demo" for the bundled corpus. `column` is
    the column of a table, or the key of a .jsonl.
    """
    if not column:
        raise CorpusError("The name of the column is empty; name the one that holds the text.")
    if source in (STANDARD_INPUT, "demo"):
        return Documents(str(source), column=column)
    given = [source] if isinstance(source, str | Path) else list(source)
    dataset = _as_dataset(given)
    if dataset is not None:
        return Documents(str(given[0]), dataset=dataset, column=column)
    files = find_files([place_of(each) for each in given], _ENDINGS)
    for file in files:
        if suffix_of(file) not in _ENDINGS:
            raise _unknown(file)
    return Documents(_named(given), tuple(files), column=column)


def paragraphs(documents: Iterable[str | RawDocument]) -> Iterator[Paragraph]:
    """The paragraphs of documents, those that hold nothing but space left out."""
    for position, document in enumerate(documents, start=1):
        raw = RawDocument(document) if isinstance(document, str) else document
        lines = (line.strip() for line in raw.text.splitlines())
        for number, line in enumerate(filter(None, lines)):
            yield Paragraph(line, raw.name or str(position), number)


def is_raw(path: Path) -> bool:
    """Whether a file holds text alone: .txt, .jsonl without words, a table that is no corpus."""
    ending = suffix_of(path)
    if ending == ".parquet":
        return not is_corpus(path)
    if ending != ".jsonl":
        return ending == ".txt" or ending in TABLES
    first = next((line for line in read_lines(path) if line.strip()), "")
    try:
        return "words" not in parse_record(first)
    except RecordError:
        return True  # said with its line when the file is read


def _as_dataset(given: list[str | Path]) -> HubDataset | None:
    """A dataset of the hub, if that is what a single name can only mean."""
    if len(given) != 1 or not isinstance(given[0], str) or Path(given[0]).exists():
        return None
    has_ending = suffix_of(Path(given[0])) in _ENDINGS
    return None if has_ending else find_dataset(given[0])


def _named(given: list[str | Path]) -> str:
    first = str(given[0]) if given else ""
    return first if len(given) < 2 else f"{first} and {len(given) - 1} more"


def _of_file(path: Path, column: str) -> Iterator[Row]:
    if not is_raw(path):
        yield from _documents_of(read_corpus(path))
    elif suffix_of(path) in TABLES:
        yield from read_column(path, column)
    else:
        with open_bytes(path) as file:
            yield from _of_lines(file, path, column, is_plain=suffix_of(path) == ".txt")


def _of_lines(file: BinaryIO, name: Path | str, column: str, *, is_plain: bool) -> Iterator[Row]:
    lines = lines_of(file, name)
    return _plain(lines, name) if is_plain else _jsonl(lines, name, column)


def _plain(lines: Iterable[str], name: Path | str) -> Iterator[Row]:
    held: list[str] = []
    size = 0
    for number, line in enumerate(lines, start=1):
        if line.strip():
            held.append(line)
            size += len(line) + 1
            if size > LONGEST_TEXT:
                raise mistake(
                    name,
                    number,
                    f"a document of more than {LONGEST_TEXT:,} characters; put blank lines "
                    "between documents.",
                )
        elif held:
            yield Row("\n".join(held))
            held, size = [], 0
    if held:
        yield Row("\n".join(held))


def _jsonl(lines: Iterable[str], name: Path | str, column: str) -> Iterator[Row]:
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                yield _record(parse_record(line), column)
            except RecordError as error:
                raise mistake(name, number, str(error)) from error


def _record(record: dict[str, Any], column: str) -> Row:
    if column not in record:
        known = shorten(", ".join(map(repr, record)), 200) or "none"
        raise RecordError(f"there is no key {column!r}; name one that there is: {known}.")
    text, name = record[column], record.get("document", "")
    if not isinstance(text, str) or not isinstance(name, str):
        raise RecordError(f'"{column}" and "document" are not strings; correct them.')
    return Row(text, name)


def _documents_of(corpus: Corpus) -> Iterator[Row]:
    for sentences in corpus.documents():
        yield Row(joined(sentences), sentences[0].document)


def _standard_input(column: str) -> Iterator[Row]:
    """Lines of text or of JSON, or a table: standard input has no ending, so its bytes say."""
    try:
        with _standard_bytes() as file:
            start = file.peek(_PEEKED)[:_PEEKED]
            if start.startswith(_TABLE_STARTS):
                with spooled(cast(BinaryIO, file)) as table:
                    yield from rows_of(table, column, _SAID)
            else:
                is_plain = not start.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{")
                yield from _of_lines(cast(BinaryIO, file), _SAID, column, is_plain=is_plain)
    except (OSError, EOFError, ValueError, pa.ArrowException) as error:
        raise cannot_read(_SAID, error) from error


@contextmanager
def _standard_bytes() -> Iterator[BufferedReader]:
    if sys.stdin is None or sys.stdin.closed:
        raise CorpusError("Standard input is closed; give a file.")
    file: Any = sys.stdin.buffer
    ending = ending_of(file.peek(_PEEKED)[:_PEEKED])
    yield BufferedReader(cast(Any, decompressed(file, ending))) if ending else file


def _unknown(file: Path) -> CorpusError:
    ending = f"the ending {file.suffix!r}, which" if file.suffix else "no ending, so"
    return CorpusError(
        f"{file} has {ending} no reader knows; use {', '.join(_ENDINGS)}, also with .gz or .zst."
    )


def _too_long(source: str, name: str) -> CorpusError:
    return CorpusError(
        f"Document {name} of {source} has more than {LONGEST_TEXT:,} characters; cut it."
    )
