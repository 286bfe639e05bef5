"""A run directory: what is computed on what, the finished pieces, and the result.

run.json                 model, corpus, options, versions, what was counted
run.lock                 held by the one process that works on the run
shards/00000.npz         partial results, each complete or absent
stages/NAME/00000.bin    what a stage of the study has computed, likewise
result.nc                the Dataset

Every piece carries a checksum of its content, its number and its run: a copy in another place is
damage, and is computed again.

One process at a time works on a run.

The operating system holds the lock and lets it go when the process ends, however it ends: there is
nothing to clean up after a crash. A run at a URL is not locked, for object stores have no locks;
whoever starts two studies into one URL computes the same pieces twice, and each is still written in
one step.
"""

import hashlib
import json
import os
import platform
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial as bind
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

import headscope
from headscope.engine.job import Counts, load_records, load_sums
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
from headscope.metrics.metric import Metric, Records
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

# What must be the same for a run to be continued, in words for the person who changed it.
IDENTITY = ("headscope", "groups", "study", "model", "corpus", "options")
CORPUS = ("fingerprint", "sentences")  # it may lie elsewhere now, under another name


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

    def discard(self, index: int) -> None:
        with reading(self.folder):
            self.file(index).unlink()

    def missing(self, count: int) -> list[int]:
        """Pieces still to be computed."""
        with reading(self.folder):
            present = names_in(self.folder)
        return [index for index in range(count) if self.file(index).name not in present]

    def damaged(self, count: int) -> list[int]:
        """Pieces whose file is there but cannot be trusted."""
        missing = set(self.missing(count))
        with reading(self.folder):
            present = (index for index in range(count) if index not in missing)
            return [index for index in present if not self._is_intact(index)]

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
    def shards(self) -> PieceFiles:
        return PieceFiles(self.path / "shards", ".npz", f"{self._mark} shard")

    @property
    def _mark(self) -> str:
        """Stands for everything that makes this run another one than others."""
        known = {key: _identity(key, self.settings) for key in IDENTITY}
        return hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()

    def stage(self, name: str) -> PieceFiles:
        """The files of a stage."""
        folder = self.path / "stages" / name
        with reading(self.path):
            require_folder(folder)
            folder.mkdir(parents=True, exist_ok=True)
            clear_unfinished(folder)
        return PieceFiles(folder, ".bin", f"{self._mark} {name}")

    def records(self, metric: str, count: int) -> Records:
        """The records of a metric, read one shard at a time."""
        return bind(self._read_records, metric, count)

    def record(self, more: Mapping[str, Any]) -> "RunFolder":
        """The run with more facts in its run.json."""
        settings = {**self.settings, **more}
        write_settings(self.path, settings)
        return replace(self, settings=settings)

    def _read_records(self, metric: str, count: int) -> Iterator[dict[str, np.ndarray]]:
        for index in range(count):
            with reading(self.path):
                records = load_records(self.shards.file(index), metric)
            yield records


class Merging:
    """The sums of the shards of a run, added in their order as they are finished."""

    def __init__(self, run: RunFolder, metrics: Mapping[str, Metric]) -> None:
        self.sums = {name: metric.zero(0).sums for name, metric in metrics.items()}
        self.counts = Counts()
        self._run, self._metrics, self._next = run, metrics, 0

    def advance(self, stop: int) -> None:
        """Add the shards before `stop` that have not been added yet."""
        for index in range(self._next, stop):
            with reading(self._run.path):
                sums, counts = load_sums(self._run.shards.file(index))
            for name, metric in self._metrics.items():
                self.sums[name] = metric.merge(self.sums[name], sums[name])
            self.counts += counts
        self._next = max(self._next, stop)


def open_run(path: Path, settings: Mapping[str, Any]) -> RunFolder:
    """Start a run, or continue the one that is there if it is the same.

    A run that has computed nothing yet is started again, with whatever settings. Only the process
    that holds the lock of the run may call this.
    """
    described = {"headscope": headscope.__version__, "groups": GROUPS, **settings}
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
        if not computed:
            write_settings(path, {**described, "versions": _versions()})
        return RunFolder(path, read_settings(path))


def _refuse_changes(path: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    if "groups" not in before:
        raise RunError(
            f"{path} holds a run of an older headscope, which kept no sums of groups of documents; "
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


def _versions() -> dict[str, str]:
    return {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}}


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
    require_file(path / LOCK_FILE)
    try:
        path.mkdir(parents=True, exist_ok=True)
        return os.open(
            path / LOCK_FILE, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o644
        )
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
