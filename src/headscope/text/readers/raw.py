"""Raw text: documents in files, on standard input or in a dataset, each a row with its name.

They come as lines, as JSON objects, or as a column of a Parquet, Arrow or Feather file. A directory
that `save_to_disk` made is Arrow files with two small JSON files that list them, so it is read
without the library `datasets`. The name of a dataset on the Hugging Face hub needs it.
"""

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

import pyarrow as pa
import pyarrow.parquet as pq

from headscope.errors import CorpusError
from headscope.text.boundaries import cut_sentences
from headscope.text.readers import suffix_of
from headscope.text.readers.jsonl import RecordError, parse_record
from headscope.text.readers.lines import (
    Layout,
    cannot_read,
    decompressed,
    ending_of,
    lines_of,
    mistake,
    open_bytes,
    open_seekable,
    read_lines,
    spooled,
)
from headscope.text.sentence import Sentence
from headscope.text.storage import LONGEST_TEXT
from headscope.wording import shorten

TEXT = "text"  # the column that is read unless another is named
INPUT_NAME = "standard input"  # as messages call it
_TABLE_STARTS = (b"PAR1", b"ARROW1", b"\xff\xff\xff\xff")
_PEEKED = 64  # bytes by which standard input shows its format
TABLES = (".parquet", ".arrow", ".feather")
NAMES = "document"  # the column whose strings name the texts, where a table has it
_CORPUS = b"headscope"  # the key under which a Parquet file says that it is an annotated corpus
_ARROW_FILE = b"ARROW1"  # begins the format that can be read in any order; the other is a stream
_ROWS = 64  # texts that are in memory at a time
_BUFFER = 1 << 20  # bytes of a column that are read ahead
_SAID = 200  # characters of a list of columns, or of what the library says
_DICTIONARY = "dataset_dict.json"
_STATE = "state.json"
_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?(:[\w.-]*){0,2}")
_OFFLINE = ("HF_DATASETS_OFFLINE", "HF_HUB_OFFLINE")


class Row(NamedTuple):
    """A text and what it is called; empty where the table does not say."""

    text: str
    name: str = ""


def read_rows(path: Path, column: str = TEXT) -> Iterator[Row]:
    """The documents of a raw file, each a row with its name, if it has one."""
    if suffix_of(path) in TABLES:
        yield from read_column(path, column)
    else:
        with open_bytes(path) as file:
            yield from _of_lines(file, path, column, is_plain=suffix_of(path) == ".txt")


def to_sentences(rows: Iterable[Row], names: Iterator[str], layout: Layout) -> Iterator[Sentence]:
    """Documents as sentences without words: whole, line by line, or cut where sentences end.

    A document without a name is called by its number among all that have the same `names`.
    """
    for row, number in zip(rows, names, strict=False):
        document = row.name or number
        if layout == "documents":
            yield from [Sentence(row.text, document=document, id="1")] if row.text.strip() else []
            continue
        count = 0
        lines = filter(None, map(str.strip, row.text.splitlines()))
        for place, line in enumerate(lines):
            paragraph = 0 if layout == "sentences" else place
            for text in cut_sentences(line) if layout == "running" else [line]:
                count += 1
                yield Sentence(text, document=document, paragraph=paragraph, id=str(count))


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


def read_standard_input(column: str) -> Iterator[Row]:
    """Lines of text or of JSON, or a table: standard input has no ending, so its bytes say."""
    try:
        with _standard_bytes() as file:
            start = file.peek(_PEEKED)[:_PEEKED]
            if start.startswith(_TABLE_STARTS):
                with spooled(cast(BinaryIO, file)) as table:
                    yield from rows_of(table, column, INPUT_NAME)
            else:
                is_plain = not start.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{")
                yield from _of_lines(cast(BinaryIO, file), INPUT_NAME, column, is_plain=is_plain)
    except (OSError, EOFError, ValueError, pa.ArrowException) as error:
        raise cannot_read(INPUT_NAME, error) from error


@contextmanager
def _standard_bytes() -> Iterator[BufferedReader]:
    if sys.stdin is None or sys.stdin.closed:
        raise CorpusError("Standard input is closed; give a file.")
    file: Any = sys.stdin.buffer
    ending = ending_of(file.peek(_PEEKED)[:_PEEKED])
    yield BufferedReader(cast(Any, decompressed(file, ending))) if ending else file


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


def read_column(path: Path, column: str) -> Iterator[Row]:
    """The texts of one column, missing ones as empty texts."""
    try:
        with open_seekable(path) as file:
            yield from rows_of(file, column, path)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise cannot_read(path, error) from error


def rows_of(file: Any, column: str, name: Path | str) -> Iterator[Row]:
    """The texts of one column of an open table in any of the formats."""
    is_parquet = file.read(4) == b"PAR1"
    file.seek(0)
    table = _Parquet(file) if is_parquet else _Arrow(file)
    check_column(column, table.schema.names, name)
    _check_type(table.schema.field(column), name)
    wanted = [each for each in (column, NAMES) if each in table.schema.names]
    for batch in table.batches(wanted):
        yield from _rows(batch, column)


def is_corpus(path: Path) -> bool:
    """Whether a file is a corpus as `headscope annotate` makes it, and not any table.

    One that cannot be read counts as such, so that opening it says what is wrong.
    """
    if suffix_of(path) != ".parquet":
        return False
    try:
        with open_seekable(path) as file:
            return _CORPUS in (pq.ParquetFile(file).metadata.metadata or {})
    except (OSError, ValueError, pa.ArrowException):
        return path.suffix == ".parquet"


def check_column(column: str, known: list[str], name: Path | str) -> None:
    """Refuse a column that a table does not have."""
    if column not in known:
        listed = shorten(", ".join(map(repr, known)), _SAID) or "none"
        raise CorpusError(f"{name} has no column {column!r}; name one that it has: {listed}.")


class _Arrow:
    """An Arrow file or stream."""

    def __init__(self, file: Any) -> None:
        self._is_file = file.read(len(_ARROW_FILE)) == _ARROW_FILE
        file.seek(0)
        self._reader: Any = pa.ipc.open_file(file) if self._is_file else pa.ipc.open_stream(file)
        self.schema: pa.Schema = self._reader.schema

    def batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        reader = self._reader
        several = (
            map(reader.get_batch, range(reader.num_record_batches)) if self._is_file else reader
        )
        for batch in several:
            chosen = batch.select(columns)
            for start in range(0, chosen.num_rows, _ROWS):
                yield chosen.slice(start, _ROWS)


class _Parquet:
    """A Parquet file of which no more than a few pages are in memory."""

    def __init__(self, file: Any) -> None:
        self._file = pq.ParquetFile(file, buffer_size=_BUFFER, pre_buffer=False)
        self.schema: pa.Schema = self._file.schema_arrow

    def batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        return self._file.iter_batches(batch_size=_ROWS, columns=columns, use_threads=False)


def _check_type(field: pa.Field, name: Path | str) -> None:
    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    texts = (pa.string(), pa.large_string(), pa.string_view(), pa.null())
    if kind not in texts:
        raise CorpusError(
            f"The column {field.name!r} of {name} holds {shorten(str(kind), 60)}, not text; "
            "name another column."
        )


def _rows(batch: pa.RecordBatch, column: str) -> Iterator[Row]:
    texts = batch.column(column).to_pylist()
    names = batch.column(NAMES).to_pylist() if NAMES in batch.schema.names else [None] * len(texts)
    for text, name in zip(texts, names, strict=True):
        yield Row(text or "", "" if name is None else str(name))


def is_saved(folder: Path) -> bool:
    """Whether `save_to_disk` of the library `datasets` made a directory."""
    return (folder / _STATE).exists() or (folder / _DICTIONARY).exists()


def saved_files(folder: Path) -> list[Path]:
    """The Arrow files of a saved dataset, those of every split in order."""
    if (folder / _DICTIONARY).exists():
        splits = _load(folder / _DICTIONARY, "splits")
        return [file for split in splits for file in saved_files(folder / str(split))]
    listed = _load(folder / _STATE, "_data_files")
    names = [each.get("filename") if isinstance(each, dict) else None for each in listed]
    if not all(isinstance(name, str) for name in names):
        raise _unlisted(folder / _STATE, "a file has no name")
    return [folder / str(name) for name in names]


@dataclass(frozen=True)
class HubDataset:
    """A dataset by its name on the hub, read over the network as it is used."""

    name: str
    configuration: str | None = None
    split: str = "train"

    def read(self, column: str) -> Iterator[Row]:
        """The texts of one column."""
        try:
            for row in self._rows():
                check_column(column, list(row), self.name)
                name = row.get(NAMES)
                yield Row(self._text(row[column], column), "" if name is None else str(name))
        except CorpusError:
            raise
        except Exception as error:
            raise self._unreachable(error) from error

    def _rows(self) -> Any:
        try:
            library: Any = import_module("datasets")
        except ImportError as error:
            raise CorpusError(
                f"There is no file or directory {self.name}; check the path, or install "
                "`pip install 'headscope[hub]'` if it is the name of a dataset on the hub."
            ) from error
        # Without the network only what was downloaded before can be read, and that not as a stream.
        streaming = not any(os.environ.get(name, "0") not in ("", "0") for name in _OFFLINE)
        return library.load_dataset(
            self.name, self.configuration, split=self.split, streaming=streaming
        )

    def _text(self, value: object, column: str) -> str:
        if value is not None and not isinstance(value, str):
            raise CorpusError(
                f"The column {column!r} of {self.name} holds {type(value).__name__}, not text; "
                "name another column."
            )
        return value or ""

    def _unreachable(self, error: Exception) -> CorpusError:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        said = shorten(lines[0], _SAID).removesuffix(".")
        return CorpusError(
            f"{self.name} is no file or directory here, and the hub gave no dataset of that name "
            f"({said}); check the name and the network, or give a file."
        )


def find_dataset(name: str) -> HubDataset | None:
    """A dataset by NAME, NAME:CONFIGURATION or NAME:CONFIGURATION:SPLIT; None if it is no name."""
    if not _NAME.fullmatch(name) or set(name) <= {".", "/"}:
        return None
    whole, configuration, split, *_ = [*name.split(":"), "", ""]
    return HubDataset(whole, configuration or None, split or "train")


def _load(path: Path, key: str) -> list[Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))[key]
        if not isinstance(value, list):
            raise TypeError(f"{key} is no list")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _unlisted(path, repr(error)) from error
    return value


def _unlisted(path: Path, problem: str) -> CorpusError:
    return CorpusError(
        f"{path} does not say which files belong to the dataset ({shorten(problem, _SAID)}); "
        "save it again with save_to_disk."
    )
