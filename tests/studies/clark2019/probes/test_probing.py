"""Probes and examples as work for the engine: in pieces, in any process, to the same bits."""

import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from msgspec import msgpack

import headscope as hs
from headscope.engine import Setup
from headscope.results import replicates
from headscope.studies import find_study
from headscope.studies.clark2019.probes import training
from headscope.studies.clark2019.probes.examples import ExampleStage, HeadExample, Shown, Watching
from headscope.studies.clark2019.probes.probing import NOTHING_LEFT, ProbeStage, corpora_of
from headscope.studies.clark2019.probes.trained_probes import Learner
from headscope.studies.clark2019.probes.training import GROUPS, PROBES, Outcome
from headscope.studies.clark2019.probes.trees import ParseBatch
from headscope.text.corpus import Corpus
from tests.references.tiny_models import MODELS, annotated
from tests.studies.clark2019.corpora import CHEAP, make_setup

NOWHERE = Path("no such folder")  # as the run directory is for a worker on another machine
BOTH = pytest.mark.parametrize("kind", list(MODELS))


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "CHUNK", 8)
    monkeypatch.setattr(training, "CHUNKS_PER_CHECKPOINT", 1)


def outcomes(setup: Setup, folder: Path = NOWHERE) -> dict[str, bytes]:
    stage, result = ProbeStage(), xr.Dataset()
    work = stage.work(setup, result, 1, folder)
    work.open()
    return {group: work(group) for group in stage.pieces(setup, result)}


@BOTH
def test_the_groups_train_every_probe_once(kind: str) -> None:
    setup = make_setup(annotated(20), kind, probe_seeds=2)
    found = {group: Outcome.unpack(each) for group, each in outcomes(setup).items()}
    trained = [name for each in found.values() for name in each.parameters]
    assert sorted([*trained, "right_branching"]) == sorted(PROBES)
    assert list(found) == list(GROUPS)


@BOTH
def test_the_training_of_a_group_is_the_same_in_another_process(kind: str) -> None:
    setup = make_setup(annotated(20), kind, probe_seeds=2)
    here = outcomes(setup)
    work = pickle.loads(pickle.dumps(ProbeStage().work(setup, xr.Dataset(), 1, NOWHERE)))
    work.open()
    assert {group: work(group) for group in reversed(list(GROUPS))} == here


class Lessons:
    """Counts what probes are taught, and fails at one of the lessons."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, fatal: int | None = None) -> None:
        self.count = 0
        learn = Learner.learn

        def counted(learner: Learner, batch: ParseBatch) -> float:
            self.count += 1
            if self.count == fatal:
                raise KeyboardInterrupt
            return learn(learner, batch)

        monkeypatch.setattr(Learner, "learn", counted)


@pytest.mark.usefixtures("small_chunks")
def test_a_run_killed_in_the_middle_of_training_resumes_to_the_same_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(name: str) -> xr.Dataset:
        model = MODELS["bidirectional"]()
        return hs.study("clark2019", model, annotated(60), tmp_path / name, **CHEAP)

    with monkeypatch.context() as patch:
        lessons = Lessons(patch)
        whole = run("whole")
    with monkeypatch.context() as patch:
        Lessons(patch, fatal=10)
        with pytest.raises(KeyboardInterrupt):
            run("cut")
    with monkeypatch.context() as patch:
        rest = Lessons(patch)
        xr.testing.assert_identical(run("cut"), whole)
    assert rest.count == lessons.count - 8  # the first chunk was kept


def test_probes_that_are_not_wanted_have_no_pieces() -> None:
    setup = make_setup(annotated(10), "causal", probes=False)
    assert ProbeStage().pieces(setup, xr.Dataset()) == ()
    result = xr.Dataset(attrs={"left_out": "{}"})
    xr.testing.assert_identical(ProbeStage().finish(setup, result, {}, NOWHERE), result)


def test_probes_without_a_word_to_test_on_are_left_out() -> None:
    setup = make_setup(annotated(20), "causal", probe_seeds=1)
    nothing = Outcome({}, np.zeros(replicates.GROUPS), {}, {}, {}, "").pack()
    result = xr.Dataset(attrs={"left_out": "{}"})
    found = ProbeStage().finish(setup, result, dict.fromkeys(GROUPS, nothing), NOWHERE)
    assert NOTHING_LEFT in found.attrs["left_out"]


def test_what_probes_are_tested_on_is_not_what_they_are_trained_on() -> None:
    train, test = corpora_of(make_setup(annotated(60), "causal"))
    assert isinstance(train, Corpus)
    assert not {each.document for each in train} & {each.document for each in test}


@BOTH
def test_examples_are_the_same_in_another_process(kind: str) -> None:
    corpus = annotated(60)
    result = hs.study("clark2019", MODELS[kind](), corpus, **CHEAP, probes=False)
    setup = make_setup(corpus, kind, **CHEAP, probes=False)
    stage = ExampleStage()
    pieces = stage.pieces(setup, result)
    work = pickle.loads(pickle.dumps(stage.work(setup, result, 1, NOWHERE)))
    work.open()
    made = {piece: work(piece) for piece in reversed(pieces)}
    bare = result.drop_vars([name for name in result.data_vars if str(name).startswith("figure5")])
    again = stage.finish(setup, bare, made, NOWHERE)
    assert pieces
    for name in ("figure5_weights", "figure5_words", "figure5_gold"):
        xr.testing.assert_equal(again[name], result[name])


def unpack(content: bytes) -> list[HeadExample]:
    return msgpack.decode(content, type=list[HeadExample])


@BOTH
def test_a_head_is_shown_on_its_clearest_sentence_and_on_one_drawn(kind: str) -> None:
    setup = make_setup(annotated(60), kind, **CHEAP, probes=False, figure5_special=True)
    plain = make_setup(annotated(60), kind, **CHEAP, probes=False)
    shown = Shown("title", 1, "obj", "dependent_to_head")
    clearest, drawn = unpack(Watching(setup, 1)(shown))
    assert clearest.title.startswith("title\nclearest of ")
    assert drawn.title == "title\ndrawn at random" and drawn.words != clearest.words
    bare = unpack(Watching(plain, 1)(shown))
    for with_special, without in zip((clearest, drawn), bare, strict=True):
        before = after = int(kind == "bidirectional")  # the causal one has no special tokens
        stop = before + len(without.words)
        assert with_special.words[before:stop] == without.words
        assert len(with_special.words) == stop + after
        weights = np.array(with_special.weights)
        np.testing.assert_array_equal(weights[before:stop, before:stop], without.weights)
        shifted = {(query + before, key + before) for query, key in without.gold}
        assert with_special.gold == shifted
        assert weights.sum(1) == pytest.approx(1, abs=1e-5)
    other = replace(plain, seed=plain.seed + 1)
    again = unpack(Watching(other, 1)(shown))
    assert again[0].words == bare[0].words and again[1].words != bare[1].words


def test_every_variable_of_a_stage_has_a_measure() -> None:
    named = {
        name
        for measure in find_study("clark2019").measures
        for name in (measure.name, *measure.also)
    }
    assert {"behaviour", "parsing_uas", "probe_weight", "figure5_weights"} <= named
