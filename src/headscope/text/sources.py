"""What a person can name as a corpus: files, directories, standard input, a dataset of the hub.

From there text comes as sentences, by the reader that takes the file, or as raw documents that are
not yet cut into sentences.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import TypeVar

from headscope.errors import CorpusError
from headscope.files import find_place
from headscope.text.corpus import read_stored
from headscope.text.readers import SUFFIXES, format_of, suffix_of
from headscope.text.readers.conll import Fused, read_conll2012, read_conllu
from headscope.text.readers.jsonl import read_jsonl
from headscope.text.readers.lines import Layout, document_numbers
from headscope.text.readers.raw import (
    HUB_NAME,
    INPUT_NAME,
    TABLES,
    TEXT,
    Document,
    cut_documents,
    is_corpus,
    is_raw,
    numbered,
    read_hub,
    read_plain,
    read_raw,
    read_standard_input,
    saved_files,
)
from headscope.text.segments import joined
from headscope.text.sentence import Sentence

Named = str | Path | Iterable[str | Path]
DEMO = "demo"
STANDARD_INPUT = "-"
Item = TypeVar("Item")


def names_of(named: Named) -> list[str | Path]:
    """One name or several as a list of names."""
    names = [named] if isinstance(named, str | Path) else list(named)
    if not names:
        raise CorpusError("No corpus file was given; name at least one.")
    return names


def find_files(named: Sequence[str | Path]) -> list[Path]:
    """The files that were named, those of a directory in the order of their names."""
    paths: list[Path] = []
    for name in named:
        if isinstance(name, str) and not name.strip():
            raise CorpusError(
                'The path of the corpus is empty; give a file, a directory or "demo".'
            )
        paths += _files_at(find_place(name))
    for path in paths:
        format_of(path)  # refuses an ending that no reader knows
    return paths


def _files_at(path: Path) -> list[Path]:
    if not path.exists():
        raise CorpusError(f"There is no file or directory {path}; check the path.")
    if not path.is_dir():
        return [path]
    readable = (file for file in path.rglob("*") if suffix_of(file) in SUFFIXES)
    paths = saved_files(path) or sorted(readable)
    if not paths:
        raise CorpusError(
            f"No file in {path} ends in {', '.join(SUFFIXES)}; give another directory."
        )
    return paths


def open_stream(named: Sequence[str | Path], column: str) -> Iterator[Document] | None:
    """The documents of standard input or of a dataset of the hub, which are read only once.

    None if what was named can only be files.
    """
    if list(named) == [STANDARD_INPUT]:
        return numbered(read_standard_input(column), document_numbers(), INPUT_NAME)
    name = named[0]
    if len(named) > 1 or not isinstance(name, str) or not HUB_NAME.fullmatch(name):
        return None
    is_file = suffix_of(Path(name)) in SUFFIXES or Path(name).exists()
    return None if is_file else numbered(read_hub(name, column), document_numbers(), name)


def title_of(named: Sequence[str | Path]) -> str:
    """What messages call that which was named."""
    if list(named) == [STANDARD_INPUT]:
        return INPUT_NAME
    more = f" and {len(named) - 1} more" if len(named) > 1 else ""
    return f"{named[0]}{more}"


def read_sentences(
    files: Iterable[Path],
    names: Iterator[str],
    *,
    layout: Layout | None = None,
    fused: Fused = "merge",
    column: str = TEXT,
    counts: Counter[str] | None = None,
) -> Iterator[Sentence]:
    """Stream the sentences of files; `names` are for the documents that have none.

    What `counts` holds in the end is stored with the corpus.
    """
    in_lines = layout in (None, "sentences")
    for path in files:
        match format_of(path).name:
            case "CoNLL-U":
                yield from read_conllu(path, names, fused=fused, counts=counts)
            case "CoNLL-2012":
                yield from read_conll2012(path, names)
            case "Parquet" if is_corpus(path):
                yield from read_stored(path)
            case "JSONL" if (in_lines and column == TEXT) or not is_raw(path):
                yield from read_jsonl(path, names)
            case "text" if in_lines or layout == "paragraphs":
                yield from read_plain(path, names, layout=layout or "sentences")
            case kind:
                usual = "sentences" if kind == "JSONL" else "running"
                documents = numbered(read_raw(path, column), names, path)
                yield from cut_documents(documents, layout or usual)


def demo_file() -> Path:
    """The corpus that comes with Headscope."""
    return Path(str(files("headscope.text") / "bundled" / "demo.conllu"))


def require_one(items: Iterable[Item], nothing: str) -> Iterator[Item]:
    """The items, of which there must be one; `nothing` says what is wrong otherwise."""
    is_empty = True
    for item in items:
        is_empty = False
        yield item
    if is_empty:
        raise CorpusError(nothing)


@dataclass(frozen=True)
class Documents(Iterable[Document]):
    """The documents of files, which are read each time that they are gone through."""

    files: tuple[Path, ...]
    column: str
    title: str  # what messages call them

    def __iter__(self) -> Iterator[Document]:
        has_columns = any(suffix_of(file) in TABLES for file in self.files)
        where = f"the column {self.column!r} of {self.title}" if has_columns else self.title
        return require_one(self._read(), _no_text(where))

    def _read(self) -> Iterator[Document]:
        names, numbers = document_numbers(), document_numbers()
        for path in self.files:
            if is_raw(path):
                documents = read_raw(path, self.column)
            else:
                documents = _joined(read_sentences([path], names))
            yield from numbered(documents, numbers, path)


def _joined(sentences: Iterable[Sentence]) -> Iterator[Document]:
    for name, run in groupby(sentences, key=attrgetter("document")):
        yield Document(joined(run), name)


def read_documents(source: Named, column: str = TEXT) -> Iterable[Document]:
    """The documents of a source, read one after another; memory does not grow with their number.

    `source` is a file, several, or a directory: .txt (blank lines between documents), .jsonl,
    Parquet, Arrow or Feather with a column of text, a dataset saved to disk, an annotated corpus
    (the texts of its documents), each also as .gz or .zst. Or the name of a dataset on the hub
    (NAME:CONFIGURATION:SPLIT), "-" for standard input, "demo" for the bundled corpus. `column` is
    the column of a table, or the key of a .jsonl.

    Each has a `text` and a `name`; one without a name is called by its number, counted from 1 over
    everything that is read. Files can be gone through again, the others only once.
    """
    if not column:
        raise CorpusError("The name of the column is empty; name the one that holds the text.")
    named = names_of(source)
    if named == [DEMO]:
        return Documents((demo_file(),), column, DEMO)
    stream = open_stream(named, column)
    if stream is not None:
        in_column = "" if named == [STANDARD_INPUT] else f"the column {column!r} of "
        return require_one(stream, _no_text(f"{in_column}{title_of(named)}"))
    return Documents(tuple(find_files(named)), column, title_of(named))


def _no_text(where: str) -> str:
    return f"There is no text in {where}; give one that has some."
