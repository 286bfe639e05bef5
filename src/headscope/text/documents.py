"""Raw documents, not yet cut into sentences: what `annotate` reads."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from headscope.text.readers.jsonl import RecordError, parse_record
from headscope.text.readers.lines import mistake, read_lines


@dataclass(frozen=True)
class RawDocument:
    """A text of one or more paragraphs, one per line; a document without a name is numbered."""

    text: str
    name: str = ""


class Paragraph(NamedTuple):
    """One line of a document."""

    text: str
    document: str
    number: int


@dataclass(frozen=True)
class DocumentFiles:
    """The documents of .txt files (blank lines between them) and of .jsonl files, in order."""

    paths: Sequence[Path]

    def __iter__(self) -> Iterator[RawDocument]:
        for path in self.paths:
            yield from _plain(path) if path.suffix == ".txt" else _jsonl(path)


def paragraphs(documents: Iterable[str | RawDocument]) -> Iterator[Paragraph]:
    """The paragraphs of documents, those that hold nothing but space left out."""
    for position, document in enumerate(documents, start=1):
        raw = RawDocument(document) if isinstance(document, str) else document
        lines = (line.strip() for line in raw.text.splitlines())
        for number, line in enumerate(filter(None, lines)):
            yield Paragraph(line, raw.name or str(position), number)


def is_raw(path: Path) -> bool:
    """Whether a file holds documents to be split: .txt, or .jsonl without words."""
    if path.suffix != ".jsonl":
        return path.suffix == ".txt"
    first = next((line for line in read_lines(path) if line.strip()), "")
    try:
        return "words" not in parse_record(first)
    except RecordError:
        return True  # said with its line when the file is read


def _plain(path: Path) -> Iterator[RawDocument]:
    for is_text, lines in groupby(read_lines(path), key=lambda line: bool(line.strip())):
        if is_text:
            yield RawDocument("\n".join(lines))


def _jsonl(path: Path) -> Iterator[RawDocument]:
    for number, line in enumerate(read_lines(path), start=1):
        if line.strip():
            try:
                yield _record_document(parse_record(line))
            except RecordError as error:
                raise mistake(path, number, str(error)) from error


def _record_document(record: dict[str, Any]) -> RawDocument:
    text, name = record.get("text"), record.get("document", "")
    if not isinstance(text, str) or not isinstance(name, str):
        raise RecordError('"text" and "document" are not strings; correct them.')
    return RawDocument(text, name)
