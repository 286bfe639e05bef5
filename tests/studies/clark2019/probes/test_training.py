"""Probes trained over a corpus: interrupted or not, the same numbers; split by documents."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

from headscope.model.untrained import untrained
from headscope.studies.clark2019.probes import training
from headscope.studies.clark2019.probes.trained_probes import Learner, Seeds
from headscope.studies.clark2019.probes.training import (
    GROUPS,
    Group,
    Outcome,
    ProbeStream,
    Schedule,
    evaluate,
    make_learners,
    split_documents,
    train,
)
from headscope.studies.clark2019.probes.trees import make_gold
from headscope.studies.clark2019.probes.vectors import InputEmbeddings
from headscope.text.corpus import Corpus
from tests.references.tiny_models import bidirectional_model, make_sentences

HEADS = 6


def stream(group: Group = "network") -> ProbeStream:
    model = bidirectional_model()
    networks = {
        "text": None,
        "random network": untrained(model, 0, with_embeddings=True),
        "network": model,
    }
    return ProbeStream(model, networks[group], InputEmbeddings.of_model(model), 128)


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "CHUNK", 8)
    monkeypatch.setattr(training, "CHUNKS_PER_CHECKPOINT", 2)


def learners(group: Group = "network") -> dict[str, Learner]:
    return make_learners(group, 2 * HEADS, 12, Seeds(2), has_special=True, rate=0.01)


def weights(trained: dict[str, Learner]) -> list[torch.Tensor]:
    return [p.detach().clone() for each in trained.values() for p in each.probe.parameters()]


def run(
    corpus: Corpus, group: Group, path: Path | None, stop: int | None = None, owner: str = ""
) -> dict:
    trained = learners(group)
    chunks: Iterator = train(trained, stream(group), corpus, Schedule(epochs=2), path, owner)
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


def outcome_of(trained: dict[str, Learner]) -> Outcome:
    return evaluate(trained, stream(), Corpus.from_sentences(make_sentences(12)))


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("stop", [2, 5])
def test_an_interrupted_training_has_the_same_learning_curve(tmp_path: Path, stop: int) -> None:
    corpus = Corpus.from_sentences(make_sentences(30))
    whole = outcome_of(run(corpus, "network", None))
    run(corpus, "network", tmp_path / "cut.npz", stop)
    again = outcome_of(run(corpus, "network", tmp_path / "cut.npz"))
    for name in GROUPS["network"]:
        assert np.array_equal(whole.curve[name], again.curve[name])


@pytest.mark.usefixtures("small_chunks")
def test_the_learning_curve_is_what_the_probe_knew_after_shares_of_the_training() -> None:
    corpus, schedule = Corpus.from_sentences(make_sentences(32)), Schedule(epochs=1)
    assert len(schedule.chunks(corpus)) == len(training.SHARES)
    trained, expected = learners(), []
    for _ in train(trained, stream(), corpus, schedule):
        expected.append(outcome_of(trained).right["attention_words"].sum(0))
    curve = outcome_of(trained).curve["attention_words"]
    assert np.array_equal(curve, np.stack(expected))
    assert len({tuple(row) for row in curve.tolist()}) > 1
    assert_same(trained, run_again(corpus, schedule))


def test_a_few_sentences_that_are_read_together_give_a_curve_of_different_probes() -> None:
    corpus = Corpus.from_sentences(make_sentences(12))
    trained = run_again(corpus, Schedule(epochs=1))["attention_words"]
    snapshots = [*trained.earlier, trained.probe]
    assert len(snapshots) == len(training.SHARES)
    for earlier, later in pairwise(snapshots):
        assert not torch.equal(next(earlier.parameters()), next(later.parameters()))


def test_a_small_corpus_is_read_several_times_unless_that_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(training, "LEAST_STEPS", 70)
    corpus = Corpus.from_sentences(make_sentences(30))
    for schedule, sentences in (
        (Schedule(), 90),
        (Schedule(epochs=1), 30),
        (Schedule(batch=2), 5 * 30),
        (Schedule(batch=4), 5 * 30),  # no more than five times
    ):
        assert sum(map(len, schedule.chunks(corpus))) == sentences
    assert sum(map(len, Schedule().chunks(Corpus.from_sentences(make_sentences(80))))) == 80


def run_again(corpus: Corpus, schedule: Schedule) -> dict[str, Learner]:
    trained = learners()
    for _ in train(trained, stream(), corpus, schedule):
        pass
    return trained


def test_words_are_counted_in_the_group_of_their_sentence() -> None:
    sentences = make_sentences(6)
    corpus = Corpus.from_sentences(sentences)
    found = evaluate(learners(), stream(), corpus, lambda sentence, number: number)
    for number, sentence in enumerate(sentences):
        words = sum(word.upos != "PUNCT" for word in sentence.words)
        assert found.words[number] == words
        alone = evaluate(learners(), stream(), Corpus.from_sentences([sentence]))
        for name in GROUPS["network"]:
            assert np.array_equal(found.right[name][number], alone.right[name].sum(0))


def test_the_control_task_gives_every_word_type_one_rule() -> None:
    sentences = make_sentences(40)
    gold = make_gold(sentences, training.NO_CLASSES)
    heads = training.control_heads(sentences, gold, seed=3)
    rules: dict[str, set[str]] = {}
    for row, sentence in zip(heads.tolist(), sentences, strict=True):
        last = len(sentence.words) - 1
        for place, word in enumerate(sentence.words):
            kinds = {"itself": place, "first": 0, "last": last}
            fit = {kind for kind, target in kinds.items() if row[place] == target}
            assert fit
            text = word.text.lower()
            rules[text] = rules.get(text, set(kinds)) & fit
    assert all(rules.values())
    assert len({next(iter(each)) for each in rules.values() if len(each) == 1}) > 1
    other = training.control_heads(sentences, gold, seed=4)
    assert not torch.equal(heads, other)


def test_a_probe_with_words_learns_the_control_task_and_does_not_change_the_other() -> None:
    corpus = Corpus.from_sentences(make_sentences(60))
    with_control = replace(stream("text"), control_seed=0)
    both = make_learners(
        "text", 2 * HEADS, 12, Seeds(2), has_special=True, rate=0.01, has_control=True
    )
    for _ in train(both, with_control, corpus, Schedule(epochs=4)):
        pass
    found = evaluate(both, with_control, corpus)
    assert found.right["distances_words control"].sum(0).min() > found.words.sum() / 2
    assert list(found.parameters) == list(found.curve) == ["distances_words"]
    plain = learners("text")
    for _ in train(plain, stream("text"), corpus, Schedule(epochs=4)):
        pass
    assert_same({"distances_words": both["distances_words"]}, plain)


@pytest.mark.usefixtures("small_chunks")
def test_a_checkpoint_that_is_damaged_or_of_another_run_is_not_trusted(tmp_path: Path) -> None:
    corpus, path = Corpus.from_sentences(make_sentences(16)), tmp_path / "cut.npz"
    whole = run(corpus, "network", None)
    run(corpus, "network", path, 2)
    path.write_bytes(path.read_bytes()[:100])
    assert_same(whole, run(corpus, "network", path))
    run(corpus, "network", path, 2, "another run")
    assert_same(whole, run(corpus, "network", path, owner="this run"))


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
        assert outcome.words.sum() == words
        assert set(outcome.right) == {"right_branching", *GROUPS[group]}
        assert outcome.right["right_branching"].sum(0).tolist() == [right]
    assert found["network"].arc_weights["attention"].shape == (2, 2 * HEADS)


def test_an_outcome_survives_its_file() -> None:
    outcome = evaluate(learners(), stream(), Corpus.from_sentences(make_sentences(5)))
    again = Outcome.unpack(outcome.pack())
    assert again.words.tolist() == outcome.words.tolist()
    assert (again.parameters, again.vectors) == (outcome.parameters, outcome.vectors)
    for kind in ("right", "curve", "arc_weights"):
        one, other = getattr(outcome, kind), getattr(again, kind)
        assert list(one) == list(other)
        assert all(np.array_equal(one[name], other[name]) for name in one)


def test_the_weight_of_a_head_on_arcs_is_what_the_probe_multiplies_it_with() -> None:
    trained = learners()
    outcome = evaluate(trained, stream(), Corpus.from_sentences(make_sentences(5)))
    learned = next(trained["attention"].probe.parameters()).detach().numpy()
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
