"""The formats of a corpus: the one list from which reading, `--help` and messages derive.

Nothing heavy is imported here; `headscope.text.read` says which reader takes which.
"""

from dataclasses import dataclass
from pathlib import Path

from headscope.errors import CorpusError

COMPRESSED = (".gz", ".zst")  # of lines of text
TABLES = (".parquet", ".arrow", ".feather")  # which are compressed inside


@dataclass(frozen=True)
class Format:
    """A kind of corpus file."""

    name: str
    suffixes: tuple[str, ...]
    holds: str


FORMATS = (
    Format(
        "Parquet",
        (".parquet",),
        "made by `headscope annotate` or `Corpus.write`, or with a column of text",
    ),
    Format("Arrow", (".arrow", ".feather"), "a column of text"),
    Format("CoNLL-U", (".conllu",), "words, tags, features, trees, coreference"),
    Format("CoNLL-2012", (".conll", ".gold_conll", ".v4_gold_conll"), "words, tags, coreference"),
    Format("JSONL", (".jsonl",), "an object per line: text or words, and any annotation"),
    Format("text", (".txt",), "a sentence per line, without words"),
)
SUFFIXES = tuple(suffix for kind in FORMATS for suffix in kind.suffixes)


def suffix_of(path: Path) -> str:
    """The ending that names the format: ".txt" of a.txt and of a.txt.gz."""
    inner = Path(path.stem).suffix
    return inner if path.suffix in COMPRESSED and inner not in TABLES else path.suffix


def format_of(path: Path) -> Format:
    """The format that the ending of a file names."""
    ending = suffix_of(path)
    for kind in FORMATS:
        if ending in kind.suffixes:
            return kind
    unknown = f"the ending {path.suffix!r}, which" if path.suffix else "no ending, so"
    raise CorpusError(
        f"{path} has {unknown} no reader knows; use {', '.join(SUFFIXES)}, text also with "
        f"{' or '.join(COMPRESSED)}."
    )


def list_formats() -> str:
    """Every format with its endings, for `--help`."""
    return "; ".join(f"{', '.join(kind.suffixes)} ({kind.holds})" for kind in FORMATS)
