"""Works that need no model, and import none, for what an engine does when its workers fail."""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headscope.errors import ModelError


def get_ready(folder: Path, crew: int) -> None:
    """Wait until so many processes are ready."""
    (folder / f"ready-{os.getpid()}").touch()
    while len(list(folder.glob("ready-*"))) < crew:
        time.sleep(0.01)


@dataclass(frozen=True)
class Square:
    """Squares numbers; says in a folder which process did which, and how often."""

    folder: Path
    poison: int | None = None  # raises every time
    deadly_once: int | None = None  # ends its process the first time
    seconds: float = 0.0
    crew: int = 1  # so many processes begin together, however slowly they start
    threads: int = 1
    needs_gpu: bool = False

    def open(self) -> None:
        times = len(list(self.folder.glob(f"opened-{os.getpid()}-*")))
        (self.folder / f"opened-{os.getpid()}-{times}").touch()
        get_ready(self.folder, self.crew)

    def __call__(self, number: int, /) -> int:
        tries = len(list(self.folder.glob(f"{number}-*")))
        (self.folder / f"{number}-{os.getpid()}-{tries}").touch()
        if number == self.deadly_once and tries == 0:
            os._exit(1)
        time.sleep(self.seconds)
        if number == self.poison:
            raise ValueError(f"{number} cannot be squared\nat all")
        return number**2

    def describe(self, number: int, /) -> str:
        return f"Number {number}"


@dataclass(frozen=True)
class Unready(Square):
    """A work that no process can get ready for."""

    def open(self) -> None:
        raise ModelError("There is no model directory /models/none; give one that is there.")


@dataclass(frozen=True)
class Noted:
    """The work on the shards of a study; says in a folder which process began which of them."""

    work: Any
    folder: Path
    crew: int

    @property
    def threads(self) -> int:
        return self.work.threads

    @property
    def needs_gpu(self) -> bool:
        return self.work.needs_gpu

    def open(self) -> None:
        self.work.open()
        get_ready(self.folder, self.crew)

    def __call__(self, shard: Any, /) -> Any:
        tries = len(list(self.folder.glob(f"{shard.index}-*")))
        (self.folder / f"{shard.index}-{os.getpid()}-{tries}").touch()
        return self.work(shard)

    def describe(self, shard: Any, /) -> str:
        return self.work.describe(shard)


@dataclass(frozen=True)
class Add:
    """Sums the first numbers; leaves a trace of every piece that is begun."""

    folder: Path | None
    deadly: int | None
    threads: int = 1
    needs_gpu: bool = False

    def open(self) -> None:
        pass

    def __call__(self, piece: int, /) -> bytes:
        if self.folder is not None:
            (self.folder / f"begun-{piece}-{os.getpid()}").touch()
        if piece == self.deadly:
            os.kill(os.getpid(), signal.SIGKILL)
        return str(sum(range(piece + 1))).encode()

    def describe(self, piece: int, /) -> str:
        return f"The sum up to {piece}"
