"""What a person can name as a corpus: files, directories, standard input, a dataset of the hub.

And which reader takes a file, and how it is to read.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.resources import as_file, files
from pathlib import Path

from headscope.errors import CorpusError
from headscope.files import find_place
from headscope.text.corpus import read_stored
from headscope.text.readers import SUFFIXES, format_of, suffix_of
from headscope.text.readers.columns import (
    HubDataset,
    Row,
    find_dataset,
    is_corpus,
    is_saved,
    saved_files,
)
from headscope.text.readers.conll2012 import read_conll2012
from headscope.text.readers.conllu import Fused, read_conllu
from headscope.text.readers.jsonl import read_jsonl
from headscope.text.readers.lines import Layout, document_numbers, read_plain
from headscope.text.readers.raw import (
    INPUT_NAME,
    TEXT,
    is_raw,
    read_rows,
    read_standard_input,
    to_sentences,
)
from headscope.text.sentence import Sentence

Named = str | Path | Iterable[str | Path]
DEMO = "demo"
STANDARD_INPUT = "-"


@dataclass(frozen=True)
class Sources:
    """Files in the order in which they are read, or something else that is read once."""

    name: str  # as it was given
    asked: tuple[Path, ...] = ()
    files: tuple[Path, ...] = ()
    dataset: HubDataset | None = None

    @property
    def said(self) -> str:
        """What messages call it."""
        return INPUT_NAME if self.name == STANDARD_INPUT else self.name

    def stream(self, column: str) -> Iterator[Row]:
        """The raw documents of what is no file."""
        if self.dataset is not None:
            return self.dataset.read(column)
        return read_standard_input(column)


def find_sources(given: Named) -> Sources:
    """Look for what was named; nothing is opened yet."""
    if given == STANDARD_INPUT:
        return Sources(STANDARD_INPUT)
    named = [given] if isinstance(given, str | Path) else list(given)
    if not named:
        raise CorpusError("No corpus file was given; name at least one.")
    dataset = _as_dataset(named)
    if dataset is not None:
        return Sources(str(named[0]), dataset=dataset)
    asked = tuple(_place(each) for each in named)
    found = tuple(file for place in asked for file in _expand(place))
    for file in found:
        format_of(file)  # refuses an ending that no reader knows
    more = f" and {len(named) - 1} more" if len(named) > 1 else ""
    return Sources(f"{named[0]}{more}", asked, found)


def demo_sentences() -> Iterator[Sentence]:
    """The corpus that comes with Headscope."""
    with as_file(files("headscope.text") / "bundled" / "demo.conllu") as path:
        try:
            found = False
            for sentence in read_conllu(path, document_numbers()):
                found = True
                yield sentence
            if not found:
                raise CorpusError("it is empty")
        except CorpusError as error:
            raise CorpusError(
                f"The bundled corpus is missing or damaged ({error}); repair the installation with "
                "`pip install --force-reinstall headscope`."
            ) from error


def _as_dataset(named: Sequence[str | Path]) -> HubDataset | None:
    """A dataset of the hub, if that is what a single name can only mean."""
    if len(named) != 1 or not isinstance(named[0], str):
        return None
    path = Path(named[0])
    if path.exists() or suffix_of(path) in SUFFIXES:
        return None
    return find_dataset(named[0])


def _place(path: str | Path) -> Path:
    if isinstance(path, str) and not path.strip():
        raise CorpusError('The path of the corpus is empty; give a file, a directory or "demo".')
    return find_place(path)


def _expand(path: Path) -> list[Path]:
    if not path.exists():
        raise CorpusError(f"There is no file or directory {path}; check the path.")
    if not path.is_dir():
        return [path]
    if is_saved(path):
        return saved_files(path)
    found = sorted(file for file in path.rglob("*") if suffix_of(file) in SUFFIXES)
    if not found:
        raise CorpusError(
            f"No file in {path} ends in {', '.join(SUFFIXES)}; give another directory."
        )
    return found


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
