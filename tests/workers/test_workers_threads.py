"""A block has exactly the threads it asks for; a run keeps the number it was started with."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import xarray as xr

import headscope as hs
from headscope.engine import Measuring, measure
from headscope.results.run import read_settings
from headscope.workers import use_threads
from tests.references.tiny_models import causal_model, treebank

SHARDS = 4


def read_shards(run: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (run / "shards").iterdir()}


@pytest.fixture
def threads_seen(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many threads every shard was computed with."""
    monkeypatch.setattr(measure, "SHARD_SENTENCES", 16)
    seen: list[int] = []
    compute = Measuring.compute

    def watch(self: Measuring, inputs: Any) -> bytes:
        seen.append(torch.get_num_threads())
        return compute(self, inputs)

    monkeypatch.setattr(Measuring, "compute", watch)
    return seen


def start_and_stop(out: Path, after: int) -> None:
    """A run that Ctrl-C ends after some shards."""
    compute, left = Measuring.compute, [after]

    def stop(self: Measuring, inputs: Any) -> bytes:
        if left[0] == 0:
            raise KeyboardInterrupt
        left[0] -= 1
        return compute(self, inputs)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Measuring, "compute", stop)
        with pytest.raises(KeyboardInterrupt):
            hs.study("vig2019", causal_model(), treebank(60), out, untrained=False)


def test_threads_are_put_back_after_an_error() -> None:
    before = torch.get_num_threads()
    seen: list[int] = []

    def fail() -> None:
        with use_threads(before + 2):
            seen.append(torch.get_num_threads())
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert seen == [before + 2]
    assert torch.get_num_threads() == before


def test_a_run_records_the_threads_of_torch_and_uses_all_of_them(
    tmp_path: Path, threads_seen: list[int]
) -> None:
    with use_threads(2):
        hs.study("vig2019", causal_model(), treebank(60), tmp_path, untrained=False)
    assert threads_seen == [2] * SHARDS
    assert read_settings(tmp_path)["threads"] == 2
    assert "shard_threads" not in read_settings(tmp_path)


def test_a_run_goes_on_with_the_threads_it_began_with(
    tmp_path: Path, threads_seen: list[int]
) -> None:
    with use_threads(2):
        whole = hs.study(
            "vig2019", causal_model(), treebank(60), tmp_path / "whole", untrained=False
        )
        start_and_stop(tmp_path / "run", 2)
    assert set(read_shards(tmp_path / "run")) == {"00000.npz", "00001.npz"}
    threads_seen.clear()
    with use_threads(3):
        resumed = hs.study(
            "vig2019", causal_model(), treebank(60), tmp_path / "run", untrained=False
        )
    assert threads_seen == [2, 2]
    xr.testing.assert_identical(resumed, whole)
    assert read_shards(tmp_path / "run") == read_shards(tmp_path / "whole")


def test_workers_are_imported_without_torch() -> None:
    code = "import sys, headscope.workers.ray; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
