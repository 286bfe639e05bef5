"""Which reader takes a file, and how it is to read."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from headscope.text.corpus import read_stored
from headscope.text.readers import format_of
from headscope.text.readers.columns import is_corpus
from headscope.text.readers.conll2012 import read_conll2012
from headscope.text.readers.conllu import Fused, read_conllu
from headscope.text.readers.jsonl import read_jsonl
from headscope.text.readers.lines import Layout, read_plain
from headscope.text.readers.raw import TEXT, is_raw, read_rows, to_sentences
from headscope.text.sentence import Sentence


@dataclass(frozen=True)
class Reading:
    """How files are read, and what was counted on the way."""

    layout: Layout | None = None  # as it is usual for the kind of file
    fused: Fused = "merge"
    column: str = TEXT
    counts: Counter[str] = field(default_factory=Counter)


def read_sentences(path: Path, names: Iterator[str], how: Reading) -> Iterator[Sentence]:
    """Stream the sentences of one file; `names` are for the documents that have none."""
    match format_of(path).name:
        case "Parquet" | "Arrow":
            return _read_table(path, names, how)
        case "CoNLL-U":
            return read_conllu(path, names, fused=how.fused, counts=how.counts)
        case "CoNLL-2012":
            return read_conll2012(path, names)
        case "JSONL":
            return _read_objects(path, names, how)
        case _:
            return _read_text(path, names, how)


def _read_table(path: Path, names: Iterator[str], how: Reading) -> Iterator[Sentence]:
    if is_corpus(path):
        return read_stored(path)
    return to_sentences(read_rows(path, how.column), names, how.layout or "running")


def _read_objects(path: Path, names: Iterator[str], how: Reading) -> Iterator[Sentence]:
    is_usual = how.layout in (None, "sentences") and how.column == TEXT
    if is_usual or not is_raw(path):
        return read_jsonl(path, names)
    return to_sentences(read_rows(path, how.column), names, how.layout or "sentences")


def _read_text(path: Path, names: Iterator[str], how: Reading) -> Iterator[Sentence]:
    if how.layout in ("running", "documents"):
        return to_sentences(read_rows(path), names, how.layout)
    return read_plain(path, names, layout=how.layout or "sentences")
