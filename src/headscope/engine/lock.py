"""One process at a time works on a run.

The operating system holds the lock and lets it go when the process ends, however it ends: there is
nothing to clean up after a crash. A run at a URL is not locked, for object stores have no locks;
whoever starts two studies into one URL computes the same pieces twice, and each is still written in
one step.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headscope.errors import RunError
from headscope.files import is_local
from headscope.results.inspection import require_file

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

FILE = "run.lock"


@contextmanager
def lock_run(path: Path) -> Iterator[None]:
    """Hold the lock of a run directory; a RunError if another process has it."""
    if not is_local(path):
        yield
        return
    file = _open(path)
    try:
        _take(file, path)
        yield
    finally:
        os.close(file)  # which lets go of the lock


def _open(path: Path) -> int:
    require_file(path / FILE)
    try:
        path.mkdir(parents=True, exist_ok=True)
        return os.open(path / FILE, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o644)
    except OSError as error:
        raise RunError(
            f"{path} cannot be written ({error.strerror or error}); make room or choose another "
            "place and run the same command again."
        ) from error


def _take(file: int, path: Path) -> None:
    try:
        if sys.platform == "win32":
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError) as error:
        raise RunError(
            f"Another process is working on {path}; wait until it has ended, or choose another "
            "directory."
        ) from error
    except OSError as error:
        raise RunError(
            f"{path} cannot be locked ({error.strerror or error}); choose a directory on a "
            "filesystem that can lock files."
        ) from error
