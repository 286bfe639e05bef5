"""Run directories of strangers and of broken disks: one sentence each, and the others work.

Every spoilt directory is reported, compared with a good run, and asked for by every address of the
explorer. Nothing outside of them is read, nothing outside of them is written.
"""

import re
import time
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path

import pytest
from starlette.testclient import TestClient

import headscope as hs
from headscope import reports
from headscope.errors import HeadscopeError, RunError
from headscope.explorer.addresses import ANSWERS, Answer
from headscope.explorer.answers import runs
from headscope.explorer.answers.runs import Library, Sources
from headscope.explorer.api import create_app
from headscope.explorer.texts import Texts
from headscope.explorer.wire import ModelFacts, RefusedError, TextLimits
from headscope.head import Head
from headscope.results.compare import compare, compare_runs, largest, write_csv
from headscope.results.dataset import load, save
from headscope.results.examples import exemplars_of
from headscope.results.run import read_run
from tests.mistakes.hostile_runs import SECRET, spoil
from tests.references.runs import write_run

VARIABLES = (
    "entropy", "entropy_se", "entropy_numerator", "entropy_denominator", "distance",
    "distance_by_layer", "pos_to", "tag_frequency",
)  # fmt: skip
SECONDS = 4.0  # of work, for one command on one directory
# Nothing in these is wrong: a run may hold numbers that say nothing, or be of one's own study.
HARMLESS = (
    "examples are none",
    "examples are of heads that are not there",
    "examples have another column",
    "result.nc has a baseline of no number",
    "result.nc has a scalar",
    "result.nc has an empty array",
    "result.nc has booleans",
    "result.nc has no numbers",
    "result.nc is not a number anywhere",
    "result.nc is of an unknown study",
    "result.nc lacks entropy",
    "run.json has a corpus without sentences",
    "run.json has a model with a hostile name",
    "run.json has a study that is code",
    "run.json has a study that is markup",
    "run.json has an unknown study",
    "run.json has no model",
    "run.json has no options",
    "run.json has no study",
    "run.json is cut at 0.999",  # the end of the last line
    "run.json is of another version",
)

# What is wrong in these is seen where the examples of a head are read.
WRONG_IN_A_HEAD = (
    "examples have peaks that are not numbers",
    "examples have ranks that are null",
    "examples have weights that are null",
    "examples name inputs that are not there",
    "examples point behind the sentence",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A good run with few variables, so that it is read fast, and every spoilt copy of it."""
    folder = tmp_path_factory.mktemp("runs")
    good = write_run(folder / "good", "vig2019", layers=(0, 1), heads=3)
    save(load(good)[list(VARIABLES)], good / "result.nc")
    for name in ("spoilt", "good/shards", "good/figures", "good/tables"):
        (folder / name).mkdir()
    for _ in spoil(good, folder / "spoilt"):
        pass
    return folder


@pytest.fixture(scope="module")
def spoilt(folder: Path) -> dict[str, Path]:
    return {path.name: path for path in sorted((folder / "spoilt").iterdir()) if path.is_dir()}


def content_of(path: Path) -> Iterator[bytes]:
    files = [each for each in path.rglob("*") if each.is_file() and not each.is_symlink()]
    return (each.read_bytes() for each in files)


def answered(work: Callable[[], object], name: str) -> str:
    """What is said, or nothing if all went well; anything but a sentence in time is a failure."""
    start = time.process_time()
    try:
        work()
        said = ""
    except HeadscopeError as error:
        said = str(error)
    assert time.process_time() - start < SECONDS, name
    assert "\n" not in said and "\x1b" not in said and len(said) < 1500, name
    return said


@pytest.fixture(scope="module")
def library(spoilt: dict[str, Path], folder: Path) -> Iterator[Library]:
    """Every directory read in time; tests that only look at what was found share it."""
    library = Library([folder / "good", *spoilt.values()])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "_stamp", cache(runs._stamp))  # nothing changes any more
        assert answered(library.read_all, "all") == ""
        yield library


def test_every_directory_is_read_and_what_is_wrong_is_said(
    spoilt: dict[str, Path], library: Library
) -> None:
    assert len(spoilt) > 130
    silent = []
    for name, slug in zip(spoilt, library.slugs[1:], strict=True):
        run = library.run(slug).run
        assert (run.result is None) == (run.state != "complete"), name
        if run.state == "complete" and not run.notes:
            silent.append(name)
    assert set(silent) <= {*HARMLESS, *WRONG_IN_A_HEAD}


@pytest.mark.parametrize("name", WRONG_IN_A_HEAD)
def test_wrong_examples_are_refused_in_a_sentence_where_a_head_is_looked_at(
    spoilt: dict[str, Path], name: str
) -> None:
    records = read_run(spoilt[name]).records
    assert "cannot be read" in answered(lambda: exemplars_of(records, Head(1, 1)), name)


def test_a_report_is_written_or_refused_in_a_sentence(
    spoilt: dict[str, Path], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reports, "render_figure", lambda *_: {"svg": b"<svg/>"})
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    for name, path in spoilt.items():
        said = answered(lambda path=path: hs.report(path), name)
        if not said:
            assert SECRET not in (path / "report.html").read_text(encoding="utf-8"), name
    for path in (each for each in spoilt.values() if not (each / "figures").is_symlink()):
        assert not any(SECRET.encode() in content for content in content_of(path)), path.name
    assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == before
    assert not list(folder.rglob("escape*"))


def test_a_comparison_is_made_or_refused_in_a_sentence(
    library: Library, folder: Path, tmp_path: Path
) -> None:
    good, *others = (library.run(slug).run for slug in library.slugs)
    refused = 0
    for run in others:
        names = run.path.name, "good"
        compared = partial(compare_runs, run, good, names=names)
        refused += answered(lambda compared=compared: largest(compared(), 20), names[0]) != ""
    assert 0 < refused < len(others)
    with pytest.raises(RunError, match=r"result\.nc"):
        compare(folder / "spoilt" / "result.nc is missing", folder / "good")
    written = compare(folder / "good", folder / "good")
    assert write_csv(written, tmp_path / "all.csv") > 0


def questions(slug: str) -> list[tuple[Answer, list[str]]]:
    """Every address about a run, with its parts, also of things that the run may lack."""
    parts = {"run": slug, "head": "L1H1", "spec": "entropy", "input": "0", "a": slug, "b": "good"}
    about = [(answer, [parts[name] for name in answer.parts]) for answer in ANSWERS if answer.runs]
    both = next(answer for answer in ANSWERS if answer.parts == ["a", "b"])
    return [*about, (both, ["good", slug])]


def test_the_explorer_lists_every_run_and_answers_every_address(
    spoilt: dict[str, Path], library: Library
) -> None:
    app = create_app(library, Texts(None, None))
    with TestClient(app, "http://127.0.0.1", raise_server_exceptions=False) as visitor:
        session = visitor.get("/api/session").json()
        assert len(session["runs"]) == 1 + len(spoilt)
        assert SECRET not in str(session)
        assert visitor.get("/api/runs/good").json()["state"] == "complete"
        refused = library.slugs[1 + [*spoilt].index("result.nc lacks its heads")]
        for slug, allowed in (("good", (200, 409)), (refused, (200, 404, 409))):
            for answer, parts in questions(slug):
                path = re.sub(r"{.*?}", "{}", answer.path).format(*parts)
                assert visitor.get(f"/api/{path}").status_code in allowed, path
    sources = Sources(library, lambda: ModelFacts("", "none", ""), TextLimits(1, 1, 1))
    for slug in library.slugs:
        for answer, parts in questions(slug):
            start = time.process_time()
            try:
                sent = answer.content(sources, parts)
            except (RefusedError, HeadscopeError) as refusal:
                sent = str(refusal).encode()
            assert SECRET.encode() not in sent, (slug, answer.path)
            assert time.process_time() - start < SECONDS, (slug, answer.path)
