"""The demo: both studies on both bundled models and the demo corpus, no network.

Each model has a process of its own, so that both cores of a small machine work. A process writes
progress to its standard error, which is passed on as it comes. What it found, or the sentence that
says what is wrong, goes to its standard output and is shown at the end.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

import headscope
from headscope.errors import RunError
from headscope.model.loading.source import find_source

MODELS = ("mini-gpt2", "mini-bert")
MARKER = "demo.json"
USERS_MISTAKE = 2  # exit code of a process that says in one sentence what is wrong

Say = Callable[[str], None]


def demo(
    out: str | Path = "headscope-demo", say: Say = print, *, sentences: int | None = None
) -> Path:
    """Run both studies on both bundled models, write reports and views, and say what was found."""
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
    pages = site(sorted(folder.glob("*2???-mini-*")), folder / "site")
    say(f"\nSite: python -m http.server --directory {pages}")
    say(f"Explore: headscope serve {folder}/*2???-mini-* --model {MODELS[0]}")
    return folder


@dataclass(frozen=True)
class _Worker:
    """The process that works on one model."""

    model: str
    process: subprocess.Popen[str]
    relay: Thread

    @classmethod
    def start(cls, model: str, folder: Path, sentences: int | None) -> "_Worker":
        command = [sys.executable, "-m", "headscope.demo.one_model", model, str(folder)]
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
        marker = json.dumps({"headscope": headscope.__version__})
        (folder / MARKER).write_text(marker, encoding="utf-8")
    except OSError as error:
        raise RunError(
            f"The demo cannot write to {folder} ({error.strerror}); choose another with --out."
        ) from error
    return folder
