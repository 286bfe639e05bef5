"""A run directory as it is read: complete, unfinished or damaged, and how to go on."""

from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from headscope.errors import RunError
from headscope.head import Head
from headscope.results.dataset import save, without_stack
from headscope.results.examples import exemplars_of
from headscope.results.records import EXAMPLES, with_checksums
from headscope.results.run import find_run, read_finished, read_run, write_settings
from tests.references.runs import write_examples

ABOUT = {
    "study": "vig2019",
    "model": {"name": "mini-gpt2"},
    "corpus": {"fingerprint": "abcdef0123456789", "sentences": 1},
    "options": {"shard_sentences": 256},
}


def write_run(path: Path, result: xr.Dataset | None = None, **about: object) -> Path:
    path.mkdir(exist_ok=True)
    write_settings(path, ABOUT | about)
    if result is not None:
        save(result, path / "result.nc")
    return path


def one_head(**attributes: str) -> xr.Dataset:
    values = xr.DataArray([[1.0]], coords={"layer": [0], "head": [0]}, dims=["layer", "head"])
    return xr.Dataset({"x": values}, attrs=attributes)


def test_a_finished_run_is_read_by_its_directory_or_any_of_its_files(tmp_path: Path) -> None:
    result = one_head(study="vig2019")
    path = write_run(tmp_path / "run", result)
    for place in (path, str(path), path / "result.nc", path / "run.json"):
        assert find_run(place) == path
        run = read_finished(place)
        assert (run.state, run.study, run.model) == ("complete", "vig2019", "mini-gpt2")
        assert run.corpus == "1 sentence of corpus abcdef01"
        xr.testing.assert_identical(run.data, result)
        assert run.records.files == () and run.notes == ()


def test_the_corpus_is_named_without_its_place(tmp_path: Path) -> None:
    corpus = {"fingerprint": "ab", "sentences": 2, "name": "ewt", "path": "data/ewt.conllu"}
    run = read_run(write_run(tmp_path / "run", corpus=corpus))
    assert run.corpus == "2 sentences of ewt"


def test_an_unfinished_run_says_the_command_that_finishes_it(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run")
    (path / "shards").mkdir()
    (path / "shards" / "00000.npz").write_bytes(b"")
    run = read_run(path)
    assert run.state == "unfinished" and run.result is None
    command = f"headscope study vig2019 --model mini-gpt2 --corpus CORPUS --out {path}"
    assert "1 of 1 shards are done" in run.notes[-1] and command in run.notes[-1]
    with pytest.raises(RunError, match=r"has no result\.nc yet"):
        read_finished(path)
    with pytest.raises(RunError, match=r"has no result\.nc yet"):
        run.data


def test_a_damaged_result_and_a_directory_that_is_no_run_are_said(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run")
    (path / "result.nc").write_bytes(b"not a result")
    assert read_run(path).state == "damaged"
    with pytest.raises(RunError, match="cannot be read"):
        read_finished(path)
    (tmp_path / "no").mkdir()
    with pytest.raises(RunError, match=r"has no run\.json"):
        read_finished(tmp_path / "no")


def test_damaged_examples_are_a_note_beside_the_result(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run")
    save(with_checksums(one_head(), write_examples(path, (0,), 1)), path / "result.nc")
    assert len(exemplars_of(read_run(path).records, Head(0, 0))) == 3
    (path / EXAMPLES).write_bytes(b"broken")
    run = read_run(path)
    assert run.state == "complete" and run.records.files == ()
    assert "examples.parquet cannot be read" in run.notes[-1]


def test_a_run_of_an_older_version_opens_without_its_exemplars(tmp_path: Path) -> None:
    older = one_head(exemplars_sha256="5f", records_sha256='{"edges.parquet": "7a"}')
    path = write_run(tmp_path / "run", older)
    (path / "exemplars.parquet").write_bytes(b"of an older version")
    run = read_run(path)
    assert (run.state, run.notes, run.records.files) == ("complete", (), ())
    assert exemplars_of(run.records, Head(0, 0)) == []


def test_the_only_stack_of_an_encoder_decoder_model_is_no_dimension() -> None:
    one = xr.Dataset({"x": (("stack", "layer"), np.ones((1, 2)))})
    assert without_stack(one)["x"].dims == ("layer",)
    assert without_stack(xr.Dataset({"x": ("layer", [1.0])}))["x"].dims == ("layer",)


def test_the_command_that_finishes_a_run_quotes_what_the_run_says(tmp_path: Path) -> None:
    path = write_run(tmp_path / "my run", study="x; rm -r ~", model={"name": "$(id)\x1b[2J`id`"})
    command = read_run(path).notes[-1]
    assert "headscope study 'x; rm -r ~' --model '$(id)\ufffd[2J`id`' --corpus CORPUS" in command
    assert f"--out '{path}'" in command and "\x1b" not in command
