"""Every example runs: the Python and `headscope` lines of the README and the docs, page by page."""

import re
import shlex
import shutil
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import xarray as xr

import headscope as hs
from headscope import cli, reports
from headscope.model.model import Model
from headscope.results.run import Run
from headscope.studies import find_study
from headscope.studies.study import Study
from headscope.text.corpus import Corpus

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# What a shell block may hold besides headscope's own commands: set-up, and commands that wait.
NOT_RUN = re.compile(r"(pip|make|git|cd|python) |headscope serve|#|$")


def run_python(source: str, page: Path, names: dict[str, object]) -> None:
    exec(compile(source, f"{page.name} (example)", "exec"), names)


@dataclass
class Shell:
    """Runs the commands of a page; what another page has done before is copied from there."""

    kept: Path
    states: dict[str, str] = field(default_factory=dict)  # by run directory: what made it

    def run(self, source: str) -> None:
        """Every line that is a command of ours."""
        for line in source.replace("\\\n", " ").splitlines():
            if not NOT_RUN.match(line):
                program, *arguments = shlex.split(line, comments=True)
                assert program == "headscope", f"a shell example that no test runs: {line}"
                self._command(arguments)

    def _command(self, arguments: list[str]) -> None:
        changed = self._changes(arguments)
        if changed is None:
            cli.app(arguments, standalone_mode=False)
            return
        run, state = changed
        copy = self.kept / str(zlib.crc32(state.encode()))
        if copy.exists():
            shutil.copytree(copy, run, dirs_exist_ok=True)
        else:
            cli.app(arguments, standalone_mode=False)
            shutil.copytree(run, copy)
        self.states[run] = state

    def _changes(self, arguments: list[str]) -> tuple[str, str] | None:
        """The run that a command makes or completes, and all that has then been done to it."""
        match arguments:
            case ["study", *options, "--out", run] if run not in self.states:
                return run, shlex.join(["study", *options])
            case ["report", run] if run in self.states:
                return run, f"{self.states[run]}; report"
        return None


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs by what was done to them."""
    return tmp_path_factory.mktemp("kept")


@pytest.fixture(scope="module", autouse=True)
def _models_are_loaded_once() -> Iterator[None]:
    """A bundled model that two pages load in the same way; anything else is loaded as it comes."""
    module, real = sys.modules[hs.load.__module__], hs.load
    again = cache(real)

    def load(model: Any, **options: Any) -> Model:
        return (again if isinstance(model, str) else real)(model, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "load", load)
        yield


@pytest.fixture(scope="module", autouse=True)
def _studies_run_once(kept: Path, _models_are_loaded_once: None) -> Iterator[None]:
    """A study that several pages run, by command or by call: the others get a copy of its run."""
    module, real = sys.modules[hs.study.__module__], hs.study
    results: dict[Path, xr.Dataset] = {}

    def study(
        name: Any,
        model: Model,
        corpus: Corpus,
        out: Any = None,
        *,
        engine: Any = "local",
        **given: Any,
    ) -> xr.Dataset:
        if not isinstance(name, str):
            return real(name, model, corpus, out, engine=engine, **given)
        drawn = {key: given.pop(key, None) or 0 for key in ("sentences", "seed", "batch_tokens")}
        options = find_study(name).with_options(given)
        told = (id(model), corpus.fingerprint, drawn, options, getattr(engine, "name", engine))
        run = kept / f"{name}-{zlib.crc32(repr(told).encode())}"
        if run not in results:
            draw = {key: value for key, value in drawn.items() if value}
            results[run] = real(name, model, corpus, run, engine=engine, **draw, **given)
        if out is not None:
            shutil.copytree(run, out, dirs_exist_ok=True)
        return results[run].copy(deep=True)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "study", study)
        yield


@pytest.fixture(scope="module", autouse=True)
def _figures_are_drawn_once() -> Iterator[None]:
    """The figures of a study are drawn for the first page that reports it, as SVG alone.

    That reports write every format, and draw a figure for any result, is claimed in tests/reports.
    """
    module, drawn = reports, set[str]()
    draw = module._draw_figures

    def draw_new(run: Run, study: Study | None, *where: Any, **options: Any) -> Any:
        if study is not None and study.name in drawn:
            return []
        drawn.add("" if study is None else study.name)
        return draw(run, study, *where, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "FORMATS", ("svg",))
        patch.setattr(module, "_draw_figures", draw_new)
        yield


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_examples_of_a_page_run_from_top_to_bottom(
    page: Path, kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shell = Shell(kept)
    names: dict[str, object] = {"__name__": "__main__"}
    for language, source in BLOCK.findall(page.read_text(encoding="utf-8")):
        if language == "python":
            run_python(source, page, names)
        elif language == "sh":
            shell.run(source)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_to_a_file_leads_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    missing = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert missing == []
