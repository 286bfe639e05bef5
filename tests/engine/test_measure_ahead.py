"""Shards prepared by other processes are those that this process would measure."""

import os
import signal
from dataclasses import replace
from typing import Any

import pytest
import torch

import headscope as hs
from headscope.engine import Inputs, Measuring, Part, Setup, measure
from headscope.errors import CorpusError, RunError
from headscope.studies import find_study
from headscope.text.corpus import Corpus
from headscope.workers import LocalEngine
from tests.references.float64_models import tiny_gpt2

pytestmark = pytest.mark.skipif(
    "fork" not in measure.get_all_start_methods(), reason="this system cannot fork"
)


@pytest.fixture(autouse=True)
def _two_readers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 3)


@pytest.fixture(scope="module")
def job() -> Measuring:
    corpus, study = Corpus.from_sentences(list(hs.demo_corpus())[:60]), find_study("vig2019")
    setup = Setup(tiny_gpt2(), corpus, study.with_options({}), study.labels(corpus), 512)
    return Measuring(setup, 1, study.parts)


def reading_with(job: Measuring, inputs: Any) -> Measuring:
    """The job with another way to make inputs."""

    def parts(setup: Setup) -> tuple[Part, ...]:
        parts = job.make_parts(setup)
        return tuple(replace(part, kind=replace(part.kind, make=inputs)) for part in parts)

    return replace(job, make_parts=parts)


def test_shards_are_the_same_however_they_were_prepared(job: Measuring) -> None:
    shards = job.setup.corpus.shards(20)
    state = torch.get_rng_state()
    assert list(job.run_ahead(shards)) == list(LocalEngine().run(job, shards))
    assert torch.equal(torch.get_rng_state(), state)  # drawn numbers are not touched


def test_inputs_are_made_by_other_processes_of_one_thread(job: Measuring) -> None:
    makers: list[tuple[int, int]] = []

    def note(setup: Setup, excerpt: Any, first: int) -> Inputs:
        made = job.parts[0].kind.make(setup, excerpt, first)
        return replace(made, words={"process": os.getpid(), "threads": torch.get_num_threads()})

    parts, shards = reading_with(job, note).parts, job.setup.corpus.shards(10)
    for (inputs,) in measure.read_ahead(job.setup, parts, shards):
        makers.append((inputs.words["process"], inputs.words["threads"]))
    assert len(makers) == 6
    assert len(set(makers)) == 2
    assert all(process != os.getpid() and threads == 1 for process, threads in makers)


def test_an_error_of_a_reader_stays_one_sentence(job: Measuring) -> None:
    def fail(setup: Setup, excerpt: Any, first: int) -> Inputs:
        raise CorpusError(f"Sentence {first} cannot be read.")

    with pytest.raises(CorpusError) as raised:
        list(reading_with(job, fail).run_ahead(job.setup.corpus.shards(20)))
    assert str(raised.value) == "Sentence 0 cannot be read."


def test_a_reader_that_dies_is_one_sentence(job: Measuring) -> None:
    def die(setup: Setup, excerpt: Any, first: int) -> Inputs:
        if first:
            os.kill(os.getpid(), signal.SIGKILL)
        return job.parts[0].kind.make(setup, excerpt, first)

    with pytest.raises(RunError, match="A process that prepared inputs died; if memory was short"):
        list(reading_with(job, die).run_ahead(job.setup.corpus.shards(20)))


def test_without_another_core_this_process_reads(
    job: Measuring, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    shards = job.setup.corpus.shards(20)
    assert list(job.run_ahead(shards)) == list(LocalEngine().run(job, shards))
