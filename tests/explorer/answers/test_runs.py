"""Runs of every condition are opened, and say what is the matter."""

from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from headscope.errors import RunError
from headscope.explorer.answers.runs import Library
from headscope.explorer.wire import RefusedError
from headscope.results.dataset import save
from headscope.results.records import EXAMPLES, INPUTS
from headscope.results.run import read_settings, write_settings
from tests.references.runs import unfinished_run, write_run


def opened(path: Path) -> Library:
    return Library([path])


def test_an_unfinished_run_says_how_far_it_is_and_how_to_finish_it(tmp_path: Path) -> None:
    half = opened(unfinished_run(tmp_path / "half", shards=3)).run("half")
    assert half.run.state == "unfinished"
    assert "3 of 5 shards are done" in half.run.notes[0]
    assert "headscope study vig2019 --model mini-gpt2" in half.run.notes[0]
    with pytest.raises(RefusedError, match="shards are done"):
        half.data


def test_a_run_that_finishes_while_it_is_open_becomes_complete(tmp_path: Path) -> None:
    library = opened(unfinished_run(tmp_path / "half"))
    assert library.run("half").run.state == "unfinished"
    finished = write_run(tmp_path / "other", "vig2019")
    for name in (EXAMPLES, INPUTS, "result.nc"):
        (finished / name).rename(tmp_path / "half" / name)
    assert library.run("half").run.state == "complete"


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"sentences": 1, "fingerprint": "6f6f94b6bbe052b4"}, "1 sentence of corpus 6f6f94b6"),
        ({"sentences": 2, "fingerprint": "6f6f94b6bbe052b4"}, "2 sentences of corpus 6f6f94b6"),
        ({"sentences": 9, "name": "demo", "path": None}, "9 sentences of demo"),
        ({"sentences": 9, "name": "ewt", "path": "/home/a/ewt.conllu"}, "9 sentences of ewt"),
        ({}, None),
    ],
)
def test_the_corpus_is_named_as_far_as_it_is_known(
    tmp_path: Path, said: dict[str, object], words: str | None
) -> None:
    path = write_run(tmp_path / "mini", "vig2019")
    write_settings(path, read_settings(path) | {"corpus": said})
    assert opened(path).run("mini").run.corpus == words


def test_a_run_of_an_older_version_is_shown_and_said_to_be(tmp_path: Path) -> None:
    path = write_run(tmp_path / "mini", "vig2019")
    write_settings(path, read_settings(path) | {"headscope": "0.0.1"})
    run = opened(path).run("mini").run
    assert run.state == "complete"
    assert "0.0.1" in run.notes[0]


@pytest.mark.parametrize("content", ["{", "[]", "\x00"])
def test_a_broken_description_does_not_hide_the_result(tmp_path: Path, content: str) -> None:
    path = write_run(tmp_path / "mini", "vig2019")
    (path / "run.json").write_text(content)
    run = opened(path).run("mini").run
    assert (run.state, run.study) == ("complete", "vig2019")
    assert "run.json" in run.notes[0]


def test_a_study_of_ones_own_is_shown_by_its_own_names(tmp_path: Path) -> None:
    path = tmp_path / "own"
    path.mkdir()
    values = np.arange(6.0).reshape(2, 3)
    data = xr.Dataset({"my_measure": (("layer", "head"), values)}, attrs={"study": "mine"})
    save(data.assign_coords(layer=[0, 1], head=[0, 1, 2]), path / "result.nc")
    own = opened(path).run("own")
    assert own.run.study == "mine"
    assert own.data["my_measure"].shape == (2, 3)


def test_what_is_no_run_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="is not a directory"):
        Library([tmp_path / "missing"])
    with pytest.raises(RunError, match=r"neither run\.json nor result\.nc"):
        Library([tmp_path])


def test_runs_of_the_same_name_get_different_short_names(tmp_path: Path) -> None:
    paths = [write_run(tmp_path / place / "mini run", "vig2019") for place in "abc"]
    assert Library(paths).slugs == ("mini-run", "mini-run-2", "mini-run-3")


def test_only_named_runs_are_found(library: Library) -> None:
    with pytest.raises(RefusedError, match="vig, vig-later, clark"):
        library.run("../vig")
