"""Probes trained over a corpus: interrupted or not, the same numbers; split by documents."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from headscope.probes.trained import experiment
from headscope.probes.trained.experiment import (
    GROUPS,
    Group,
    Outcome,
    ProbeStream,
    Schedule,
    evaluate,
    make_learners,
    randomise,
    split_documents,
    train,
)
from headscope.probes.trained.probes import Seeds
from headscope.probes.trained.training import Learner
from headscope.probes.trained.vectors import InputEmbeddings
from headscope.text.corpus import Corpus
from tests.engine.tiny import bidirectional_model, make_sentences

HEADS = 6


def stream(group: Group = "network") -> ProbeStream:
    model = bidirectional_model()
    networks = {"text": None, "random network": randomise(model, 0), "network": model}
    return ProbeStream(model, networks[group], InputEmbeddings.of_model(model), 128)


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiment, "CHUNK", 8)
    monkeypatch.setattr(experiment, "CHUNKS_PER_CHECKPOINT", 2)


def learners(group: Group = "network") -> dict[str, Learner]:
    return make_learners(group, 2 * HEADS, 12, Seeds(2), has_special=True, rate=0.01)


def weights(trained: dict[str, Learner]) -> list[torch.Tensor]:
    return [p.detach().clone() for each in trained.values() for p in each.probe.parameters()]


def run(corpus: Corpus, group: Group, path: Path | None, stop: int | None = None) -> dict:
    trained = learners(group)
    chunks: Iterator = train(trained, stream(group), corpus, Schedule(epochs=2), path)
    for number, _ in enumerate(chunks, start=1):
        if number == stop:
            break
    return trained


def assert_same(left: dict[str, Learner], right: dict[str, Learner]) -> None:
    for one, other in zip(weights(left), weights(right), strict=True):
        assert torch.equal(one, other)


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("group", list(GROUPS))
@pytest.mark.parametrize("stop", [1, 3, 8])
def test_an_interrupted_training_ends_with_the_same_weights(
    group: Group, tmp_path: Path, stop: int
) -> None:
    corpus = Corpus.from_sentences(make_sentences(30))
    whole = run(corpus, group, None)
    run(corpus, group, tmp_path / "cut.npz", stop)
    assert_same(whole, run(corpus, group, tmp_path / "cut.npz"))


@pytest.mark.usefixtures("small_chunks")
def test_a_damaged_checkpoint_is_not_trusted(tmp_path: Path) -> None:
    corpus, path = Corpus.from_sentences(make_sentences(16)), tmp_path / "cut.npz"
    whole = run(corpus, "network", None)
    run(corpus, "network", path, 2)
    path.write_bytes(path.read_bytes()[:100])
    assert_same(whole, run(corpus, "network", path))


def test_a_corpus_without_trees_leaves_the_probes_untrained(tmp_path: Path) -> None:
    plain = [replace(each, words=()) for each in make_sentences(8)]
    corpus, path = Corpus.from_sentences(plain), tmp_path / "probes.npz"
    assert_same(run(corpus, "text", path), learners("text"))
    assert_same(run(corpus, "text", path), learners("text"))


def test_every_probe_is_tested_on_every_word_but_punctuation() -> None:
    sentences = make_sentences(20)
    corpus = Corpus.from_sentences(sentences)
    found = {group: evaluate(learners(group), stream(group), corpus) for group in GROUPS}
    words = sum(word.upos != "PUNCT" for each in sentences for word in each.words)
    right = sum(
        word.upos != "PUNCT" and word.head == (i + 1 if i + 1 < len(each.words) else -1)
        for each in sentences
        for i, word in enumerate(each.words)
    )
    for group, outcome in found.items():
        assert group in GROUPS
        assert outcome.words == words
        assert set(outcome.right) == {"right_branching", *GROUPS[group]}
        assert outcome.right["right_branching"].tolist() == [right]
    assert found["network"].arc_weights["attention"].shape == (2, 2 * HEADS)


def test_an_outcome_survives_its_file() -> None:
    outcome = evaluate(learners(), stream(), Corpus.from_sentences(make_sentences(5)))
    again = Outcome.unpack(outcome.pack())
    assert (again.words, again.vectors) == (outcome.words, outcome.vectors)
    assert again.parameters == outcome.parameters
    for kind in ("right", "arc_weights"):
        one, other = getattr(outcome, kind), getattr(again, kind)
        assert list(one) == list(other)
        assert all(np.array_equal(one[name], other[name]) for name in one)


def test_the_weight_of_a_head_on_arcs_is_what_the_probe_multiplies_it_with() -> None:
    trained = learners()
    outcome = evaluate(trained, stream(), Corpus.from_sentences(make_sentences(5)))
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
