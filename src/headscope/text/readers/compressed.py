"""Files as bytes, with gzip and zstandard undone on the way."""

import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryFile
from typing import Any, BinaryIO, cast

import pyarrow as pa

from headscope.errors import CorpusError
from headscope.files import is_local
from headscope.text.readers import COMPRESSED
from headscope.wording import shorten

_BROKEN = (EOFError, zlib.error, gzip.BadGzipFile)
_MAGIC = {b"\x1f\x8b": ".gz", b"\x28\xb5\x2f\xfd": ".zst"}
_SAID = 200  # characters of what a decoder says


@contextmanager
def open_bytes(path: Path) -> Iterator[BinaryIO]:
    """The content of a file, decompressed as it is read; whatever goes wrong names the file."""
    try:
        with path.open("rb") as file, decompressed(file, path.suffix) as content:
            yield content
    except (OSError, *_BROKEN) as error:
        raise cannot_read(path, error) from error


def decompressed(file: BinaryIO, ending: str) -> BinaryIO:
    """What a .gz or .zst holds; any other file as it is."""
    if ending == ".gz":
        return cast(BinaryIO, gzip.GzipFile(fileobj=file))
    if ending == ".zst":
        stream: Any = pa.CompressedInputStream(file, "zstd")
        return io.BufferedReader(stream)
    return file


def ending_of(start: bytes) -> str:
    """The compression that the first bytes of a file show: ".gz", ".zst" or none."""
    return next((ending for magic, ending in _MAGIC.items() if start.startswith(magic)), "")


@contextmanager
def open_seekable(path: Path) -> Iterator[Any]:
    """A file that can be read in any order, as Arrow needs it.

    A compressed one is unpacked into a temporary file first; a local one is mapped into memory.
    """
    if path.suffix in COMPRESSED:
        with open_bytes(path) as packed, spooled(packed) as file:
            yield file
    elif is_local(path):
        with pa.memory_map(str(path)) as file:
            yield file
    else:
        with path.open("rb") as file:
            yield file


@contextmanager
def spooled(content: BinaryIO) -> Iterator[BinaryIO]:
    """A copy on disk of what can only be read once, removed in the end."""
    with TemporaryFile(prefix="headscope-") as file:
        copyfileobj(content, file)
        file.seek(0)
        yield file


def cannot_read(name: Path | str, error: Exception) -> CorpusError:
    """The error for a file that is missing, cut short or not what its ending says."""
    if isinstance(error, _BROKEN) or not getattr(error, "strerror", None):
        said = shorten(str(error), _SAID).removesuffix(".")
        return CorpusError(f"{name} is cut short or damaged ({said}); copy or download it again.")
    return CorpusError(f"Cannot read {name} ({cast(OSError, error).strerror}); check the path.")
