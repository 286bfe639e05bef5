"""Files: where they lie, and writing them so that they are complete or absent.

A path is local, or a URL of any filesystem that fsspec reaches.

A URL becomes a UPath, which has the methods of pathlib.Path that are used here, so that everything
that says `folder / "run.json"` works on both. Local paths stay what they are.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast
from urllib.parse import unquote, urlsplit
from uuid import uuid4

from headscope.errors import HeadscopeError, RunError

UNFINISHED = ".unfinished"


def find_place(place: str | Path) -> Path:
    """The path or URL that a user wrote; what its filesystem needs is named if it is missing."""
    if not isinstance(place, str):
        return place
    if "://" not in place:
        return Path(place)
    if place.startswith("file://"):
        return Path(unquote(urlsplit(place).path))
    return _remote(place)


def is_local(place: Path) -> bool:
    """Whether a place is an ordinary path."""
    return isinstance(place, Path)


@contextmanager
def replacing(place: Path) -> Iterator[Path]:
    """A local temporary file that takes the place when the block ends well.

    Beside a local file, so that it is renamed; for a URL the file is sent under another name and
    moved there. Either way nobody ever sees half a file.
    """
    if is_local(place):
        yield from _replacing_local(place)
        return
    with TemporaryDirectory(prefix="headscope-") as folder:
        temporary = Path(folder) / place.name
        yield temporary
        with reaching(place):
            _send(temporary, place)


@contextmanager
def reaching(place: Path) -> Iterator[None]:
    """Every failure of a remote filesystem as an OSError: each of them has errors of its own."""
    try:
        yield
    except (OSError, HeadscopeError):
        raise
    except Exception as error:
        if is_local(place):
            raise
        said = str(error).splitlines() or [type(error).__name__]
        raise OSError(said[0]) from error


def names_in(folder: Path) -> set[str]:
    """The names in a folder, by one request; an object store has no empty folders."""
    try:
        return {path.name for path in folder.iterdir()}
    except (FileNotFoundError, NotADirectoryError):
        return set()


@contextmanager
def write_atomically(path: Path) -> Iterator[Path]:
    """A local temporary file that takes the place of `path` when the block ends well."""
    try:
        with replacing(path) as temporary:
            yield temporary
    except OSError as error:
        raise RunError(
            f"{path} cannot be written ({error.strerror or error}); finished shards are kept, "
            "so make room or choose another place and run the same command again."
        ) from error


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn a filesystem that does not answer into one sentence."""
    try:
        with reaching(path):
            yield
    except OSError as error:
        raise RunError(
            f"{path} cannot be reached ({error.strerror or error}); finished shards are kept, "
            "so run the same command again when it can."
        ) from error


def write_text(path: Path, text: str) -> None:
    """Write a text file in one step."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file in one step."""
    with write_atomically(path) as temporary:
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
        raise RunError(f"{url} cannot be reached: {str(error).splitlines()[0]}.") from error
    return cast(Path, place)


def _replacing_local(path: Path) -> Iterator[Path]:
    temporary = path.with_name(f"{path.name}.{uuid4().hex}{UNFINISHED}")
    try:
        yield temporary
        _flush(temporary)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _flush(path: Path) -> None:
    """Make sure the content is on disk before the name is: a crash must not leave an empty file."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def _send(file: Path, place: Path) -> None:
    target: Any = place
    sent = target.with_name(f"{place.name}.{uuid4().hex}{UNFINISHED}")
    target.fs.makedirs(target.parent.path, exist_ok=True)
    target.fs.put_file(str(file), sent.path)
    target.fs.mv(sent.path, target.path)
