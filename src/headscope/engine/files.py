"""Files of a run: either complete or absent, whatever happens while they are written."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headscope.errors import RunError
from headscope.place import UNFINISHED, names_in, reaching, replacing


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
