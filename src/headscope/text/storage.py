"""Where the sentences of a corpus lie: in Parquet, on disk or in memory, a row group at a time."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from io import BytesIO
from itertools import groupby, islice
from math import ceil
from pathlib import Path
from threading import Lock
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from headscope.errors import CorpusError
from headscope.files import is_local, reaching, write_atomically
from headscope.text.sentence import Sentence, problem
from headscope.text.table import (
    SCHEMA,
    TAG_FIELDS,
    Fingerprint,
    check_table,
    to_columns,
    to_sentences,
    to_table,
)
from headscope.wording import shorten

FORMAT = 1  # raise when the columns or the meaning of the metadata change
GROUP_ROWS = 1024
LARGEST_GROUP = 2**30  # bytes of the rows that are in memory at a time
MEMORY = Path("memory")  # the name of what is on no disk
_KEY = b"headscope"
_FINGERPRINT = 32  # hexadecimal digits
_SAID = 200  # characters of what Arrow says


@dataclass(frozen=True)
class Facts:
    """What is known of a corpus without reading its rows."""

    rows: int
    fingerprint: str
    fields: tuple[str, ...]
    group_rows: int  # rows of every row group but the last, so that row i is in group i // this
    format: int = FORMAT
    merged: int = 0  # multiword tokens of the source that were taken as one word


class Storage:
    """A Parquet file, or its bytes; only the footer and the row group last read are in memory."""

    def __init__(self, path: Path, content: bytes | None = None) -> None:
        self.path = path
        self._content = content  # of a corpus in memory, whose path is a mere name
        self._metadata = self._read_metadata()
        self.facts = _stored_facts(path, self._metadata)
        self._last: tuple[int, pa.Table] | None = None
        self._reading = Lock()  # a Parquet reader is for one thread at a time

    def __reduce__(self) -> tuple[type, tuple[Path, bytes | None]]:
        """A worker opens the file itself; what is in memory is sent."""
        path = self.path.absolute() if self._content is None else self.path
        return Storage, (path, self._content)

    def sentences(self, rows: Sequence[int]) -> Iterator[Sentence]:
        """The sentences of these rows, in order; one of a file that is not sound is refused.

        What is in memory was made by the program itself, which may try what no file may hold.
        """
        for numbers, table in self.tables(rows):
            for row, sentence in zip(numbers, to_sentences(table), strict=True):
                wrong = problem(sentence) if self._content is None else None
                if wrong is not None:
                    raise CorpusError(f"{self.path}: sentence {row + 1:,}: {wrong.message}")
                yield sentence

    def tables(self, rows: Sequence[int]) -> Iterator[tuple[list[int], pa.Table]]:
        """These rows in order, those of one row group at a time, each run with its table."""
        size = self.facts.group_rows
        for index, run in groupby(rows, key=lambda row: row // size):
            numbers = list(run)
            table = self.group(index)
            within = [row - index * size for row in numbers]
            is_whole = within == list(range(table.num_rows))
            yield numbers, table if is_whole else table.take(within)

    def group(self, index: int) -> pa.Table:
        """The rows of one group; the last one is kept for neighbours asked one by one."""
        with self._reading:
            if self._last is None or self._last[0] != index:
                self._last = (index, self._read_group(index))
            return self._last[1]

    @cached_property
    def _file(self) -> pq.ParquetFile:
        return pq.ParquetFile(
            self._open(),
            metadata=self._metadata,
            read_dictionary=[f"{name}.list.element" for name in TAG_FIELDS],
            page_checksum_verification=True,
        )

    def _open(self) -> Any:
        """What Arrow reads: bytes, a local file by its name, any other through fsspec."""
        if self._content is not None:
            return pa.BufferReader(self._content)
        return self.path if is_local(self.path) else self.path.open("rb")

    def _read_metadata(self) -> pq.FileMetaData:
        try:
            with reaching(self.path):
                return pq.read_metadata(self._open())
        except FileNotFoundError as error:
            raise CorpusError(f"There is no file {self.path}; check the path.") from error
        except (OSError, ValueError, pa.ArrowException) as error:
            raise _damaged(self.path, error) from error

    def _read_group(self, index: int) -> pa.Table:
        try:
            with reaching(self.path):
                table = self._file.read_row_group(index, use_threads=False)
                check_table(table)
        except (OSError, ValueError, KeyError, pa.ArrowException) as error:
            raise _damaged(self.path, error) from error
        return table


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


def _is_schema(schema: pq.ParquetSchema) -> bool:
    """Whether columns and types are those of a corpus, down to the names inside its lists."""
    paths = [schema.column(index).path for index in range(len(schema.names))]
    expected = [
        f"{field.name}.list.element" if pa.types.is_list(field.type) else field.name
        for field in SCHEMA
    ]
    return paths == expected and schema.to_arrow_schema().types == SCHEMA.types


def write_parquet(
    path: Path,
    sentences: Iterable[Sentence],
    group_rows: int = GROUP_ROWS,
    counts: Mapping[str, int] | None = None,
) -> None:
    """Write sentences as they come, one row group at a time; the file appears when complete.

    `counts` is looked at in the end, when reading the sentences has filled it.
    """
    with write_atomically(path) as temporary:
        temporary.parent.mkdir(parents=True, exist_ok=True)
        _write(temporary, sentences, group_rows, {} if counts is None else counts)


def hold_in_memory(sentences: Iterable[Sentence], group_rows: int = GROUP_ROWS) -> Storage:
    """The same bytes as in a file, held in memory."""
    buffer = BytesIO()
    _write(buffer, sentences, group_rows, {})
    return Storage(MEMORY, buffer.getvalue())


def _write(
    file: Path | BytesIO,
    sentences: Iterable[Sentence],
    group_rows: int,
    counts: Mapping[str, int],
) -> None:
    fingerprint, rows, stream = Fingerprint(), 0, iter(sentences)
    how = {"compression": "zstd", "write_statistics": False, "write_page_checksum": True}
    with pq.ParquetWriter(file, SCHEMA, **how) as writer:
        while batch := list(islice(stream, group_rows)):
            columns = to_columns(batch)
            fingerprint.update(columns)
            table = to_table(columns)
            if table.nbytes > LARGEST_GROUP:
                raise CorpusError(
                    f"{len(batch)} sentences hold {table.nbytes:,} bytes; the most is "
                    f"{LARGEST_GROUP:,}: cut them."
                )
            writer.write_table(table)
            rows += len(batch)
        if rows == 0:
            raise CorpusError("There are no sentences to make a corpus of; give at least one.")
        facts = Facts(
            rows,
            fingerprint.hexdigest(),
            fingerprint.fields,
            group_rows,
            merged=counts.get("merged", 0),
        )
        writer.add_key_value_metadata({_KEY: json.dumps(asdict(facts))})


def _damaged(path: Path, error: Exception) -> CorpusError:
    return CorpusError(
        f"{path} is not a readable Parquet file ({shorten(str(error), _SAID)}); "
        "write it again from its source."
    )
