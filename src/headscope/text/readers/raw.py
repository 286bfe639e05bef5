"""Raw text: documents in files, on standard input or in a dataset, and their sentences.

They come as lines, as JSON objects, or as a column of a Parquet, Arrow or Feather file. A directory
that `save_to_disk` made is Arrow files with two small JSON files that list them, so it is read
without the library `datasets`. The name of a dataset on the Hugging Face hub needs it.
"""

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from headscope.errors import CorpusError
from headscope.text.boundaries import cut_sentences
from headscope.text.readers import TABLES, suffix_of
from headscope.text.readers.jsonl import parse_record
from headscope.text.readers.lines import (
    BYTE_ORDER_MARK,
    UNREADABLE,
    Layout,
    LineError,
    cannot_read,
    lines_of,
    open_table,
    read_lines,
    sound,
)
from headscope.text.sentence import LONGEST_TEXT, Sentence
from headscope.wording import said, shorten

TEXT = "text"  # the column that is read unless another is named
INPUT_NAME = "standard input"  # as messages call it
_NAMES = "document"  # the column whose strings name the texts, where a table has it
_CORPUS = b"headscope"  # the key under which a Parquet file says that it is an annotated corpus
_PARQUET = b"PAR1"
_ARROW_FILE = b"ARROW1"  # begins the format that can be read in any order; the other is a stream
_PEEKED = 64  # bytes by which standard input shows its format
_ROWS = 64  # texts that are in memory at a time
_BUFFER = 1 << 20  # bytes of a column that are read ahead
_SAID = 200  # characters of a list of columns, or of an error
# NAME, NAME:CONFIGURATION or NAME:CONFIGURATION:SPLIT; "." and ".." are directories.
HUB_NAME = re.compile(r"(?![./]+$)[\w.-]+(/[\w.-]+)?(:[\w.-]*){0,2}")
_OFFLINE = ("HF_DATASETS_OFFLINE", "HF_HUB_OFFLINE")


class Document(NamedTuple):
    """A text of one or more paragraphs, one per line, and its name, empty where it has none."""

    text: str
    name: str = ""


def numbered(
    documents: Iterable[Document], numbers: Iterator[str], where: Path | str
) -> Iterator[Document]:
    """The documents that hold text, those without a name called by their number among all."""
    for document, number in zip(documents, numbers, strict=False):
        name = document.name or number
        if len(document.text) > LONGEST_TEXT:
            raise CorpusError(
                f"Document {name} of {where} has more than {LONGEST_TEXT:,} characters; cut it."
            )
        if document.text.strip():
            yield Document(document.text, name)


def cut_documents(documents: Iterable[Document], layout: Layout) -> Iterator[Sentence]:
    """Documents as sentences without words: whole, line by line, or cut where sentences end."""
    for document in documents:
        if layout == "documents":
            yield Sentence(document.text, document=document.name, id="1")
            continue
        count = 0
        lines = filter(None, map(str.strip, document.text.splitlines()))
        for number, line in enumerate(lines):
            paragraph = 0 if layout == "sentences" else number
            for text in cut_sentences(line) if layout == "running" else [line]:
                count += 1
                yield Sentence(text, document=document.name, paragraph=paragraph, id=str(count))


def read_plain(
    path: Path, documents: Iterator[str], *, layout: Layout = "sentences"
) -> Iterator[Sentence]:
    """Each line of a .txt as a sentence without words, in the layout "paragraphs" as a paragraph.

    Unlike `read_documents` it holds no more than a line: a document may have any number of them.
    """
    document, count = "", 0  # of the lines in this document
    for number, line in enumerate(read_lines(path), start=1):
        text = line.strip()
        if not text:
            count = 0
            continue
        if count == 0:
            document = next(documents)
        paragraph = count if layout == "paragraphs" else 0
        count += 1
        try:
            sentence = sound(Sentence(text, (), (), document, paragraph, str(count)))
        except LineError as error:
            raise error.at(path, number) from error
        yield sentence


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
    except LineError:
        return True  # said with its line when the file is read


def is_corpus(path: Path) -> bool:
    """Whether a file is a corpus as `headscope annotate` makes it, and not any table.

    One that cannot be read counts as such, so that opening it says what is wrong.
    """
    if suffix_of(path) != ".parquet":
        return False
    try:
        with open_table(path) as file:
            return _CORPUS in (pq.ParquetFile(file).metadata.metadata or {})
    except (OSError, ValueError, pa.ArrowException):
        return True


def read_raw(path: Path, column: str) -> Iterator[Document]:
    """The documents of a raw file."""
    ending = suffix_of(path)
    if ending == ".txt":
        yield from _read_text(read_lines(path), path)
    elif ending == ".jsonl":
        yield from _read_objects(read_lines(path), path, column)
    else:
        try:
            with open_table(path) as file:
                yield from _read_table(file, path, column)
        except UNREADABLE as error:
            raise cannot_read(path, error) from error


def read_standard_input(column: str) -> Iterator[Document]:
    """Lines of text or of JSON: standard input has no ending, so its first bytes say."""
    if sys.stdin is None or sys.stdin.closed:
        raise CorpusError("Standard input is closed; give a file.")
    file: Any = sys.stdin.buffer
    try:
        start = file.peek(_PEEKED).removeprefix(BYTE_ORDER_MARK).lstrip()
        lines = lines_of(file, INPUT_NAME)
        if start.startswith(b"{"):
            yield from _read_objects(lines, INPUT_NAME, column)
        else:
            yield from _read_text(lines, INPUT_NAME)
    except OSError as error:
        raise cannot_read(INPUT_NAME, error) from error


def _read_text(lines: Iterable[str], name: Path | str) -> Iterator[Document]:
    """Documents with blank lines between them."""
    held: list[str] = []
    size = 0
    for number, line in enumerate(lines, start=1):
        if line.strip():
            held.append(line)
            size += len(line) + 1
            if size > LONGEST_TEXT:
                raise CorpusError(
                    f"{name}:{number}: a document of more than {LONGEST_TEXT:,} characters; put "
                    "blank lines between documents."
                )
        elif held:
            yield Document("\n".join(held))
            held, size = [], 0
    if held:
        yield Document("\n".join(held))


def _read_objects(lines: Iterable[str], name: Path | str, column: str) -> Iterator[Document]:
    """A document for every JSON object."""
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                document = _document(parse_record(line), column)
            except LineError as error:
                raise error.at(name, number) from error
            yield document


def _read_table(file: Any, name: Path, column: str) -> Iterator[Document]:
    """The texts of one column of an open table, of which only a few are in memory."""
    start = file.read(len(_ARROW_FILE))
    file.seek(0)
    batches: Iterable[pa.RecordBatch]
    try:
        if start.startswith(_PARQUET):
            parquet = pq.ParquetFile(file, buffer_size=_BUFFER, pre_buffer=False)
            columns = _columns_to_read(column, parquet.schema_arrow.names)
            batches = parquet.iter_batches(batch_size=_ROWS, columns=columns, use_threads=False)
        elif start == _ARROW_FILE:
            arrow: Any = pa.ipc.open_file(file)
            columns = _columns_to_read(column, arrow.schema.names)
            batches = map(arrow.get_batch, range(arrow.num_record_batches))
        else:
            batches = pa.ipc.open_stream(file)
            columns = _columns_to_read(column, batches.schema.names)
        for batch in batches:
            texts = batch.select(columns)
            texts.validate(full=True)  # Arrow trusts offsets, and reads past the end of a text
            for first in range(0, texts.num_rows, _ROWS):
                for row in texts.slice(first, _ROWS).to_pylist():
                    yield _document(row, column)
    except LineError as error:
        raise error.at(name) from error


def _columns_to_read(column: str, names: Iterable[str]) -> list[str]:
    """The column of texts, which must be there, and that of their names."""
    if column not in names:
        listed = shorten(", ".join(map(repr, names)), _SAID) or "none"
        raise LineError(f"there is no column {column!r}; name one that there is: {listed}.")
    return [column, _NAMES] if _NAMES in names and column != _NAMES else [column]


def _document(row: Mapping[str, Any], column: str) -> Document:
    """The document of a row of a table, or of an object; what is missing is empty."""
    _columns_to_read(column, row)
    text, name = row[column], row.get(_NAMES)
    if not isinstance(text, str | None):
        kind = type(text).__name__
        raise LineError(f"the column {column!r} holds {kind}, not text; name another column.")
    return Document(text or "", "" if name is None else str(name))


def saved_files(folder: Path) -> list[Path]:
    """The Arrow files that `save_to_disk` of the library `datasets` made, in order; or none.

    Those of several splits lie in folders of their own.
    """
    listing = folder / "dataset_dict.json"
    try:
        if listing.exists():
            splits = json.loads(listing.read_text(encoding="utf-8"))["splits"]
            return [file for split in splits for file in saved_files(folder / split)]
        listing = folder / "state.json"
        if listing.exists():
            entries = json.loads(listing.read_text(encoding="utf-8"))["_data_files"]
            return [folder / entry["filename"] for entry in entries]
        return []
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise CorpusError(
            f"{listing} does not say which files belong to the dataset "
            f"({shorten(repr(error), _SAID)}); save it again with save_to_disk."
        ) from error


def read_hub(name: str, column: str) -> Iterator[Document]:
    """The texts of one column of a dataset on the hub, read over the network as they are used."""
    repository, configuration, split = [*name.split(":"), "", ""][:3]
    try:
        library: Any = import_module("datasets")
    except ImportError as error:
        raise CorpusError(
            f"There is no file or directory {repository}; check the path, or install "
            "`pip install 'headscope[hub]'` if it is the name of a dataset on the hub."
        ) from error
    # Without the network only what was downloaded before can be read, and that not as a stream.
    is_offline = any(os.environ.get(name, "0") not in ("", "0") for name in _OFFLINE)
    try:
        rows = library.load_dataset(
            repository, configuration or None, split=split or "train", streaming=not is_offline
        )
        for row in rows:
            yield _document(row, column)
    except LineError as error:
        raise error.at(repository) from error
    except Exception as error:
        raise CorpusError(
            f"{repository} is no file or directory here, and the hub gave no dataset of that name "
            f"({said(error)}); check the name and the network, or give a file."
        ) from error
