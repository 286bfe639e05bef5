"""A column of text in Parquet, Arrow or Feather files, or in a dataset of the Hugging Face hub.

A directory that `save_to_disk` made is Arrow files with two small JSON files that list them, so it
is read without the library. A name needs it.
"""

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from headscope.errors import CorpusError
from headscope.text.readers import suffix_of
from headscope.text.readers.lines import cannot_read, open_seekable
from headscope.wording import shorten

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


def read_column(path: Path, column: str) -> Iterator[Row]:
    """The texts of one column, missing ones as empty texts."""
    try:
        with open_seekable(path) as file:
            yield from rows_of(file, column, path)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise cannot_read(path, error) from error


def rows_of(file: Any, column: str, name: Path | str) -> Iterator[Row]:
    """The texts of one column of an open table in any of the formats."""
    with _opened(file) as table:
        check_column(column, table.schema_arrow.names, name)
        _check_type(table.schema_arrow.field(column), name)
        wanted = [each for each in (column, NAMES) if each in table.schema_arrow.names]
        for batch in table.iter_batches(columns=wanted):
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
    """An Arrow file or stream with the two names of a ParquetFile that are used here."""

    def __init__(self, file: Any) -> None:
        is_file = file.read(len(_ARROW_FILE)) == _ARROW_FILE
        file.seek(0)
        self._reader: Any = pa.ipc.open_file(file) if is_file else pa.ipc.open_stream(file)
        self._is_file = is_file
        self.schema_arrow: pa.Schema = self._reader.schema

    def iter_batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        for batch in self._whole():
            chosen = batch.select(columns)
            for start in range(0, chosen.num_rows, _ROWS):
                yield chosen.slice(start, _ROWS)

    def _whole(self) -> Iterator[pa.RecordBatch]:
        if not self._is_file:
            return iter(self._reader)
        count = self._reader.num_record_batches
        return (self._reader.get_batch(index) for index in range(count))


class _Parquet:
    """A Parquet file of which no more than a few pages are in memory."""

    def __init__(self, file: Any) -> None:
        self._file = pq.ParquetFile(file, buffer_size=_BUFFER, pre_buffer=False)
        self.schema_arrow: pa.Schema = self._file.schema_arrow

    def iter_batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        return self._file.iter_batches(batch_size=_ROWS, columns=columns, use_threads=False)


@contextmanager
def _opened(file: Any) -> Iterator[_Arrow | _Parquet]:
    is_parquet = file.read(4) == b"PAR1"
    file.seek(0)
    yield _Parquet(file) if is_parquet else _Arrow(file)


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
    return [folder / _file_name(each, folder) for each in _load(folder / _STATE, "_data_files")]


@dataclass(frozen=True)
class HubDataset:
    """A dataset by its name on the hub, read over the network as it is used."""

    name: str
    configuration: str | None = None
    split: str = "train"

    def read(self, column: str) -> Iterator[Row]:
        """The texts of one column."""
        rows = iter(self._rows())
        try:
            for row in rows:
                check_column(column, list(row), self.name)
                name = row.get(NAMES)
                yield Row(self._text(row[column], column), "" if name is None else str(name))
        except CorpusError:
            raise
        except Exception as error:
            raise self._unreachable(error) from error

    def _rows(self) -> Any:
        try:
            library: Any = import_module("datasets")  # this file has the same name
        except ImportError as error:
            raise CorpusError(
                f"There is no file or directory {self.name}; check the path, or install "
                "`pip install 'headscope[hub]'` if it is the name of a dataset on the hub."
            ) from error
        # Without the network only what was downloaded before can be read, and that not as a stream.
        streaming = not any(os.environ.get(name, "0") not in ("", "0") for name in _OFFLINE)
        try:
            return library.load_dataset(
                self.name, self.configuration, split=self.split, streaming=streaming
            )
        except Exception as error:
            raise self._unreachable(error) from error

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


def _file_name(listed: Any, folder: Path) -> str:
    match listed:
        case {"filename": str(name)}:
            return name
        case _:
            raise _unlisted(folder / _STATE, "a file has no name")


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
