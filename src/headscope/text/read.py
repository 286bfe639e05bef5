"""Open any corpus: the ending of the file says how it is read.

Everything but Parquet is converted once, into a directory of .parquet files named by what they were
made from.

The bundled corpus: short articles with tags, trees and coreference.
"""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from hashlib import blake2b
from importlib.resources import as_file, files
from pathlib import Path
from typing import get_args

from headscope.errors import CorpusError
from headscope.files import find_place, is_local, write_text
from headscope.seal import checksum
from headscope.text.corpus import Corpus, Source
from headscope.text.readers import SUFFIXES, Format, Reading, find_format
from headscope.text.readers.compressed import COMPRESSED, suffix_of
from headscope.text.readers.conllu import Fused, read_conllu
from headscope.text.readers.datasets import is_saved, saved_files
from headscope.text.readers.lines import Layout, document_numbers
from headscope.text.sentence import Sentence
from headscope.text.storage import FORMAT
from headscope.wording import counted

READERS = 2  # raise when a reader gives other sentences for the same file
_BLOCK = 1 << 20


def demo_corpus() -> Corpus:
    """The corpus that comes with Headscope; small enough to be held in memory without a cache."""
    with as_file(files("headscope.text") / "bundled" / "demo.conllu") as path:
        try:
            corpus = Corpus.from_sentences(read_conllu(path, document_numbers()))
        except CorpusError as error:
            raise CorpusError(
                f"The bundled corpus is missing or damaged ({error}); repair the installation with "
                "`pip install --force-reinstall headscope`."
            ) from error
    return replace(corpus, source=Source("demo", "demo", "CoNLL-U"))


def read_corpus(
    path: str | Path | Sequence[str | Path],
    *,
    layout: Layout = "sentences",
    fused: Fused = "merge",
) -> Corpus:
    """Open a corpus file, several, or all in a directory; "demo" is the bundled corpus.

    A .parquet is opened as it is. Any other file is converted once into the cache (see
    docs/corpora.md). layout is for .txt, whose lines are "sentences" or "paragraphs"; fused for
    .conllu, whose words written as one ("du" = de + le) are taken as one ("merge") or kept apart
    with one span ("keep").
    """
    _check_choice("layout", layout, get_args(Layout))
    _check_choice("fused", fused, get_args(Fused))
    if path == "demo":
        return demo_corpus()
    asked = [place_of(each) for each in ([path] if isinstance(path, str | Path) else path)]
    files = find_files(asked)
    formats = [_format(file) for file in files]
    if len(files) == 1 and formats[0].read is None:
        return Corpus.open(files[0])
    corpus, remade = _convert(files, formats, Reading(layout, fused))
    return replace(corpus, source=replace(_source(asked, files, formats), remade=remade))


def find_files(places: Sequence[Path], known: Sequence[str] = SUFFIXES) -> list[Path]:
    """The corpus files among these files and in these directories, in order of their names."""
    if not places:
        raise CorpusError("No corpus file was given; name at least one.")
    return [file for place in places for file in _expand(place, known)]


def cache_directory() -> Path:
    """$HEADSCOPE_CACHE, or headscope/ in the user's cache directory ($XDG_CACHE_HOME)."""
    chosen = os.environ.get("HEADSCOPE_CACHE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "headscope"


def place_of(path: str | Path) -> Path:
    """The path or URL of a corpus; an empty one is refused."""
    if isinstance(path, str) and not path.strip():
        raise CorpusError('The path of the corpus is empty; give a file, a directory or "demo".')
    return find_place(path)


def _expand(path: Path, known: Sequence[str]) -> list[Path]:
    if not path.exists():
        raise CorpusError(f"There is no file or directory {path}; check the path.")
    if not path.is_dir():
        return [path]
    if is_saved(path):
        return saved_files(path)
    found = sorted(file for file in path.rglob("*") if suffix_of(file) in known and file.is_file())
    if not found:
        raise CorpusError(f"No file in {path} ends in {', '.join(known)}; give another directory.")
    return found


def _format(file: Path) -> Format:
    found = find_format(file)
    if found is None:
        ending = f"the ending {file.suffix!r}, which" if file.suffix else "no ending, so"
        raise CorpusError(f"{file} has {ending} no reader knows; use {', '.join(SUFFIXES)}.")
    return found


def _source(asked: Sequence[Path], files: Sequence[Path], formats: Sequence[Format]) -> Source:
    place = asked[0]
    path = str(place.absolute()) if is_local(place) else str(place)
    name = Path(path).name if len(asked) == 1 else f"{Path(path).name} and {len(asked) - 1} more"
    if len(files) == 1:
        return Source(name, path, formats[0].name)
    kinds = Counter(each.name for each in formats)
    return Source(
        name, path, ", ".join(f"{count:,} {kind}" for kind, count in kinds.items()), len(files)
    )


def _convert(files: Sequence[Path], formats: Sequence[Format], how: Reading) -> tuple[Corpus, bool]:
    """The corpus of these files, from the cache if it is there and sound; was it damaged?

    The checksum of the whole file lies beside it: Parquet's own cover neither the footer nor the
    headers of pages.
    """
    key = _key(files, f"{how.layout} {how.fused}")
    place = cache_directory() / "corpora" / f"{key}.parquet"
    beside = place.with_suffix(".sha256")
    is_known = place.exists() and beside.exists()
    if is_known:
        try:
            if beside.read_text(encoding="ascii") == checksum(place):
                return Corpus.open(place), False
        except (OSError, ValueError, CorpusError):
            pass  # damaged: written again below, from the files themselves
    _make_writable(place.parent)
    corpus = Corpus.write(place, _read_all(files, formats, how), counts=how.counts)
    write_text(beside, checksum(place))
    return corpus, is_known


def _read_all(files: Sequence[Path], formats: Sequence[Format], how: Reading) -> Iterator[Sentence]:
    names = document_numbers()
    found = False
    for file, kind in zip(files, formats, strict=True):
        if kind.read is None:
            raise CorpusError(f"{file} is one of several files; open a .parquet corpus alone.")
        for sentence in kind.read(file, names, how):
            found = True
            yield sentence
    if not found:
        raise CorpusError(f"There is no sentence in {_name(files)}; give a file that has some.")


def _name(files: Sequence[Path]) -> str:
    if len(files) == 1:
        return str(files[0])
    return f"these {counted(len(files), 'files')} ({files[0]}, …)"


def _check_choice(name: str, value: str, choices: Sequence[str]) -> None:
    if value not in choices:
        raise CorpusError(f"{name}={value!r} is unknown; choose {' or '.join(map(repr, choices))}.")


def _make_writable(directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(directory) from error
    if not os.access(directory, os.W_OK):
        raise _unwritable(directory)


def _unwritable(directory: Path) -> CorpusError:
    return CorpusError(
        f"The corpus cannot be converted into {directory}, which cannot be written to; "
        "set HEADSCOPE_CACHE to a directory that can."
    )


def _key(paths: Sequence[Path], options: str) -> str:
    """A hash of the files' bytes and of everything that decides how they are read."""
    key = blake2b(repr((FORMAT, READERS, options)).encode(), digest_size=16)
    for path in paths:
        key.update(_digest(path))
    return key.hexdigest()


def _digest(path: Path) -> bytes:
    ending = suffix_of(path) + path.suffix if path.suffix in COMPRESSED else path.suffix
    content = blake2b(ending.encode(), digest_size=16)
    try:
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                content.update(block)
    except OSError as error:
        raise CorpusError(f"Cannot read {path} ({error.strerror}); check the path.") from error
    return content.digest()
