"""Inputs made in forked processes are those that this process would make."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from headscope.engine.job import Job

import headscope as hs
from headscope.engine import forward, prepare
from headscope.engine.part import Inputs
from headscope.engine.prepare import Readers, open_readers, read_inputs
from headscope.engine.setup import Setup
from headscope.metrics.metric import Sums
from headscope.studies import find_study
from headscope.text.corpus import Corpus
from headscope.workers import LocalPool
from tests.metrics.tiny_models import tiny_gpt2


@pytest.fixture(scope="module")
def setup() -> Setup:
    corpus = Corpus.from_sentences(list(hs.demo_corpus())[:60])
    study = find_study("vig2019")
    return Setup(tiny_gpt2(), corpus, study.with_options({}), study.labels(corpus), 512)


@pytest.fixture(scope="module")
def job(setup: Setup) -> Job:
    return Job(setup, find_study("vig2019").parts, 1, setup.model.fingerprint)


@pytest.fixture(params=[7, 1024], ids=["in pieces", "whole"])
def readers(
    job: Job, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Readers]:
    monkeypatch.setattr(prepare, "PIECE", request.param)
    with open_readers(job.setup, job.parts, job.setup.corpus.shards(25)) as found:
        if found is None:
            pytest.skip("this system cannot fork, or has one core")
        yield found


def test_columns_are_the_same(job: Job, readers: Readers) -> None:
    for shard in job.setup.corpus.shards(25):
        here, there = read_inputs(job.setup, job.parts, shard), readers.read(shard)
        for mine, theirs in zip(here, there, strict=True):
            assert mine.skipped == theirs.skipped
            for name in ("numbers", "groups", "lengths", "ids", "segments", "null", "arcs"):
                one, other = getattr(mine.columns, name), getattr(theirs.columns, name)
                np.testing.assert_array_equal(one, other, err_msg=name)
            assert list(mine.columns.labels) == list(theirs.columns.labels)
            for name, codes in mine.columns.labels.items():
                np.testing.assert_array_equal(codes, theirs.columns.labels[name])


def test_shards_are_the_same_however_they_were_prepared(job: Job, readers: Readers) -> None:
    shards = job.setup.corpus.shards(20)
    plain = [content for _, content in LocalPool().run(job, shards)]
    ahead = [content for _, content in LocalPool(2).run(replace(job, readers=readers), shards)]
    assert plain == ahead


@pytest.mark.parametrize("name", ["vig2019", "clark2019", "luger2026"])
def test_texts_counted_ahead_are_those_that_the_loop_counts(name: str, setup: Setup) -> None:
    study, corpus = find_study(name), setup.corpus
    given = {"context": 32} if name == "luger2026" else {}
    own = replace(setup, options=study.with_options(given), labels=study.labels(corpus))
    shard = corpus.shards(len(corpus))[0]
    counted: dict[str, Sums] = {}
    for part in study.parts(own):
        columns = part.read(own, shard, list(corpus)).columns
        ahead = prepare.count_texts(part.metrics, columns, is_causal=True)
        states = {metric.name: metric.zero(len(columns)) for metric in part.metrics}
        loop = forward._make_loop(part.metrics, states, own.model.device)
        for _ in forward._read_texts(own.model, columns, 64, loop):
            pass
        for metric, sums in ahead.items():
            for key, values in sums.items():
                np.testing.assert_allclose(values, states[metric].sums[key], rtol=1e-12)
        counted |= ahead
    assert any(counted.values())


def test_a_piece_without_inputs_leaves_the_others_as_they_are(job: Job) -> None:
    (part,), corpus = job.parts, job.setup.corpus
    made = part.read(job.setup, corpus.shards(20)[0], list(corpus)[:20])
    nothing = Inputs([], {"too long": 2}, made.words)
    joined = prepare.join_inputs(part, [nothing, made, nothing])
    assert joined.skipped["too long"] == 4 + made.skipped.get("too long", 0)
    assert joined.words == {name: 3 * count for name, count in made.words.items()}
    np.testing.assert_array_equal(joined.columns.ids, made.columns.ids)
    np.testing.assert_array_equal(joined.columns.arcs, made.columns.arcs)
