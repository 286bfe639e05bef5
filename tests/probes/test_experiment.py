"""Probes trained over a corpus: interrupted or not, the same numbers; split by documents."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from headscope.probes.stream import ProbeStream
from headscope.probes.trained import experiment
from headscope.probes.trained.embeddings import InputEmbeddings
from headscope.probes.trained.experiment import READS, Schedule, evaluate, make_learners, train
from headscope.probes.trained.random_network import randomise
from headscope.probes.trained.seeds import Seeds
from headscope.probes.trained.split import split_documents
from headscope.probes.trained.training import Learner
from headscope.text.corpus import Corpus
from tests.engine.tiny import bidirectional_model, make_sentences

HEADS = 6


@pytest.fixture
def stream() -> ProbeStream:
    model = bidirectional_model()
    return ProbeStream((model, randomise(model, 0)), InputEmbeddings.of_model(model), 128)


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiment, "CHUNK", 8)
    monkeypatch.setattr(experiment, "CHUNKS_PER_CHECKPOINT", 2)


def learners() -> dict[str, Learner]:
    return make_learners(2 * HEADS, 12, Seeds(2), has_special=True, rate=0.01)


def weights(trained: dict[str, Learner]) -> list[torch.Tensor]:
    return [p.detach().clone() for each in trained.values() for p in each.probe.parameters()]


def run(corpus: Corpus, stream: ProbeStream, path: Path, stop: int | None = None) -> dict:
    trained = learners()
    chunks: Iterator = train(trained, stream, corpus, Schedule(epochs=2), path)
    for number, _ in enumerate(chunks, start=1):
        if number == stop:
            break
    return trained


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("stop", [1, 3, 8])
def test_an_interrupted_training_ends_with_the_same_weights(
    stream: ProbeStream, tmp_path: Path, stop: int
) -> None:
    corpus = Corpus.from_sentences(make_sentences(30))
    whole = run(corpus, stream, tmp_path / "whole.npz")
    run(corpus, stream, tmp_path / "cut.npz", stop)
    resumed = run(corpus, stream, tmp_path / "cut.npz")
    for left, right in zip(weights(whole), weights(resumed), strict=True):
        assert torch.equal(left, right)


@pytest.mark.usefixtures("small_chunks")
def test_a_damaged_checkpoint_is_not_trusted(stream: ProbeStream, tmp_path: Path) -> None:
    corpus, path = Corpus.from_sentences(make_sentences(16)), tmp_path / "cut.npz"
    whole = run(corpus, stream, tmp_path / "whole.npz")
    run(corpus, stream, path, 2)
    path.write_bytes(path.read_bytes()[:100])
    for left, right in zip(weights(whole), weights(run(corpus, stream, path)), strict=True):
        assert torch.equal(left, right)


def test_every_probe_is_tested_on_every_word_but_punctuation(stream: ProbeStream) -> None:
    sentences = make_sentences(20)
    outcome = evaluate(learners(), stream, Corpus.from_sentences(sentences))
    words = sum(word.upos != "PUNCT" for each in sentences for word in each.words)
    assert outcome.words == words
    assert set(outcome.right) == {"right_branching", *READS}
    right = sum(
        word.upos != "PUNCT" and word.head == (i + 1 if i + 1 < len(each.words) else -1)
        for each in sentences
        for i, word in enumerate(each.words)
    )
    assert outcome.right["right_branching"].tolist() == [right]
    assert outcome.arc_weights["attention"].shape == (2, 2 * HEADS)


def test_the_weight_of_a_head_on_arcs_is_what_the_probe_multiplies_it_with(
    stream: ProbeStream,
) -> None:
    trained = learners()
    outcome = evaluate(trained, stream, Corpus.from_sentences(make_sentences(5)))
    learned = trained["attention"].probe.parameters()[0].detach().numpy()
    np.testing.assert_allclose(outcome.arc_weights["attention"], learned, rtol=1e-5)


def test_four_fifths_of_the_documents_are_for_training_and_none_is_in_both() -> None:
    corpus = Corpus.from_sentences(make_sentences(100))
    train_on, test_on = split_documents(corpus, seed=1)
    seen, unseen = ({each.document for each in part} for part in (train_on, test_on))
    assert (len(seen), len(unseen)) == (8, 2)
    assert not seen & unseen
    again = split_documents(corpus, seed=1)[1]
    assert again.fingerprint == test_on.fingerprint


def test_a_single_document_is_split_by_sentences() -> None:
    train_on, test_on = split_documents(Corpus.from_sentences(make_sentences(10)), seed=0)
    assert (len(train_on), len(test_on)) == (8, 2)
