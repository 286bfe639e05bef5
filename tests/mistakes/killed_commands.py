"""Kill `annotate`, `report` and `site` with SIGKILL while they write, then run each to its end.

Started by test_killed_commands.py as a process of its own: it has no thread, so that forking is
safe.
"""

import json
import os
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path

import spacy

import headscope as hs
from headscope import reports
from headscope.explorer.site import site
from headscope.results.run import read_run
from tests.references.luger2026_run import write_luger_run

WRITERS = ("write_text", "write_bytes", "replace")  # of Path, through which every file is made
MOMENTS = (0.1, 0.5, 1.0)  # shares of all files


class Counter:
    """Counts the files that are written; dies in the middle of the one with that number."""

    def __init__(self, fatal: int = 0) -> None:
        self.count = 0
        for name in WRITERS:
            setattr(Path, name, self.watched(getattr(Path, name), fatal))

    def watched(self, write: Callable[..., object], fatal: int) -> Callable[..., object]:
        def watch(path: Path, content: object, *given: object, **named: object) -> object:
            self.count += 1
            if self.count == fatal:
                if isinstance(content, str | bytes):
                    write(path, content[: len(content) // 2], *given, **named)
                os.kill(os.getpid(), signal.SIGKILL)
            return write(path, content, *given, **named)

        return watch


def commands(folder: Path) -> dict[str, Callable[[Path], object]]:
    """What each command does to a folder of its own."""
    pipeline = spacy.blank("en")
    pipeline.add_pipe("sentencizer")
    pipeline.to_disk(folder / "pipeline")
    run = write_luger_run(folder / "run", 1, 1)
    texts = ["A cat sat. It purred.", "A dog ran."] * 20
    reports.render_figure = lambda *_: {"svg": b"<svg/>"}
    return {
        "annotate": lambda out: hs.annotate(
            texts, spacy=str(folder / "pipeline"), out=out / "annotated.parquet", processes=1
        ),
        "report": lambda out: hs.report(run, out=out / "report.html"),
        "site": lambda out: site([run], out / "pages"),
    }


def content(folder: Path) -> dict[str, bytes]:
    """Every file by its place."""
    files = [file for file in folder.rglob("*") if file.is_file()]
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


def forked(work: Callable[[], int]) -> int:
    """What a child says of its work; minus the signal that killed it."""
    child = os.fork()
    if child == 0:
        os._exit(work())
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def count_files(command: Callable[[Path], object], out: Path) -> int:
    counter = Counter()
    command(out)
    return counter.count


def kill_at(command: Callable[[Path], object], out: Path, fatal: int) -> int:
    Counter(fatal)
    command(out)
    return 0


def main(folder: Path) -> None:
    """Kill everything; what became of it is written to `said`."""
    said = {}
    for name, command in commands(folder).items():
        calm, killed = folder / name / "calm", folder / name / "killed"
        for place in (calm, killed):
            place.mkdir(parents=True)
        files = forked(partial(count_files, command, calm))
        deaths, halves = [], []
        for moment in MOMENTS:
            fatal = max(1, round(moment * files))
            deaths.append(forked(partial(kill_at, command, killed, fatal)))
            halves += [
                file.name
                for file in (killed / "report.html", killed / "annotated.parquet")
                if file.exists() and file.read_bytes() != (calm / file.name).read_bytes()
            ]
        command(killed)
        said[name] = {
            "deaths": deaths,
            "halves": halves,
            "differ": [
                file for file, bytes in content(calm).items() if content(killed).get(file) != bytes
            ],
            "left": sorted(set(content(killed)) - set(content(calm))),
            "run": read_run(folder / "run").state,
        }
    (folder / "said").write_text(json.dumps(said))
