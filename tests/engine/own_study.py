"""A study of one's own with a stage, as a user would write it: kept small and quick."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import xarray as xr

from headscope.engine.setup import Setup
from headscope.engine.stage import Stage
from headscope.studies import find_study
from headscope.studies.option import Option
from headscope.studies.study import Study
from tests.engine.small_works import Add

VIG = find_study("vig2019")


@dataclass(frozen=True)
class Sums(Stage[int]):
    name: str = "sums"

    def pieces(self, setup: Setup, result: xr.Dataset) -> tuple[int, ...]:
        return tuple(range(setup.options["sums"]))

    def work(self, setup: Setup, result: xr.Dataset, threads: int, folder: Path) -> Add:
        return Add(folder, setup.options["deadly"], threads)

    def finish(
        self, setup: Setup, result: xr.Dataset, outcomes: Mapping[int, bytes], folder: Path
    ) -> xr.Dataset:
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
    later_stages=(Sums(),),
)
NO_STUDY = "a text"
