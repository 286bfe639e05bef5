"""A study of one's own with a stage, as a user would write it: kept small and quick."""

import json
import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import xarray as xr

from headscope.studies import find_study
from headscope.studies.option import Option
from headscope.studies.study import Setup, Study

VIG = find_study("vig2019")


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


@dataclass(frozen=True)
class Sums:
    name: str = "sums"

    def pieces(self, setup: Setup, result: xr.Dataset) -> tuple[int, ...]:
        return tuple(range(setup.options["sums"]))

    def work(self, setup: Setup, result: xr.Dataset, threads: int, folder: Path) -> Add:
        return Add(folder, setup.options["deadly"], threads)

    def finish(self, setup: Setup, result: xr.Dataset, outcomes: Mapping[int, bytes]) -> xr.Dataset:
        found = [int(outcomes[piece]) for piece in sorted(outcomes)]
        return result.assign_attrs(sums=json.dumps(found))


STUDY = Study(
    name="own",
    title="",
    citation="",
    question="",
    options=(
        *VIG.options,
        Option("sums", int, 5, "pieces of the stage", least=0),
        Option("deadly", int, None, "piece that kills its process"),
    ),
    labels=VIG.labels,
    left_out=VIG.left_out,
    parts=VIG.parts,
    derive=VIG.derive,
    figures=(),
    tables=(),
    findings=(),
    choices=lambda result: [],
    stages=(Sums(),),
)
NO_STUDY = "a text"
