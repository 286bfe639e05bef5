"""Where the rows of a corpus lie: a Parquet file read one row group at a time, or memory."""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from headscope.errors import CorpusError
from headscope.files import is_local, reaching, replacing
from headscope.text.sentence import Sentence
from headscope.text.table import SCHEMA, TAG_FIELDS, Fingerprint, to_columns, to_table
from headscope.wording import shorten

FORMAT = 1  # raise when the columns or the meaning of the metadata change
GROUP_ROWS = 1024
_KEY = b"headscope"
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
                return self._file.read_row_group(index, use_threads=False)
        except (OSError, pa.ArrowException) as error:
            raise _damaged(self.path, error) from error


def _source(path: Path) -> Any:
    """What Arrow reads: a local file by its name, any other through fsspec."""
    return path if is_local(path) else path.open("rb")


def _read_metadata(path: Path) -> pq.FileMetaData:
    try:
        with reaching(path):
            return pq.read_metadata(_source(path))
    except FileNotFoundError as error:
        raise CorpusError(f"There is no file {path}; check the path.") from error
    except (OSError, pa.ArrowException) as error:
        raise _damaged(path, error) from error


def _stored_facts(path: Path, metadata: pq.FileMetaData) -> Facts:
    stored = (metadata.metadata or {}).get(_KEY)
    if stored is None:
        raise CorpusError(
            f"{path} is a Parquet file but not a Headscope corpus; "
            "make one with `headscope annotate` or Corpus.write."
        )
    values = json.loads(stored)
    if values["format"] != FORMAT:
        raise CorpusError(
            f"{path} has corpus format {values['format']}, this version reads {FORMAT}; "
            "write the file again from its source."
        )
    return Facts(**values | {"fields": tuple(values["fields"])})


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
        yield to_table(columns)


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
