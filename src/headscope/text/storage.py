"""Where the rows of a corpus lie: a Parquet file read one row group at a time, or memory."""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import islice
from math import ceil
from pathlib import Path
from threading import Lock
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from headscope.errors import CorpusError
from headscope.files import is_local, reaching, replacing
from headscope.text.faults import find_fault
from headscope.text.sentence import Sentence
from headscope.text.table import SCHEMA, TAG_FIELDS, Fingerprint, to_columns, to_table
from headscope.wording import shorten

FORMAT = 1  # raise when the columns or the meaning of the metadata change
GROUP_ROWS = 1024
LARGEST_GROUP = 2**30  # bytes of the rows that are in memory at a time
_KEY = b"headscope"
_FINGERPRINT = 32  # hexadecimal digits
_SAID = 200  # characters of what Arrow says


@dataclass(frozen=True)
class Facts:
    """What is known of a corpus without reading its rows."""

    rows: int
    fingerprint: str
    fields: tuple[str, ...]
    group_rows: int  # rows of every row group but the last
    format: int = FORMAT
    merged: int = 0  # multiword tokens of the source that were taken as one word


class Storage(Protocol):
    """Rows in groups of equal size, so that row i is in group i // facts.group_rows."""

    facts: Facts

    def group(self, index: int) -> pa.Table:
        """The rows of one group."""
        ...


class MemoryStorage:
    """A corpus held in memory, in Arrow's compact form."""

    def __init__(self, sentences: Iterable[Sentence], group_rows: int = GROUP_ROWS) -> None:
        fingerprint = Fingerprint()
        self._groups = list(_tables(sentences, group_rows, fingerprint))
        rows = sum(table.num_rows for table in self._groups)
        self.facts = _facts(rows, fingerprint, group_rows)

    def group(self, index: int) -> pa.Table:
        """The rows of one group."""
        return self._groups[index]


class ParquetStorage:
    """A corpus on disk; only the footer and the row group last read are in memory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._metadata = _read_metadata(path)
        self.facts = _stored_facts(path, self._metadata)
        self._last: tuple[int, pa.Table] | None = None
        self._reading = Lock()  # a Parquet reader is for one thread at a time

    def group(self, index: int) -> pa.Table:
        """The rows of one group; the last one is kept for neighbours asked one by one."""
        with self._reading:
            if self._last is None or self._last[0] != index:
                self._last = (index, self._read_group(index))
            return self._last[1]

    def __reduce__(self) -> tuple[type, tuple[Path]]:
        return ParquetStorage, (self.path.absolute(),)  # a worker opens the file itself

    @cached_property
    def _file(self) -> pq.ParquetFile:
        return pq.ParquetFile(
            _source(self.path),
            metadata=self._metadata,
            read_dictionary=[f"{name}.list.element" for name in TAG_FIELDS],
            page_checksum_verification=True,
        )

    def _read_group(self, index: int) -> pa.Table:
        try:
            with reaching(self.path):
                table = self._file.read_row_group(index, use_threads=False)
                fault = find_fault(table)
        except (OSError, ValueError, KeyError, pa.ArrowException) as error:
            raise _damaged(self.path, error) from error
        if fault is not None:
            number = index * self.facts.group_rows + fault.row + 1
            raise CorpusError(f"{self.path}: sentence {number:,}: {fault.problem}")
        return table


def _source(path: Path) -> Any:
    """What Arrow reads: a local file by its name, any other through fsspec."""
    return path if is_local(path) else path.open("rb")


def _read_metadata(path: Path) -> pq.FileMetaData:
    try:
        with reaching(path):
            return pq.read_metadata(_source(path))
    except FileNotFoundError as error:
        raise CorpusError(f"There is no file {path}; check the path.") from error
    except (OSError, ValueError, pa.ArrowException) as error:
        raise _damaged(path, error) from error


def _stored_facts(path: Path, metadata: pq.FileMetaData) -> Facts:
    stored = (metadata.metadata or {}).get(_KEY)
    if stored is None:
        raise CorpusError(
            f"{path} is a Parquet file but not a Headscope corpus; "
            "make one with `headscope annotate` or Corpus.write."
        )
    try:
        values = json.loads(stored)
        version = values["format"]
    except (ValueError, RecursionError, KeyError, TypeError) as error:
        raise _damaged(path, ValueError("what it says of itself is no JSON object")) from error
    if version != FORMAT:
        raise CorpusError(
            f"{path} has corpus format {shorten(repr(version), 40)}, this version reads {FORMAT}; "
            "write the file again from its source."
        )
    try:
        facts = Facts(**values | {"fields": tuple(values["fields"])})
        _check_layout(metadata, facts)
    except (ValueError, KeyError, TypeError, pa.ArrowException) as error:
        raise _damaged(path, error) from error
    return facts


def _check_layout(metadata: pq.FileMetaData, facts: Facts) -> None:
    """Refuse facts that the file does not bear out, before any row is read."""
    numbers = (facts.rows, facts.group_rows, facts.merged)
    if any(type(number) is not int for number in numbers) or min(numbers) < 0:
        raise ValueError("its counts are not whole numbers")
    if not isinstance(facts.fingerprint, str) or len(facts.fingerprint) != _FINGERPRINT:
        raise ValueError("it has no fingerprint")
    if not all(isinstance(name, str) for name in facts.fields):
        raise ValueError("its fields have no names")
    if not _is_schema(metadata.schema):
        raise ValueError("its columns are not those of a corpus")
    if facts.group_rows == 0 or facts.rows == 0 or facts.rows != metadata.num_rows:
        raise ValueError(f"it has {metadata.num_rows} rows, not {facts.rows}")
    if metadata.num_row_groups != ceil(facts.rows / facts.group_rows):
        raise ValueError("its row groups are not of equal size")
    for index in range(metadata.num_row_groups):
        group = metadata.row_group(index)
        left = facts.rows - index * facts.group_rows
        if group.num_rows != min(facts.group_rows, left):
            raise ValueError("its row groups are not of equal size")
        if not 0 <= group.total_byte_size <= LARGEST_GROUP:
            raise ValueError(f"a row group holds {group.total_byte_size:,} bytes")


def _is_schema(found: pq.ParquetSchema) -> bool:
    """Whether columns and types are those of a corpus, down to what its lists hold."""
    paths = [found.column(index).path for index in range(len(found.names))]
    return paths == [_path(field) for field in SCHEMA] and all(
        _plain(one.type) == _plain(known.type)
        for one, known in zip(found.to_arrow_schema(), SCHEMA, strict=True)
    )


def _path(field: pa.Field) -> str:
    return f"{field.name}.list.element" if pa.types.is_list(field.type) else field.name


def _plain(kind: pa.DataType) -> tuple[bool, pa.DataType]:
    """Whether it is a list, and of what; the name that a list gives its items is left out."""
    is_list = pa.types.is_list(kind)
    return is_list, kind.value_type if is_list else kind


def write_parquet(
    path: Path,
    sentences: Iterable[Sentence],
    group_rows: int = GROUP_ROWS,
    counts: Mapping[str, int] | None = None,
) -> None:
    """Write sentences as they come, one row group at a time; the file appears when complete.

    `counts` is looked at in the end, when reading the sentences has filled it.
    """
    fingerprint, rows = Fingerprint(), 0
    with _replacing(path) as temporary, _writer(temporary) as writer:
        for table in _tables(sentences, group_rows, fingerprint):
            writer.write_table(table)
            rows += table.num_rows
        merged = (counts or {}).get("merged", 0)
        facts = asdict(replace(_facts(rows, fingerprint, group_rows), merged=merged))
        writer.add_key_value_metadata({_KEY: json.dumps(facts)})


def _tables(
    sentences: Iterable[Sentence], group_rows: int, fingerprint: Fingerprint
) -> Iterator[pa.Table]:
    stream = iter(sentences)
    while batch := list(islice(stream, group_rows)):
        columns = to_columns(batch)
        fingerprint.update(columns)
        table = to_table(columns)
        if table.nbytes > LARGEST_GROUP:
            raise CorpusError(
                f"{len(batch)} sentences hold {table.nbytes:,} bytes; the most is "
                f"{LARGEST_GROUP:,}: cut them."
            )
        yield table


def _facts(rows: int, fingerprint: Fingerprint, group_rows: int) -> Facts:
    if rows == 0:
        raise CorpusError("There are no sentences to make a corpus of; give at least one.")
    return Facts(rows, fingerprint.hexdigest(), fingerprint.fields, group_rows)


def _writer(path: Path) -> pq.ParquetWriter:
    return pq.ParquetWriter(
        path, SCHEMA, compression="zstd", write_statistics=False, write_page_checksum=True
    )


@contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """A local temporary file that takes the place of the path on success."""
    try:
        if is_local(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as temporary:
            yield temporary
    except OSError as error:
        raise CorpusError(
            f"Cannot write {path} ({error.strerror or error}); "
            "make room or choose a place that can be written to."
        ) from error


def _damaged(path: Path, error: Exception) -> CorpusError:
    return CorpusError(
        f"{path} is not a readable Parquet file ({shorten(str(error), _SAID)}); "
        "write it again from its source."
    )
