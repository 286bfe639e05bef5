"""Two shards at once on a CPU: the bits of one after the other, and only where that is safe."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import pytest
import torch
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

import headscope as hs
from headscope.engine import forward, job
from headscope.engine.part import Part
from headscope.engine.setup import Setup
from headscope.model.model import Model
from headscope.studies import find_study, running
from headscope.text.corpus import Shard
from headscope.workers import LocalPool
from headscope.workers.threads import use_threads
from tests.engine.tiny import MODELS, causal_model, treebank

SECONDS = 60  # that a shard waits for another at most


@pytest.fixture(autouse=True)
def _two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "SHARD_SENTENCES", 16)
    monkeypatch.setattr(running, "choose_threads", lambda _: 2)


def read_shards(run: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (run / "shards").iterdir()}


def one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "_pool_for_shards", lambda *_: LocalPool(at_once=1))


@pytest.mark.parametrize("kind", MODELS)
def test_two_shards_at_once_have_the_bits_of_one_after_the_other(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    together, compute = Barrier(2), job.Job.compute

    def meet(self: job.Job, shard: Shard) -> job.Partial:
        together.wait(SECONDS)  # broken, and the study with it, unless two are in progress
        return compute(self, shard)

    corpus = treebank(60)
    monkeypatch.setattr(job.Job, "compute", meet)
    at_once = hs.study("vig2019", MODELS[kind](), corpus, tmp_path / "two", batch_tokens=60)
    monkeypatch.setattr(job.Job, "compute", compute)
    one_by_one(monkeypatch)
    in_turn = hs.study("vig2019", MODELS[kind](), corpus, tmp_path / "one", batch_tokens=60)
    xr.testing.assert_identical(at_once, in_turn)
    assert len(read_shards(tmp_path / "two")) == 4
    assert read_shards(tmp_path / "two") == read_shards(tmp_path / "one")
    said = json.loads((tmp_path / "two" / "run.json").read_text())
    assert (said["threads"], said["shard_threads"]) == (2, 1)


def test_a_run_goes_on_with_the_threads_it_began_with_however_many_cores_are_free_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = hs.study("vig2019", causal_model(), treebank(60), tmp_path / "whole")
    compute = job.Job.compute

    def stop(self: job.Job, shard: Shard) -> job.Partial:
        if shard.index == 2:
            raise KeyboardInterrupt
        return compute(self, shard)

    monkeypatch.setattr(job.Job, "compute", stop)
    with pytest.raises(KeyboardInterrupt):
        hs.study("vig2019", causal_model(), treebank(60), tmp_path / "run")
    kept = read_shards(tmp_path / "run")
    assert set(kept) == {"00000.npz", "00001.npz"}
    monkeypatch.setattr(job.Job, "compute", compute)
    monkeypatch.setattr(running, "choose_threads", lambda _: 7)
    xr.testing.assert_identical(
        hs.study("vig2019", causal_model(), treebank(60), tmp_path / "run"), whole
    )
    assert read_shards(tmp_path / "run") == read_shards(tmp_path / "whole")


def test_a_run_of_one_shard_has_all_threads(tmp_path: Path) -> None:
    hs.study("vig2019", causal_model(), treebank(16), tmp_path)
    said = json.loads((tmp_path / "run.json").read_text())
    assert (said["threads"], said["shard_threads"]) == (2, 2)


def test_threads_are_counted_in_every_thread_by_itself_and_put_back() -> None:
    found: dict[int, int] = {}
    inside, before = Barrier(2), torch.get_num_threads()

    def count(threads: int) -> None:
        with use_threads(threads):
            inside.wait(SECONDS)
            found[threads] = torch.get_num_threads()
            inside.wait(SECONDS)

    both = [Thread(target=count, args=(threads,)) for threads in (1, 3)]
    with use_threads(before):
        for each in both:
            each.start()
        for each in both:
            each.join()
    assert found == {1: 1, 3: 3}
    assert torch.get_num_threads() == before


@given(sentences=st.integers(1, 3000), most=st.integers(1, 300))
def test_shards_are_even_in_number_and_equal_in_size(sentences: int, most: int) -> None:
    size = job.balanced_size(sentences, most)
    count, last = divmod(sentences, size)
    if sentences <= most:
        assert size == most
    else:
        assert size <= most
        assert count * size + last == sentences
        whole = count + bool(last)
        assert whole <= 2 * -(-sentences // (2 * most))


def setup_of(model: Model, **options: Any) -> tuple[Setup, tuple[Part, ...]]:
    study, corpus = find_study("vig2019"), treebank(40)
    setup = Setup(model, corpus, study.with_options(options), study.labels(corpus), 128)
    return setup, study.parts(setup)


def divided(setup: Setup, parts: tuple[Part, ...], threads: int = 6) -> int:
    return job.threads_of_shard(threads, divided=job.can_divide(setup, parts))


@pytest.mark.parametrize(("threads", "each"), [(1, 1), (2, 1), (3, 1), (4, 2), (7, 3)])
def test_each_of_two_shards_has_half_of_the_threads(threads: int, each: int) -> None:
    assert divided(*setup_of(causal_model()), threads) == each


def test_long_inputs_have_all_threads() -> None:
    assert divided(*setup_of(causal_model(), context=32)) == 6


def test_metrics_that_run_the_network_or_keep_all_layers_have_all_threads() -> None:
    setup, (part,) = setup_of(causal_model())

    class Running:
        name = "running"

        def update_model(self, *_: Any) -> None: ...

    class Comparing:
        name = "comparing"

        def update_batch(self, *_: Any) -> None: ...

    for metric in (Running(), Comparing()):
        more: Any = (*part.metrics, metric)
        assert divided(setup, (replace(part, metrics=more),)) == 6


def test_batches_that_do_not_fit_twice_have_all_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    setup, parts = setup_of(causal_model())
    width = setup.model.network.config.n_embd
    one = 128 * 4 * (10 * setup.model.heads * forward.SENTENCE + 30 * width)
    monkeypatch.setattr(forward, "available_memory", lambda: 2 * one / forward.SHARE)
    assert divided(setup, parts) == 3
    monkeypatch.setattr(forward, "available_memory", lambda: 2 * one / forward.SHARE - 1)
    assert divided(setup, parts) == 6
    monkeypatch.setattr(forward, "available_memory", lambda: None)
    assert divided(setup, parts) == 3


def test_products_in_fewer_bits_are_a_setting_of_the_process_so_shards_take_turns() -> None:
    before = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("high")
        assert divided(*setup_of(causal_model())) == 6
    finally:
        torch.set_float32_matmul_precision(before)


class Counting(torch.nn.Module):
    """A module that keeps something of every pass; its code is nobody's we know."""

    def forward(self, given: torch.Tensor) -> torch.Tensor:
        self.seen = given.shape
        return given


def keep_state(network: Any) -> None:
    Counting.__module__ = "transformers.models.made_up"
    network.transformer.ln_f = torch.nn.Sequential(network.transformer.ln_f, Counting())


def add_own_code(network: Any) -> None:
    Counting.__module__ = "remote_code"
    keep_nothing = Counting()
    keep_nothing.forward = lambda given: given  # pyright: ignore[reportAttributeAccessIssue]
    norm = network.transformer.ln_f
    network.transformer.ln_f = torch.nn.Sequential(norm, keep_nothing)


def move_weights(network: Any) -> None:
    network.transformer.h[0].mlp._hf_hook = object()


def quantise(network: Any) -> None:
    class Packed(torch.nn.Parameter):
        pass

    weight = network.transformer.ln_f.weight
    network.transformer.ln_f.weight = Packed(weight.detach())


def set_positions_by_length(network: Any) -> None:
    network.config.rope_parameters = {"rope_type": "dynamic", "factor": 2.0}


@pytest.mark.parametrize(
    "change", [keep_state, add_own_code, move_weights, quantise, set_positions_by_length]
)
def test_a_network_that_may_not_be_shared_is_not(change: Callable[[Any], None]) -> None:
    model = causal_model.__wrapped__()  # not the one that other tests have
    assert job.can_share(model)
    change(model.network)
    assert not job.can_share(model)
    assert divided(*setup_of(model)) == 6
