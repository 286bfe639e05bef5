"""Lines of a text file, one at a time, with mistakes named by file and place."""

from collections.abc import Iterator
from pathlib import Path

from headscope.errors import CorpusError

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def read_lines(path: Path) -> Iterator[str]:
    """The lines of a UTF-8 file without their ends; only \\n and \\r\\n end a line."""
    offset = 0
    try:
        with path.open("rb") as file:
            for raw in file:
                skipped = len(_BYTE_ORDER_MARK) if offset == 0 and _has_mark(raw) else 0
                try:
                    yield raw[skipped:].decode().rstrip("\r\n")
                except UnicodeDecodeError as error:
                    raise _not_utf8(path, offset + skipped + error.start) from error
                offset += len(raw)
    except OSError as error:
        raise CorpusError(f"Cannot read {path} ({error.strerror}); check the path.") from error


def mistake(path: Path, line: int, problem: str) -> CorpusError:
    """The error for one line of a file."""
    return CorpusError(f"{path}:{line}: {problem}")


def _has_mark(raw: bytes) -> bool:
    return raw.startswith(_BYTE_ORDER_MARK)


def _not_utf8(path: Path, offset: int) -> CorpusError:
    return CorpusError(
        f"{path} is not UTF-8 at byte offset {offset}; convert it, for example with "
        "`iconv -f LATIN1 -t UTF-8`."
    )
