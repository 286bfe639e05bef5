"""What a person can name as a corpus: files, directories, standard input, a dataset of the hub."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path

from headscope.errors import CorpusError
from headscope.files import find_place
from headscope.text.readers import SUFFIXES, format_of, suffix_of
from headscope.text.readers.columns import Row
from headscope.text.readers.conllu import read_conllu
from headscope.text.readers.datasets import HubDataset, find_dataset, is_saved, saved_files
from headscope.text.readers.lines import document_numbers
from headscope.text.readers.raw import INPUT_NAME, read_standard_input
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
