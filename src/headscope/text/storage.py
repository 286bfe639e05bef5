"""Where the rows of a corpus lie: a Parquet file read one row group at a time, or memory.

What is wrong with the rows of a table that anybody may have written: heads, spans, lengths.

Everything is looked at in whole columns, so that checking costs little beside reading.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import islice
from math import ceil, log2
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq

from headscope.errors import CorpusError
from headscope.files import is_local, reaching, replacing
from headscope.text.sentence import ROOT, Sentence
from headscope.text.table import (
    MENTION_FIELDS,
    SCHEMA,
    SENTENCE_FIELDS,
    SPAN_FIELDS,
    TAG_FIELDS,
    WORD_FIELDS,
    Fingerprint,
    to_columns,
    to_table,
)
from headscope.wording import shorten

pc: Any = pyarrow.compute  # its functions are made at run time, so that no checker knows them

LONGEST_TEXT = 16_000_000  # characters of one sentence
_NEEDED = ("form", "start", "end", *MENTION_FIELDS, *SPAN_FIELDS)  # the others may be missing
FORMAT = 1  # raise when the columns or the meaning of the metadata change
GROUP_ROWS = 1024
LARGEST_GROUP = 2**30  # bytes of the rows that are in memory at a time
_KEY = b"headscope"
_FINGERPRINT = 32  # hexadecimal digits
_SAID = 200  # characters of what Arrow says


class Fault(NamedTuple):
    """The row of the table, and what is wrong there with the remedy."""

    row: int
    problem: str


def find_fault(table: pa.Table) -> Fault | None:
    """The first thing that no corpus may have, or None."""
    columns = {name: table.column(name).combine_chunks() for name in table.column_names}
    return next(_faults(columns), None)


def _faults(columns: dict[str, pa.Array]) -> Iterator[Fault]:
    """Later checks rely on the earlier ones having found nothing."""
    for name in (*SENTENCE_FIELDS, *WORD_FIELDS, *MENTION_FIELDS, *SPAN_FIELDS):
        yield from _at(pc.is_null(columns[name]), f'"{name}" is missing; give it a value.')
    lengths = pc.utf8_length(columns["text"]).to_numpy()
    said = f"the text is longer than {LONGEST_TEXT:,} characters; cut it."
    yield from _at(lengths > LONGEST_TEXT, said)
    yield from _at(columns["paragraph"].to_numpy() < 0, "the paragraph is negative; count from 0.")
    yield from _unequal(columns)
    yield from _missing(columns)
    words = _lengths(columns["form"])
    yield from _outside_text(columns, words, lengths)
    yield from _heads(columns, words)
    yield from _mentions(columns, words)


def _unequal(columns: dict[str, pa.Array]) -> Iterator[Fault]:
    for names in (WORD_FIELDS, MENTION_FIELDS, SPAN_FIELDS):
        first = _lengths(columns[names[0]])
        for name in names[1:]:
            said = f'"{name}" and "{names[0]}" have different lengths; make them equal.'
            yield from _at(_lengths(columns[name]) != first, said)


def _missing(columns: dict[str, pa.Array]) -> Iterator[Fault]:
    for name in _NEEDED:
        flat = columns[name].flatten()
        if flat.null_count:
            rows = _rows(_lengths(columns[name]))
            said = f'"{name}" has no value for a word or mention; give every one.'
            yield from _at(pc.is_null(flat), said, rows)


def _outside_text(
    columns: dict[str, pa.Array], words: np.ndarray, lengths: np.ndarray
) -> Iterator[Fault]:
    start, end = (_numbers(columns[name]) for name in ("start", "end"))
    rows = _rows(words)
    outside = (start < 0) | (end < start) | (end > lengths[rows])
    yield from _at(outside, "a word does not lie in the text; correct its start and end.", rows)


def _heads(columns: dict[str, pa.Array], words: np.ndarray) -> Iterator[Fault]:
    flat = columns["head"].flatten()
    if flat.null_count == len(flat):
        return
    heads, rows = flat.fill_null(ROOT).to_numpy(), _rows(words)
    said = f"a head is not in the sentence; give word indices from 0, or {ROOT} for the root."
    yield from _at((heads < ROOT) | (heads >= words[rows]), said, rows)
    said = "the heads of a word lead back to it; correct them."
    yield from _at(_in_cycle(heads, words, rows), said, rows)


def _in_cycle(heads: np.ndarray, words: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Words that do not reach a root: every round follows twice as many arcs as the last."""
    top = len(heads)
    starts = np.cumsum(words) - words
    above = np.append(np.where(heads == ROOT, top, starts[rows] + heads), top)
    for _ in range(ceil(log2(max(2, words.max(initial=0)))) + 1):
        above = above[above]
    return above[:-1] != top


def _mentions(columns: dict[str, pa.Array], words: np.ndarray) -> Iterator[Fault]:
    parts, rows = _numbers(columns["parts"]), _rows(_lengths(columns["parts"]))
    yield from _at(parts < 1, "a mention has no words; remove it.", rows)
    owned = np.bincount(rows, weights=parts, minlength=len(words)).astype(np.int64)
    said = 'the "parts" of the mentions are not as many as the spans; correct them.'
    yield from _at(owned != _lengths(columns["span_start"]), said)
    start, end = (_numbers(columns[name]) for name in SPAN_FIELDS)
    rows = _rows(_lengths(columns["span_start"]))
    outside = (start < 0) | (end <= start) | (end > words[rows])
    yield from _at(outside, "a mention does not lie in the sentence; correct its spans.", rows)


def _at(
    wrong: pa.Array | np.ndarray, problem: str, rows: np.ndarray | None = None
) -> Iterator[Fault]:
    flags = wrong if isinstance(wrong, np.ndarray) else wrong.to_numpy(zero_copy_only=False)
    if flags.any():
        place = int(flags.argmax())
        yield Fault(place if rows is None else int(rows[place]), problem)


def _lengths(lists: pa.Array) -> np.ndarray:
    return pc.list_value_length(lists).to_numpy(zero_copy_only=False)


def _numbers(lists: pa.Array) -> np.ndarray:
    return lists.flatten().to_numpy(zero_copy_only=False)


def _rows(lengths: np.ndarray) -> np.ndarray:
    """The row of every item, of lists with these lengths."""
    return np.repeat(np.arange(len(lengths)), lengths)


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
    how = {"compression": "zstd", "write_statistics": False, "write_page_checksum": True}
    with _replacing(path) as temporary, pq.ParquetWriter(temporary, SCHEMA, **how) as writer:
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
