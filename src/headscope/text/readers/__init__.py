"""The formats of a corpus: the one list from which reading, `--help` and messages derive."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from headscope.text.readers.compressed import suffix_of
from headscope.text.readers.conll2012 import read_conll2012
from headscope.text.readers.conllu import Fused, read_conllu
from headscope.text.readers.jsonl import read_jsonl
from headscope.text.readers.lines import Layout, read_plain
from headscope.text.sentence import Sentence


@dataclass(frozen=True)
class Reading:
    """How files are read, and what was counted on the way."""

    layout: Layout = "sentences"
    fused: Fused = "merge"
    counts: Counter[str] = field(default_factory=Counter)


# Streams the sentences of one file; the strings name the documents that have no name.
Reader = Callable[[Path, Iterator[str], Reading], Iterator[Sentence]]


@dataclass(frozen=True)
class Format:
    """A kind of corpus file."""

    name: str
    suffixes: tuple[str, ...]
    holds: str
    read: Reader | None = None  # None: opened as it is


FORMATS = (
    Format("Parquet", (".parquet",), "made by `headscope annotate` or `Corpus.write`"),
    Format(
        "CoNLL-U",
        (".conllu",),
        "words, tags, features, trees, coreference",
        lambda path, names, how: read_conllu(path, names, fused=how.fused, counts=how.counts),
    ),
    Format(
        "CoNLL-2012",
        (".conll", ".gold_conll", ".v4_gold_conll"),
        "words, tags, coreference",
        lambda path, names, how: read_conll2012(path, names),
    ),
    Format(
        "JSONL",
        (".jsonl",),
        "an object per line: text or words, and any annotation",
        lambda path, names, how: read_jsonl(path, names),
    ),
    Format(
        "text",
        (".txt",),
        "a sentence per line, without words",
        lambda path, names, how: read_plain(path, names, layout=how.layout),
    ),
)
SUFFIXES = tuple(suffix for kind in FORMATS for suffix in kind.suffixes)


def find_format(path: Path) -> Format | None:
    """The format that the ending of a file names, without .gz or .zst."""
    ending = suffix_of(path)
    return next((kind for kind in FORMATS if ending in kind.suffixes), None)


def list_formats() -> str:
    """Every format with its endings, for `--help`."""
    return "; ".join(f"{', '.join(kind.suffixes)} ({kind.holds})" for kind in FORMATS)
