"""A run directory: what is computed on what, the finished pieces, and the result.

run.json                 model, corpus, options, versions, what was counted
run.lock                 held by the one process that works on the run
shards/00000.npz         partial results, each complete or absent
stages/NAME/00000.bin    what a later stage of the study has computed, likewise
result.nc                the Dataset

Every piece carries a checksum of its content, its number and its run: a copy in another place is
damage, and is computed again.

One process at a time works on a run.

The operating system holds the lock and lets it go when the process ends, however it ends: there is
nothing to clean up after a crash. A run at a URL is not locked, for object stores have no locks;
two studies of one URL compute the same pieces twice, and each piece is still written in one step.
"""

import hashlib
import json
import logging
import os
import platform
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import headscope
from headscope.errors import RunError
from headscope.files import (
    SHARDS,
    clear_unfinished,
    is_intact,
    is_local,
    names_in,
    reading,
    seal,
    unseal,
    write_bytes,
)
from headscope.results.inspection import inspect_folder, require_file, require_folder
from headscope.results.replicates import GROUPS
from headscope.results.run import read_settings, write_settings

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

PACKAGES = ("torch", "transformers", "tokenizers", "numpy")
LOCK_FILE = "run.lock"
SHARD = re.compile(r"\d+\.npz")
PIECES = 2  # what the files of pieces hold; runs begun with another number cannot be continued
THREADS = "threads"  # in run.json: how many a worker has, which decides the last bits of sums

# What must be the same for a run to be continued, in words for the person who changed it.
IDENTITY = ("headscope", "pieces", "groups", "study", "model", "corpus", "options")
CORPUS = ("fingerprint", "sentences")  # it may lie elsewhere now, under another name

log = logging.getLogger("headscope")


@dataclass(frozen=True)
class PieceFiles:
    """The numbered files of finished pieces in one folder."""

    folder: Path
    ending: str
    owner: str  # which pieces of which run they are

    def file(self, index: int) -> Path:
        return self.folder / f"{index:05d}{self.ending}"

    def keep(self, index: int, content: bytes) -> None:
        write_bytes(self.file(index), seal(content, self._label(index)), kept=SHARDS)

    def read(self, index: int) -> bytes:
        """What was kept of a piece."""
        file = self.file(index)
        with reading(self.folder):
            content = unseal(file.read_bytes(), self._label(index))
        if content is None:
            raise RunError(f"{file} is damaged; run the same command again to compute it anew.")
        return content

    def missing_or_damaged(self, count: int) -> list[int]:
        """Pieces to be computed; a file that cannot be trusted is reported and removed first.

        The folder is made if there are pieces, and freed of what a killed process left behind.
        """
        if count == 0:
            return []
        with reading(self.folder):
            require_folder(self.folder)
            self.folder.mkdir(parents=True, exist_ok=True)
            clear_unfinished(self.folder)
            present = names_in(self.folder)
            missing: list[int] = []
            for index in range(count):
                file = self.file(index)
                if file.name in present and not self._is_intact(index):
                    name = f"{self.folder.name.removesuffix('s')} {index}".capitalize()
                    log.warning("%s of %s is damaged and is computed again.", name, file.parent)
                    file.unlink()
                    missing.append(index)
                elif file.name not in present:
                    missing.append(index)
            return missing

    def _is_intact(self, index: int) -> bool:
        file = self.file(index)
        return file.is_file() and not file.is_symlink() and is_intact(file, self._label(index))

    def _label(self, index: int) -> str:
        return f"{self.owner} {index}\n"


@dataclass(frozen=True)
class RunFolder:
    """A run directory that is being written."""

    path: Path
    settings: Mapping[str, Any]

    @property
    def result(self) -> Path:
        """Where the Dataset lies once the run is finished."""
        return self.path / "result.nc"

    @property
    def threads(self) -> int:
        """How many threads all work of the run has."""
        return self.settings[THREADS]

    def files(self, place: str, ending: str) -> PieceFiles:
        """The files of the pieces of a stage."""
        described = {key: _identity(key, self.settings) for key in IDENTITY}
        mark = hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()
        return PieceFiles(self.path / place, ending, f"{mark} {place}")

    def record(self, more: Mapping[str, Any]) -> "RunFolder":
        """The run with more facts in its run.json."""
        settings = {**self.settings, **more}
        write_settings(self.path, settings)
        return replace(self, settings=settings)


def open_run(path: Path, settings: Mapping[str, Any]) -> RunFolder:
    """Start a run, or continue the one that is there if it is the same.

    A run that has computed nothing yet is started again, with whatever settings. Only the process
    that holds the lock of the run may call this.
    """
    described = {
        "headscope": headscope.__version__,
        "pieces": PIECES,
        "groups": GROUPS,
        **settings,
    }
    with reading(path):
        inspect_folder(path)
        names = names_in(path / "shards")
        computed = any(map(SHARD.fullmatch, names)) or (path / "result.nc").exists()
        if (path / "run.json").exists() and computed:
            _refuse_changes(path, read_settings(path), described)
        elif computed:
            raise RunError(
                f"{path} has finished shards but no run.json that says of what; "
                "choose another directory."
            )
        (path / "shards").mkdir(parents=True, exist_ok=True)
        clear_unfinished(path)
        clear_unfinished(path / "shards")
        if computed:
            return RunFolder(path, read_settings(path))
        packages = {name: version(name) for name in PACKAGES}
        begun = {**described, "versions": {"python": platform.python_version(), **packages}}
        write_settings(path, begun)
        return RunFolder(path, begun)


def _refuse_changes(path: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    if before.get("pieces") != PIECES:
        raise RunError(
            f"{path} holds a run of another headscope, whose files this one does not continue; "
            "choose another directory and run the study again."
        )
    pairs = ((key, _identity(key, before), _identity(key, now)) for key in IDENTITY)
    changes = [change for pair in pairs for change in _differences(*pair)]
    if changes:
        raise RunError(
            f"{path} holds a run with another setting: {'; '.join(changes)}. "
            "Repeat the command as it was to continue, or choose another directory."
        )


def _identity(key: str, settings: Mapping[str, Any]) -> Any:
    value = settings.get(key)
    if key == "corpus" and isinstance(value, dict):
        return {name: value.get(name) for name in CORPUS}
    if key == "model" and isinstance(value, dict):  # the fingerprint says more than the sketch
        return {name: fact for name, fact in value.items() if name != "sketch"}
    return value


def _differences(name: str, before: Any, now: Any) -> Iterator[str]:
    """What changed, down to the single value."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key in sorted({*before, *now}):
            yield from _differences(f"{name} {key}", before.get(key), now.get(key))
    elif before != now:
        yield f"{name} was {before!r}, is now {now!r}"


@contextmanager
def lock_run(path: Path) -> Iterator[None]:
    """Hold the lock of a run directory; a RunError if another process has it."""
    if not is_local(path):
        yield
        return
    require_file(path / LOCK_FILE)
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
    try:
        path.mkdir(parents=True, exist_ok=True)
        file = os.open(path / LOCK_FILE, flags, 0o644)
    except OSError as error:
        raise RunError(
            f"{path} cannot be written ({error.strerror or error}); make room or choose another "
            "place and run the same command again."
        ) from error
    try:
        _take(file, path)
        yield
    finally:
        os.close(file)  # which lets go of the lock


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
