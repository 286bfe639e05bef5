"""Corpus files converted once: a directory of .parquet files named by what they were made from."""

import os
from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from pathlib import Path

from headscope.errors import CorpusError
from headscope.text.corpus import Corpus
from headscope.text.sentence import Sentence
from headscope.text.storage import FORMAT

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
