"""Files that are either complete or absent, whatever happens while they are written."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headscope.errors import RunError

UNFINISHED = ".unfinished"


@contextmanager
def write_atomically(path: Path) -> Iterator[Path]:
    """A temporary path beside `path` that takes its place when the block ends well."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}{UNFINISHED}")
    try:
        yield temporary
        _flush(temporary)
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise RunError(
            f"{path} cannot be written ({error.strerror or error}); finished shards are kept, "
            "so make room or choose another place and run the same command again."
        ) from error
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_text(path: Path, text: str) -> None:
    """Write a text file in one step."""
    with write_atomically(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def clear_unfinished(folder: Path) -> None:
    """Remove what a killed process left behind."""
    for leftover in folder.glob(f"*{UNFINISHED}"):
        leftover.unlink(missing_ok=True)


def _flush(path: Path) -> None:
    """Make sure the content is on disk before the name is: a crash must not leave an empty file."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())
