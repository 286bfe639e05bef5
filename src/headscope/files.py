"""Files: where they are, and writing them so that they are complete or absent.

A path is local, or a URL of any filesystem that fsspec reaches. A URL becomes a UPath, which has
the methods of pathlib.Path that are used here, so that `folder / "run.json"` works on both.

A seal is a checksum at the end of a file: rot is noticed before anything trusts the content. HDF5
and zip archives may be followed by other bytes, so a sealed `result.nc` or shard opens with any
reader as before. A seal may also say whose file it is: the third shard of one run is damage in the
place of the fourth, or in another run.

Arrays go into one file as npz archives that hold no code.
"""

import errno
import hashlib
import io
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast
from urllib.parse import unquote, urlsplit
from uuid import uuid4

import numpy as np

from headscope.errors import HeadscopeError, RunError
from headscope.wording import said

UNFINISHED = ".unfinished"
SHARDS = "finished shards"  # what a run keeps when one of its files cannot be written

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}
_MARK = b"\nheadscope sha256 "
LENGTH = len(_MARK) + 64 + 1
_AT_ONCE = 2**20


def find_place(place: str | Path) -> Path:
    """The path or URL that a user wrote; what its filesystem needs is named if it is missing."""
    if not isinstance(place, str):
        return place
    if not place.strip():  # Path("") is the current directory, hardly what was meant
        raise RunError("The path is empty; name a file or a directory.")
    if "://" not in place:
        return Path(place)
    if place.startswith("file://"):
        return Path(unquote(urlsplit(place).path))
    return _remote(place)


def names_only(value: Any) -> Any:
    """The same for others to read: a file or folder by its name, not by its absolute path."""
    if isinstance(value, Mapping):
        return {key: names_only(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [names_only(one) for one in value]
    if isinstance(value, str) and Path(value).is_absolute():
        return Path(value).name or value
    return value


def is_local(place: Path) -> bool:
    """Whether a place is an ordinary path."""
    return isinstance(place, Path)


@contextmanager
def replacing(place: Path) -> Iterator[Path]:
    """A local temporary file that takes the place when the block ends well.

    Beside a local file, so that it is renamed; for a URL the file is sent under another name and
    moved there. Either way no reader sees half a file.
    """
    if is_local(place):
        temporary = place.with_name(f"{place.name}.{uuid4().hex}{UNFINISHED}")
        try:
            yield temporary
            with temporary.open("rb+") as file:  # a crash must not leave a name without content
                os.fsync(file.fileno())
            temporary.replace(place)
        finally:
            temporary.unlink(missing_ok=True)
        return
    with TemporaryDirectory(prefix="headscope-") as folder:
        temporary = Path(folder) / place.name
        yield temporary
        with reaching(place):
            _send(temporary, place)


@contextmanager
def reaching(place: Path) -> Iterator[None]:
    """Turn every failure of a remote filesystem into an OSError: each has errors of its own."""
    try:
        yield
    except (OSError, HeadscopeError):
        raise
    except Exception as error:
        if is_local(place):
            raise
        raise OSError(said(error)) from error


def names_in(folder: Path) -> set[str]:
    """The names in a folder, by one request; an object store has no empty folders."""
    try:
        return {path.name for path in folder.iterdir()}
    except (FileNotFoundError, NotADirectoryError):
        return set()


@contextmanager
def write_atomically(path: Path, *, kept: str = "") -> Iterator[Path]:
    """A local temporary file that takes the place of `path` when the block ends well.

    A disk that is full, or a place that cannot be written to, is one sentence; `kept` names what
    remains of earlier work.
    """
    try:
        with replacing(path) as temporary:
            yield temporary
    except HeadscopeError:
        raise
    except Exception as error:
        failure = _disk_failure(error)
        if failure is None:
            raise
        remains = f"{kept} are kept, so " if kept else ""
        raise RunError(
            f"{path} cannot be written ({failure.strerror or failure}); {remains}"
            "make room or choose another place and run the same command again."
        ) from error


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn a filesystem that does not answer into one sentence."""
    try:
        with reaching(path):
            yield
    except OSError as error:
        raise RunError(
            f"{path} cannot be reached ({error.strerror or error}); run the same command again "
            "when it can."
        ) from error


def write_text(path: Path, text: str, *, kept: str = "") -> None:
    """Write a text file in one step."""
    write_bytes(path, text.encode("utf-8"), kept=kept)


def write_bytes(path: Path, content: bytes, *, kept: str = "") -> None:
    """Write a file in one step."""
    with write_atomically(path, kept=kept) as temporary:
        temporary.write_bytes(content)


def clear_unfinished(folder: Path) -> None:
    """Remove what a killed process left behind."""
    for name in names_in(folder):
        if name.endswith(UNFINISHED):
            (folder / name).unlink(missing_ok=True)


def _remote(url: str) -> Path:
    try:
        from upath import UPath
    except ImportError as error:
        raise RunError(
            f'{url} is not on this machine; install `pip install "headscope[remote]"` to reach it.'
        ) from error
    try:
        place: Any = UPath(url)
        place.fs  # noqa: B018  its filesystem is imported here
    except (ImportError, ValueError) as error:
        raise RunError(f"{url} cannot be reached: {said(error)}.") from error
    return cast(Path, place)


def _disk_failure(error: BaseException) -> OSError | None:
    """The OSError itself, or a full disk behind another error.

    A writer that fails while it tidies up after a full disk hides the cause: matplotlib's PDF
    writer ends in an AttributeError.
    """
    if isinstance(error, OSError):
        return error
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.errno in _FULL:
            return cause
        cause = cause.__cause__ or cause.__context__
    return None


def _send(file: Path, place: Path) -> None:
    target: Any = place
    sent = target.with_name(f"{place.name}.{uuid4().hex}{UNFINISHED}")
    target.fs.makedirs(target.parent.path, exist_ok=True)
    target.fs.put_file(str(file), sent.path)
    target.fs.mv(sent.path, target.path)


def seal(content: bytes, of: str = "") -> bytes:
    """The content with its checksum behind it; `of` says whose content it is."""
    return content + _mark(hashlib.sha256(of.encode() + content).hexdigest())


def unseal(content: bytes, of: str = "") -> bytes | None:
    """What was sealed; None if any of it, or whose it is, has changed."""
    inner = content[:-LENGTH]
    return inner if len(content) >= LENGTH and seal(inner, of) == content else None


def is_intact(path: Path, of: str = "") -> bool:
    """Whether a file ends in the checksum of all that comes before; reads it once, in pieces."""
    left = path.stat().st_size - LENGTH
    if left < 0:
        return False
    digest = hashlib.sha256(of.encode())
    with path.open("rb") as file:
        while left > 0:
            piece = file.read(min(left, _AT_ONCE))
            if not piece:
                return False
            digest.update(piece)
            left -= len(piece)
        return file.read(LENGTH + 1) == _mark(digest.hexdigest())


def checksum(path: Path) -> str:
    """SHA-256 of a whole file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _mark(digest: str) -> bytes:
    return _MARK + digest.encode("ascii") + b"\n"


def pack_arrays(arrays: Mapping[str, np.ndarray]) -> bytes:
    """The content of an archive."""
    content = io.BytesIO()
    np.savez(content, allow_pickle=False, **arrays)
    return content.getvalue()


def unpack_arrays(content: bytes) -> dict[str, np.ndarray]:
    """The arrays of an archive by name."""
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}
