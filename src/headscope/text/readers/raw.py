"""Raw text in files and on standard input: lines, JSON objects, or the rows of a table."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO, cast

import pyarrow as pa

from headscope.errors import CorpusError
from headscope.text.boundaries import cut_sentences
from headscope.text.readers import suffix_of
from headscope.text.readers.columns import TABLES, Row, is_corpus, read_column, rows_of
from headscope.text.readers.jsonl import RecordError, parse_record
from headscope.text.readers.lines import (
    Layout,
    cannot_read,
    decompressed,
    ending_of,
    lines_of,
    mistake,
    open_bytes,
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
