"""Open any corpus: the ending of the file says how it is read."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from typing import Protocol, get_args

from headscope.errors import CorpusError
from headscope.files import find_place
from headscope.text.corpus import Corpus
from headscope.text.readers.conll2012 import read_conll2012
from headscope.text.readers.conllu import Fused, read_conllu
from headscope.text.readers.jsonl import read_jsonl
from headscope.text.readers.lines import Layout, document_numbers, read_plain
from headscope.text.sentence import Sentence
from headscope.text.storage import FORMAT

ENDINGS = (".parquet", ".conllu", ".conll", ".gold_conll", ".v4_gold_conll", ".txt", ".jsonl")


class Reader(Protocol):
    """Streams the sentences of one file; `documents` names the documents that have no name."""

    def __call__(self, path: Path, documents: Iterator[str]) -> Iterator[Sentence]:
        """Read."""
        ...


def read_corpus(
    path: str | Path | Sequence[str | Path],
    *,
    layout: Layout = "sentences",
    fused: Fused = "keep",
) -> Corpus:
    """Open a corpus file, several, or all in a directory; "demo" is the bundled corpus.

    A .parquet is opened as it is. Any other file is converted once into the cache (see
    docs/corpora.md). layout is for .txt, whose lines are "sentences" or "paragraphs"; fused for
    .conllu, whose words written as one ("du" = de + le) are "keep"-t apart or "merge"-d.
    """
    _check_choice("layout", layout, get_args(Layout))
    _check_choice("fused", fused, get_args(Fused))
    if path == "demo":
        from headscope.text.demo import demo_corpus

        return demo_corpus()
    files = _files([path] if isinstance(path, str | Path) else path)
    if files[0].suffix == ".parquet" and len(files) == 1:
        return Corpus.open(files[0])
    readers = [_reader(file, layout, fused) for file in files]
    return cached(files, f"{layout} {fused}", partial(_read_all, files, readers))


def _read_all(files: Sequence[Path], readers: Sequence[Reader]) -> Iterator[Sentence]:
    documents = document_numbers()
    sentences = chain.from_iterable(
        reader(file, documents) for file, reader in zip(files, readers, strict=True)
    )
    first = next(sentences, None)
    if first is None:
        raise CorpusError(f"There is no sentence in {_name(files)}; give a file that has some.")
    yield first
    yield from sentences


def _reader(file: Path, layout: Layout, fused: Fused) -> Reader:
    match file.suffix:
        case ".conllu":
            return partial(read_conllu, fused=fused)
        case ".conll" | ".gold_conll" | ".v4_gold_conll":
            return read_conll2012
        case ".txt":
            return partial(read_plain, layout=layout)
        case ".jsonl":
            return read_jsonl
        case ".parquet":
            raise CorpusError(f"{file} is one of several files; open a .parquet corpus alone.")
    raise CorpusError(
        f"{file} has the ending {file.suffix!r}, which no reader knows; use {', '.join(ENDINGS)}."
    )


def _files(paths: Sequence[str | Path]) -> list[Path]:
    if not paths:
        raise CorpusError("No corpus file was given; name at least one.")
    return [file for path in paths for file in _expand(find_place(path))]


def _expand(path: Path) -> list[Path]:
    """The path itself, or the corpus files of a directory in order of their names."""
    if not path.exists():
        raise CorpusError(f"There is no file or directory {path}; check the path.")
    if not path.is_dir():
        return [path]
    found = sorted(file for file in path.rglob("*") if file.suffix in ENDINGS)
    if not found:
        raise CorpusError(
            f"No file in {path} ends in {', '.join(ENDINGS)}; give another directory."
        )
    return found


def _name(files: Sequence[Path]) -> str:
    return str(files[0]) if len(files) == 1 else f"these {len(files)} files ({files[0]}, …)"


def _check_choice(name: str, value: str, choices: Sequence[str]) -> None:
    if value not in choices:
        raise CorpusError(f"{name}={value!r} is unknown; choose {' or '.join(map(repr, choices))}.")


READERS = 1  # raise when a reader gives other sentences for the same file
_BLOCK = 1 << 20


def cache_directory() -> Path:
    """$HEADSCOPE_CACHE, or headscope/ in the user's cache directory ($XDG_CACHE_HOME)."""
    chosen = os.environ.get("HEADSCOPE_CACHE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "headscope"


def cached(paths: Sequence[Path], options: str, read: Callable[[], Iterable[Sentence]]) -> Corpus:
    """The corpus that `read` gives for these files, from the cache if it is there and sound."""
    place = cache_directory() / "corpora" / f"{_key(paths, options)}.parquet"
    if place.exists():
        try:
            return Corpus.open(place)
        except CorpusError:
            pass  # damaged: written again below, from the files themselves
    _make_writable(place.parent)
    return Corpus.write(place, read())


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
    content = blake2b(path.suffix.encode(), digest_size=16)
    try:
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                content.update(block)
    except OSError as error:
        raise CorpusError(f"Cannot read {path} ({error.strerror}); check the path.") from error
    return content.digest()
