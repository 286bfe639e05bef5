"""Files as bytes and as lines: gzip and zstandard undone, mistakes named by file and place."""

import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryFile
from typing import Any, BinaryIO, Literal, cast

import pyarrow as pa

from headscope.errors import CorpusError
from headscope.files import is_local
from headscope.text.readers import COMPRESSED
from headscope.text.sentence import Sentence
from headscope.wording import shorten

_BROKEN = (EOFError, zlib.error, gzip.BadGzipFile)
_MAGIC = {b"\x1f\x8b": ".gz", b"\x28\xb5\x2f\xfd": ".zst"}
_SAID = 200  # characters of what a decoder says
Layout = Literal["sentences", "running", "paragraphs", "documents"]

LONGEST_LINE = 64 * 2**20  # bytes
_DIGITS = 9
_SHOWN = 80  # characters of a value that is wrong
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


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


def read_lines(path: Path) -> Iterator[str]:
    """The lines of a UTF-8 file, compressed or not, without their ends."""
    with open_bytes(path) as file:
        yield from lines_of(file, path)


def lines_of(file: BinaryIO, name: Path | str) -> Iterator[str]:
    """The lines of an open file without their ends; only \\n and \\r\\n end a line."""
    offset = 0
    for number in count(1):
        raw = file.readline(LONGEST_LINE + 1)
        if not raw:
            return
        if len(raw) > LONGEST_LINE:
            raise mistake(name, number, f"a line of more than {LONGEST_LINE:,} bytes; cut it.")
        skipped = len(_BYTE_ORDER_MARK) if offset == 0 and raw.startswith(_BYTE_ORDER_MARK) else 0
        try:
            yield raw[skipped:].decode().rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise CorpusError(
                f"{name} is not UTF-8 at byte offset {offset + skipped + error.start}; convert it, "
                "for example with `iconv -f LATIN1 -t UTF-8`."
            ) from error
        offset += len(raw)


def mistake(path: Path | str, line: int, problem: str) -> CorpusError:
    """The error for one line of a file."""
    return CorpusError(f"{path}:{line}: {problem}")


def whole_number(digits: str) -> int | None:
    """A number in decimal digits; None for anything else, and for more digits than any count has.

    Python itself refuses to read thousands of digits.
    """
    return int(digits) if digits.isdecimal() and len(digits) <= _DIGITS else None


def quoted(value: object) -> str:
    """A value for a message, cut where it is long."""
    return shorten(repr(value), _SHOWN)


def document_numbers() -> Iterator[str]:
    """ "1", "2", … shared by all files of a corpus, so that two documents never share a name."""
    return map(str, count(1))


def read_plain(
    path: Path, documents: Iterator[str], *, layout: Layout = "sentences"
) -> Iterator[Sentence]:
    """Each line as a sentence without words; in layout "paragraphs" each counts as a paragraph."""
    document, line_in_document = "", 0
    for line in read_lines(path):
        text = line.strip()
        if not text:
            line_in_document = 0
            continue
        if line_in_document == 0:
            document = next(documents)
        paragraph = line_in_document if layout == "paragraphs" else 0
        line_in_document += 1
        yield Sentence(text, document=document, paragraph=paragraph, id=str(line_in_document))
