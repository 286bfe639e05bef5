"""The whole instrument on what the package carries: both models, the demo corpus, no network."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import headscope as hs
from headscope.errors import RunError

if TYPE_CHECKING:
    import xarray as xr

    from headscope.model.model import Model

MODELS = ("mini-gpt2", "mini-bert")
STUDIES = ("vig2019", "clark2019")
TEXT = "The ship left the harbour at dawn, and when the ship came back, its captain was gone."
MARKER = "demo.json"
# A minute is enough for a demo: a third of the segments, and one seed of the probes.
OPTIONS: dict[str, dict[str, Any]] = {"clark2019": {"sentences": 60, "probe_seeds": 1}}

Say = Callable[[str], None]


@dataclass(frozen=True)
class DemoRun:
    """One study of one model: where it lies and what it found."""

    study: str
    model: str
    path: Path
    result: "xr.Dataset"
    drawing: subprocess.Popen[str]  # the report is drawn while the next study runs

    @property
    def report(self) -> Path:
        """The page to open."""
        return self.path / "report.html"

    def wait(self) -> None:
        """Wait until the report is there."""
        _, said = self.drawing.communicate()
        if self.drawing.returncode != 0:
            raise RunError(f"The report of {self.path} could not be drawn: {said.strip()}")


def demo(
    out: str | Path = "headscope-demo", say: Say = print, *, sentences: int | None = None
) -> list[DemoRun]:
    """Run both studies on both bundled models, write reports and views, and say what was found."""
    folder = _claim(Path(out))
    load = cache(hs.load)
    for view in _save_views(folder / "views", load):
        say(f"View: {view}")
    runs = [_run(study, load(model), folder, sentences) for study in STUDIES for model in MODELS]
    for run in runs:
        run.wait()
    for line in summary(runs):
        say(line)
    return runs


def summary(runs: list[DemoRun]) -> Iterator[str]:
    """The findings in words, and what to open."""
    for run in runs:
        yield f"\n{run.study} on {run.model}"
        yield from _findings(run)
        yield f"  Open {run.report}"
    folder = runs[0].path.parent
    yield f"\nExplore: headscope serve {folder}/*2019-mini-* --model {MODELS[0]}"


def _claim(folder: Path) -> Path:
    """Take an empty or new folder, or one that an earlier demo made; never anybody else's."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        foreign = not (folder / MARKER).exists() and any(folder.iterdir())
    except OSError as error:
        raise RunError(
            f"The demo cannot write to {folder} ({error.strerror}); choose another with --out."
        ) from error
    if foreign:
        raise RunError(
            f"{folder} already has something else in it; nothing was changed. "
            "Choose an empty or new directory with --out."
        )
    _mark(folder)
    return folder


def _mark(folder: Path) -> None:
    try:
        (folder / MARKER).write_text(json.dumps({"headscope": hs.__version__}), encoding="utf-8")
    except OSError as error:
        raise RunError(
            f"The demo cannot write to {folder} ({error.strerror}); choose another with --out."
        ) from error


def _save_views(folder: Path, load: Callable[[str], "Model"]) -> Iterator[Path]:
    folder.mkdir(exist_ok=True)
    trace = load(MODELS[0]).trace(TEXT)
    yield trace.head_view().save(folder / "head.html")
    yield trace.model_view().save(folder / "model.html")
    yield trace.neuron_view().save(folder / "neuron.html")


def _run(study: str, model: "Model", folder: Path, sentences: int | None) -> DemoRun:
    path = folder / f"{study}-{model.name}"
    options = dict(OPTIONS.get(study, {}))
    if sentences is not None:
        options["sentences"] = sentences
    result = hs.study(study, model, hs.demo_corpus(), path, **options)
    command = [sys.executable, "-m", "headscope", "report", str(path)]
    drawing = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    return DemoRun(study, model.name, path, result, drawing)


def _findings(run: DemoRun) -> Iterator[str]:
    """The paper's claims that this small model bears out, and those it does not."""
    from headscope.report.findings import rows
    from headscope.studies import find_study

    judged = [
        row
        for row in rows(find_study(run.study).findings, run.result)
        if row["holds"] != "for comparison"
    ]
    signs = {"yes": "holds", "no": "does not hold", "unclear": "unclear"}
    for row in judged:
        if row["holds"] in signs:
            yield f"  {signs[row['holds']]:>13}  {row['claim']}: {row['measured']}"
