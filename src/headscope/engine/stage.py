"""The stages of a run, one after the other: what each computes piece by piece, kept and resumed.

```
pieces ─► work, by any worker in any order ─► a sealed file for each ─► finish ─► the result so far
```

The first stage usually measures the corpus (`headscope.engine.measure`); a study declares those
that follow, such as training probes on top of the merged numbers.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic

import xarray as xr

from headscope.engine.run import PieceFiles, RunFolder
from headscope.engine.setup import Setup
from headscope.progress import show_progress
from headscope.workers import Piece, Pool, Work, use_threads


class Stage(Generic[Piece]):
    """Work on a corpus, or on the result of the stages before; overrides what it needs.

    Pieces are hashable and always the same for the same setup and result, also for the result of
    the finished run. `folder` is the run directory.
    """

    name: str  # as it is shown while the stage runs
    noun = "pieces"  # what its progress is counted in
    subfolder = ""  # folder of the files of its pieces in the run directory; stages/NAME if none
    ending = ".bin"  # of these files

    def pieces(self, setup: Setup, result: xr.Dataset) -> Sequence[Piece]:
        """What can be computed independently; nothing where the stage does not apply."""
        return ()

    def size(self, piece: Piece) -> int:
        """How much of its progress a piece is."""
        return 1

    def work(
        self, setup: Setup, result: xr.Dataset, threads: int, folder: Path
    ) -> Work[Piece, bytes]:
        """What is done to every piece, with exactly that many threads.

        A long piece may leave checkpoints in the folder, where it can reach it.
        """
        raise NotImplementedError

    def compute(
        self, work: Work[Piece, bytes], pieces: Sequence[Piece], pool: Pool
    ) -> Iterator[tuple[Piece, bytes]]:
        """Every piece with its outcome, as they are finished."""
        return pool.run(work, pieces)

    def finish(
        self, setup: Setup, result: xr.Dataset, outcomes: Mapping[Piece, bytes], folder: Path
    ) -> xr.Dataset:
        """The result with what follows from the outcomes of all pieces, which may be none.

        Files that the stage writes into the folder are its own: the result has their checksums as
        attributes.
        """
        return result

    def check_files(self, result: xr.Dataset, folder: Path) -> None:
        """Refuse files of its own in a finished run that are missing or damaged."""


@dataclass(frozen=True, eq=False)
class Outcomes(Mapping[Piece, bytes]):
    """What was made of every piece, read from its file when it is asked for."""

    files: PieceFiles
    numbers: Mapping[Piece, int]

    def __getitem__(self, piece: Piece) -> bytes:
        return self.files.read(self.numbers[piece])

    def __iter__(self) -> Iterator[Piece]:
        return iter(self.numbers)

    def __len__(self) -> int:
        return len(self.numbers)


def run_stages(
    stages: Sequence[Stage[Any]], setup: Setup, run: RunFolder, pool: Pool, result: xr.Dataset
) -> xr.Dataset:
    """The result after all stages, one after the other."""
    for number, stage in enumerate(stages, start=1):
        result = run_stage(
            stage, setup, run, pool, result, [later.name for later in stages[number:]]
        )
    return result


def run_stage(
    stage: Stage[Piece],
    setup: Setup,
    run: RunFolder,
    pool: Pool,
    result: xr.Dataset,
    later: Sequence[str] = (),
) -> xr.Dataset:
    """The result after a stage; only the pieces that the run does not have are computed.

    How much the `later` stages have to do is known when this one is done, so that progress names
    them and tells no time.
    """
    pieces = list(dict.fromkeys(stage.pieces(setup, result)))  # equal ones once
    numbers = {piece: number for number, piece in enumerate(pieces)}
    files = run.files(stage.subfolder or f"stages/{stage.name}", stage.ending)
    missing = [pieces[number] for number in files.missing_or_damaged(len(pieces))]
    if missing:
        work = stage.work(setup, result, run.threads, run.path)
        label = f"{run.settings['study']} on {run.settings['model']['name']}"
        outcomes = show_progress(
            stage.compute(work, missing, pool),
            sum(map(stage.size, missing)),
            stage.noun,
            label=f"{', then '.join([stage.name, *later])}, {label}",
            size=lambda outcome: stage.size(outcome[0]),
        )
        for piece, content in outcomes:
            files.keep(numbers[piece], content)  # only this process writes
    with use_threads(run.threads):
        return stage.finish(setup, result, Outcomes(files, numbers), run.path)
