"""The demo: the studies on the bundled models and the demo corpus, no network.

Each model has a process of its own, so that both cores of a small machine work. A process writes
progress to its standard error, which is passed on as it comes. What it found, or the sentence that
says what is wrong, goes to its standard output and is shown at the end.

python -m headscope.demo MODEL FOLDER [SENTENCES]    the demo of one model
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import headscope as hs
from headscope.errors import HeadscopeError, RunError
from headscope.model.loading.source import find_source
from headscope.studies import STUDIES, find_study

if TYPE_CHECKING:
    from headscope.model.model import Model
    from headscope.studies.study import Study
    from headscope.text.corpus import Corpus

MODELS = ("mini-gpt2", "mini-bert")
TEXT = "The ship left the harbour at dawn, and when the ship came back, its captain was gone."
SHOWN = 5  # findings of a run that are told at the end; the report has all
MARKER = "demo.json"
USERS_MISTAKE = 2  # exit code of a process that says in one sentence what is wrong

Say = Callable[[str], None]


def demo(
    out: str | Path = "headscope-demo", say: Say = print, *, sentences: int | None = None
) -> Path:
    """Run the studies on the bundled models, write reports and views, and say what was found."""
    for model in MODELS:
        find_source(model)  # a file that is missing is said before anything starts
    folder = _claim(Path(out))
    with ThreadPoolExecutor() as threads, _started(folder, sentences) as workers:
        found = [threads.submit(worker.wait) for worker in workers]
        from headscope.explorer.site import site  # takes a second, in which the models work

        for done in as_completed(found):
            done.result()  # the first that fails ends the others
    for findings in found:
        say(findings.result())
    pages = site(sorted(folder.glob("*-mini-*")), folder / "site")
    say(f"\nSite: {pages / 'index.html'}")
    say(f"Explore: headscope serve {folder}/*-mini-* --model {MODELS[0]}")
    return folder


@dataclass(frozen=True)
class _Worker:
    """The process that works on one model."""

    model: str
    process: subprocess.Popen[str]
    relay: Thread

    @classmethod
    def start(cls, model: str, folder: Path, sentences: int | None) -> "_Worker":
        command = [sys.executable, "-m", "headscope.demo", model, str(folder)]
        command += [] if sentences is None else [str(sentences)]
        threads = max(1, (os.cpu_count() or 1) // len(MODELS))
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            env={**os.environ, "OMP_NUM_THREADS": str(threads), "PYTHONIOENCODING": "utf-8"},
        )
        relay = Thread(target=_pass_on, args=(process,), daemon=True)
        relay.start()
        return cls(model, process, relay)

    def wait(self) -> str:
        """What the process found, or the sentence in which it said what is wrong."""
        assert self.process.stdout is not None
        said = self.process.stdout.read().rstrip("\n")
        code = self.process.wait()
        self.relay.join()
        if code == USERS_MISTAKE:
            raise RunError(said)
        if code != 0:
            raise RunError(f"The demo of {self.model} ended with exit code {code}; see above.")
        return said


def _pass_on(process: subprocess.Popen[str]) -> None:
    """Show the lines of a process as they come; lines, for two bars would fight for one place."""
    assert process.stderr is not None
    for line in process.stderr:
        print(line, end="", file=sys.stderr, flush=True)


@contextmanager
def _started(folder: Path, sentences: int | None) -> Iterator[list[_Worker]]:
    """A process for every model; none outlives the block."""
    workers = [_Worker.start(model, folder, sentences) for model in MODELS]
    try:
        yield workers
    finally:
        for worker in workers:
            worker.process.terminate()
            worker.process.wait()


def _claim(folder: Path) -> Path:
    """Take an empty or new folder, or one that an earlier demo made; never anybody else's."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / MARKER).exists() and any(folder.iterdir()):
            raise RunError(
                f"{folder} already has something else in it; nothing was changed. "
                "Choose an empty or new directory with --out."
            )
        marker = json.dumps({"headscope": hs.__version__})
        (folder / MARKER).write_text(marker, encoding="utf-8")
    except OSError as error:
        raise RunError(
            f"The demo cannot write to {folder} ({error.strerror}); choose another with --out."
        ) from error
    return folder


def show(name: str, folder: Path, sentences: int | None) -> Iterator[str]:
    """Do all of it and say what was found and what to open."""
    find_source(name)  # what is not there is said at once, before torch is imported
    model = hs.load(name)
    if name == MODELS[0]:
        yield from _save_views(model, folder / "views")
    corpus = hs.demo_corpus()
    for study in map(find_study, STUDIES):
        if name in study.demo:
            yield from _run(
                study, study.demo[name], model, corpus, folder / f"{study.name}-{name}", sentences
            )


def _save_views(model: "Model", folder: Path) -> Iterator[str]:
    folder.mkdir(exist_ok=True)
    trace = model.trace(TEXT)
    for view in (trace.head_view(), trace.model_view(), trace.neuron_view()):
        yield f"View: {view.save(folder / f'{view.kind}.html')}"


def _run(
    study: "Study",
    demo_options: Mapping[str, Any],
    model: "Model",
    corpus: "Corpus",
    path: Path,
    sentences: int | None,
) -> Iterator[str]:
    from headscope.results.statements import read_statements, tally

    options = dict(demo_options)
    if sentences is not None:
        options["sentences"] = sentences
    result = hs.study(study.name, model, corpus, path, **options)
    found = read_statements(result).findings
    page = hs.report(path, formats=["svg"])  # what the page needs
    print(f"{study.name} on {model.name}: {page}", file=sys.stderr, flush=True)
    yield f"\n{study.name} on {model.name}: of the paper's claims {tally(found)}; for example"
    for each in [each for each in found if each.holds == "yes"][:SHOWN]:
        yield f"  {each.claim} {each.measured}"
    yield f"  Open {page}"


def main() -> int:
    """Print what was found; a user's mistake is one sentence and its own exit code."""
    name, folder, *count = sys.argv[1:]
    try:
        print("\n".join(show(name, Path(folder), int(count[0]) if count else None)))
    except HeadscopeError as error:
        print(error)
        return USERS_MISTAKE
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
