"""What a person can name as a corpus: files, directories, standard input, a dataset of the hub.

From there text comes as sentences, by the reader that takes the file, or as raw documents that are
not yet cut into sentences.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.resources import as_file, files
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple, TypeVar

from headscope.errors import CorpusError
from headscope.files import find_place
from headscope.text.corpus import read_stored
from headscope.text.readers import SUFFIXES, format_of, suffix_of
from headscope.text.readers.conll import Fused, read_conll2012, read_conllu
from headscope.text.readers.jsonl import read_jsonl
from headscope.text.readers.lines import Layout, document_numbers, read_plain
from headscope.text.readers.raw import (
    INPUT_NAME,
    TABLES,
    TEXT,
    HubDataset,
    Row,
    find_dataset,
    is_corpus,
    is_raw,
    is_saved,
    read_rows,
    read_standard_input,
    saved_files,
    to_sentences,
)
from headscope.text.segments import joined
from headscope.text.sentence import Sentence
from headscope.text.storage import LONGEST_TEXT

Named = str | Path | Iterable[str | Path]
DEMO = "demo"
STANDARD_INPUT = "-"
Item = TypeVar("Item")


@dataclass(frozen=True)
class Sources:
    """Files in the order in which they are read, or something else that is read once."""

    name: str  # as it was given
    asked: tuple[Path, ...] = ()
    files: tuple[Path, ...] = ()
    dataset: HubDataset | None = None

    @property
    def said(self) -> str:
        """What messages call it."""
        return INPUT_NAME if self.name == STANDARD_INPUT else self.name

    def stream(self, column: str) -> Iterator[Row]:
        """The raw documents of what is no file."""
        if self.dataset is not None:
            return self.dataset.read(column)
        return read_standard_input(column)


def find_sources(given: Named) -> Sources:
    """Look for what was named; nothing is opened yet."""
    if given == STANDARD_INPUT:
        return Sources(STANDARD_INPUT)
    named = [given] if isinstance(given, str | Path) else list(given)
    if not named:
        raise CorpusError("No corpus file was given; name at least one.")
    dataset = _as_dataset(named)
    if dataset is not None:
        return Sources(str(named[0]), dataset=dataset)
    asked = tuple(_place(each) for each in named)
    found = tuple(file for place in asked for file in _expand(place))
    for file in found:
        format_of(file)  # refuses an ending that no reader knows
    more = f" and {len(named) - 1} more" if len(named) > 1 else ""
    return Sources(f"{named[0]}{more}", asked, found)


def demo_sentences() -> Iterator[Sentence]:
    """The corpus that comes with Headscope."""
    with as_file(files("headscope.text") / "bundled" / "demo.conllu") as path:
        try:
            yield from some(read_conllu(path, document_numbers()), "it is empty")
        except CorpusError as error:
            raise CorpusError(
                f"The bundled corpus is missing or damaged ({error}); repair the installation with "
                "`pip install --force-reinstall headscope`."
            ) from error


def some(items: Iterable[Item], nothing: str) -> Iterator[Item]:
    """The items, of which there must be one; `nothing` says what is wrong otherwise."""
    stream = iter(items)
    for first in stream:
        yield first
        yield from stream
        return
    raise CorpusError(nothing)


def _as_dataset(named: Sequence[str | Path]) -> HubDataset | None:
    """A dataset of the hub, if that is what a single name can only mean."""
    if len(named) != 1 or not isinstance(named[0], str):
        return None
    path = Path(named[0])
    if path.exists() or suffix_of(path) in SUFFIXES:
        return None
    return find_dataset(named[0])


def _place(path: str | Path) -> Path:
    if isinstance(path, str) and not path.strip():
        raise CorpusError('The path of the corpus is empty; give a file, a directory or "demo".')
    return find_place(path)


def _expand(path: Path) -> list[Path]:
    if not path.exists():
        raise CorpusError(f"There is no file or directory {path}; check the path.")
    if not path.is_dir():
        return [path]
    if is_saved(path):
        return saved_files(path)
    found = sorted(file for file in path.rglob("*") if suffix_of(file) in SUFFIXES)
    if not found:
        raise CorpusError(
            f"No file in {path} ends in {', '.join(SUFFIXES)}; give another directory."
        )
    return found


@dataclass(frozen=True)
class Reading:
    """How files are read, and what was counted on the way."""

    layout: Layout | None = None  # as it is usual for the kind of file
    fused: Fused = "merge"
    column: str = TEXT
    counts: Counter[str] = field(default_factory=Counter)


def read_sentences(path: Path, names: Iterator[str], how: Reading) -> Iterator[Sentence]:
    """Stream the sentences of one file; `names` are for the documents that have none."""
    in_lines = how.layout in (None, "sentences")
    match format_of(path).name:
        case "CoNLL-U":
            return read_conllu(path, names, fused=how.fused, counts=how.counts)
        case "CoNLL-2012":
            return read_conll2012(path, names)
        case "Parquet" | "Arrow" if is_corpus(path):
            return read_stored(path)
        case "JSONL" if (in_lines and how.column == TEXT) or not is_raw(path):
            return read_jsonl(path, names)
        case "text" if in_lines or how.layout == "paragraphs":
            return read_plain(path, names, layout=how.layout or "sentences")
        case kind:
            usual = "sentences" if kind == "JSONL" else "running"
            return to_sentences(read_rows(path, how.column), names, how.layout or usual)


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
        return some(self._texts(), f"There is no text in {self._where()}; give one that has some.")

    def _texts(self) -> Iterator[RawDocument]:
        for number, row in enumerate(self._rows(), start=1):
            name = row.name or str(number)
            if len(row.text) > LONGEST_TEXT:
                raise CorpusError(
                    f"Document {name} of {self.source.said} has more than {LONGEST_TEXT:,} "
                    "characters; cut it."
                )
            if row.text.strip():
                yield RawDocument(row.text, name)

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
