"""Files as bytes and as lines: gzip and zstandard undone, mistakes named by file and place."""

import gzip
import io
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO, Literal, cast

import pyarrow as pa

from headscope.errors import CorpusError
from headscope.files import is_local
from headscope.text.sentence import Sentence, problem
from headscope.wording import shorten

Layout = Literal["sentences", "running", "paragraphs", "documents"]
LONGEST_LINE = 64 * 2**20  # bytes
_DIGITS = 9
_SAID = 200  # characters of what a decoder says
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_BROKEN = (EOFError, zlib.error, gzip.BadGzipFile)
UNREADABLE = (OSError, ValueError, KeyError, pa.ArrowException, *_BROKEN)  # of damaged bytes


class LineError(Exception):
    """What is wrong in a file, and on which line; the caller adds the name of the file."""

    def __init__(self, problem: str, line: int = 0) -> None:
        super().__init__(problem)
        self.line = line

    def at(self, name: Path | str, line: int = 0) -> CorpusError:
        """The error for the person who has the file."""
        line = line or self.line
        return CorpusError(f"{name}:{line}: {self}" if line else f"{name}: {self}")


def sound(sentence: Sentence, line: int = 0, lines: Sequence[int] = ()) -> Sentence:
    """The sentence if nothing is wrong with it; `lines` are those of its words, if they differ."""
    wrong = problem(sentence)
    if wrong is None:
        return sentence
    if lines and wrong.word is not None:
        line = lines[wrong.word]
    raise LineError(wrong.message, line)


@contextmanager
def open_bytes(path: Path) -> Iterator[BinaryIO]:
    """The content of a file, decompressed as it is read; whatever goes wrong names the file."""
    try:
        with path.open("rb") as file, _decompressed(file, path.suffix) as content:
            yield content
    except (OSError, *_BROKEN) as error:
        raise cannot_read(path, error) from error


def _decompressed(file: BinaryIO, ending: str) -> BinaryIO:
    """What a .gz or .zst holds; any other file as it is."""
    if ending == ".gz":
        return cast(BinaryIO, gzip.GzipFile(fileobj=file))
    if ending == ".zst":
        stream: Any = pa.CompressedInputStream(file, "zstd")
        return io.BufferedReader(stream)
    return file


def open_table(path: Path) -> Any:
    """A file that can be read in any order; a local one is mapped into memory."""
    return pa.memory_map(str(path)) if is_local(path) else path.open("rb")


def cannot_read(name: Path | str, error: Exception) -> CorpusError:
    """The error for a file that is missing, cut short or not what its ending says."""
    if isinstance(error, _BROKEN) or not getattr(error, "strerror", None):
        reason = shorten(str(error), _SAID).removesuffix(".")
        return CorpusError(f"{name} is cut short or damaged ({reason}); copy or download it again.")
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
            raise CorpusError(
                f"{name}:{number}: a line of more than {LONGEST_LINE:,} bytes; cut it."
            )
        skipped = len(BYTE_ORDER_MARK) if offset == 0 and raw.startswith(BYTE_ORDER_MARK) else 0
        try:
            line = raw[skipped:].decode()
        except UnicodeDecodeError as error:
            raise CorpusError(
                f"{name} is not UTF-8 at byte offset {offset + skipped + error.start}; convert it, "
                "for example with `iconv -f LATIN1 -t UTF-8`."
            ) from error
        yield line.rstrip("\r\n")
        offset += len(raw)


def has_byte_order_mark(path: Path) -> bool:
    """Whether a file begins with the mark of UTF-8, which is no part of its text."""
    with open_bytes(path) as file:
        return file.read(len(BYTE_ORDER_MARK)) == BYTE_ORDER_MARK


def whole_number(digits: str) -> int | None:
    """A number in decimal digits; None for anything else, and for more digits than any count has.

    Python itself refuses to read thousands of digits.
    """
    return int(digits) if digits.isdecimal() and len(digits) <= _DIGITS else None


def document_numbers() -> Iterator[str]:
    """ "1", "2", … shared by all files of a corpus, so that two documents never share a name."""
    return map(str, count(1))
