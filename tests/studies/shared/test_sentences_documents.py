"""Documents as inputs: what goes into them, and that every way of looking gives the same result."""

import json
from functools import cache
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import headscope as hs
from headscope.engine import Inputs, Setup, forward, measure, shards_of_documents
from headscope.errors import RunError
from headscope.model.model import Model
from headscope.results.measure import heads_of
from headscope.results.run import read_run
from headscope.studies import find_study, running
from headscope.studies.draw import draw_documents
from headscope.text.corpus import Corpus
from headscope.text.segments import Excerpt
from headscope.text.sentence import Sentence, Word
from tests.contracts.families import FAMILIES
from tests.references.numbers import same_numbers
from tests.references.tiny_models import MODELS, causal_model, make_sentences, treebank

CONTEXT = 40
each_model = pytest.mark.parametrize("kind", MODELS)


def setup_of(model: Model, corpus: Corpus, context: int | None) -> Setup:
    study = find_study("vig2019")
    options = study.with_options({"context": context})
    return Setup(model, corpus, options, study.labels(corpus), 64)


def inputs_of(setup: Setup) -> Inputs:
    (part,) = find_study("vig2019").parts(setup)
    return part.kind.make(setup, Excerpt(list(setup.corpus)), 0)


def same(left: xr.Dataset, right: xr.Dataset, tolerance: float) -> None:
    """Whether two results agree."""
    assert set(left.data_vars) == set(right.data_vars)
    for name in left.data_vars:
        values, others = left[name].values, right[name].values
        if values.dtype.kind == "U":
            assert (values == others).all(), name
            continue
        np.testing.assert_allclose(
            values, others, rtol=tolerance, atol=tolerance, err_msg=str(name)
        )


@each_model
def test_inputs_are_consecutive_sentences_of_one_document_up_to_the_context(kind: str) -> None:
    corpus = treebank(60)
    made = inputs_of(setup_of(MODELS[kind](), corpus, CONTEXT))
    sentences = list(corpus)
    starts = [example.number for example in made.examples]
    stops = [*starts[1:], len(sentences)]
    for example, start, stop in zip(made.examples, starts, stops, strict=True):
        assert len(example.tokens) <= CONTEXT
        assert example.sentence is not None
        assert example.sentence.text == " ".join(each.text for each in sentences[start:stop])
        assert len({each.document for each in sentences[start:stop]}) == 1
    assert starts[0] == 0 and len(starts) < len(sentences) / 2


@each_model
def test_labels_and_arcs_are_those_of_the_sentences_one_after_the_other(kind: str) -> None:
    model, corpus = MODELS[kind](), treebank(60)
    single = {each.number: each for each in inputs_of(setup_of(model, corpus, None)).examples}
    made = inputs_of(setup_of(model, corpus, CONTEXT))
    starts = [*(example.number for example in made.examples), len(corpus)]
    for example, stop in zip(made.examples, starts[1:], strict=True):
        parts = [single[number] for number in range(example.number, stop)]
        inner = [[i for i, s in enumerate(part.tokens.special) if not s] for part in parts]
        real = [place for place, special in enumerate(example.tokens.special) if not special]
        if len(real) != sum(map(len, inner)):
            continue  # a tokenizer may cut the first word after a space in another way
        for name in ("tag", "deprel"):
            wanted = [p.labels[name][i] for p, own in zip(parts, inner, strict=True) for i in own]
            assert [example.labels[name][place] for place in real] == wanted
        arcs, first = [], 0
        for part, own in zip(parts, inner, strict=True):
            shift = {i: real[first + n] for n, i in enumerate(own)}
            arcs += [(shift[a], shift[b]) for a, b in part.arcs or ()]
            first += len(own)
        assert sorted(example.arcs or ()) == sorted(arcs)


@each_model
def test_nulls_are_those_of_the_whole_input(kind: str) -> None:
    model = MODELS[kind]()
    for example in inputs_of(setup_of(model, treebank(60), CONTEXT)).examples:
        size = len(example.tokens)
        wanted = {0} if model.is_causal else {0, size - 1}
        assert {place for place, null in enumerate(example.null) if null} == wanted


def test_a_sentence_longer_than_the_context_is_left_out_and_counted() -> None:
    long_one = Sentence("gardener " * 30, (Word("gardener", 0, 8, upos="NOUN"),), document="d0")
    corpus = Corpus.from_sentences([*make_sentences(3), long_one, *make_sentences(2, seed=1)])
    made = inputs_of(setup_of(causal_model(), corpus, 24))
    assert sum(made.skipped.values()) >= 1
    assert all(example.number != 3 and len(example.tokens) <= 24 for example in made.examples)


@cache
def dense_study(kind: str) -> xr.Dataset:
    return hs.study("vig2019", MODELS[kind](), treebank(80), context=CONTEXT, attention="dense")


@each_model
@pytest.mark.parametrize("way", ["rows", "fused"])
def test_every_way_of_looking_gives_the_same_result(kind: str, way: str, tmp_path: Path) -> None:
    model, corpus, dense = MODELS[kind](), treebank(80), dense_study(kind)
    found = hs.study("vig2019", model, corpus, tmp_path, context=CONTEXT, attention=way)
    same(found, dense, 1e-5)
    settings = json.loads((tmp_path / "run.json").read_text())
    assert settings["options"]["attention"] == settings["attention"] == way


def test_the_way_is_chosen_by_length_and_written_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    show = forward.show_layers

    def watch(*args: object) -> None:
        seen.append(str(args[3]))
        show(*args)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr("headscope.engine.forward.show_layers", watch)
    monkeypatch.setattr(forward, "DENSE_TOKENS", 20)
    monkeypatch.setattr(running, "DENSE_TOKENS", 20)
    hs.study("vig2019", causal_model(), treebank(40), tmp_path, context=CONTEXT)
    assert set(seen) - {"dense"} == {"fused"}
    written = json.loads((tmp_path / "run.json").read_text())
    assert written["attention"] == "dense up to 20 tokens, fused beyond"


def test_sentences_stay_whole_matrices_and_do_not_depend_on_the_new_options(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(forward, "DENSE_TOKENS", 2)
    monkeypatch.setattr(Model, "forward_fused", lambda *_, **__: pytest.fail("not dense"))
    monkeypatch.setattr("headscope.model.model.capture_rows", lambda *_: pytest.fail("not dense"))
    found = hs.study("vig2019", causal_model(), treebank(40))
    again = hs.study("vig2019", causal_model(), treebank(40), context=None, attention=None)
    same_numbers(found, again)


def test_shards_hold_whole_documents_and_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = treebank(80)
    shards = shards_of_documents(corpus, 15)
    assert [(shard.start, shard.stop) for shard in shards] == [
        (0, 20),
        (20, 40),
        (40, 60),
        (60, 80),
    ]
    one = hs.study("vig2019", causal_model(), corpus, context=CONTEXT)
    monkeypatch.setattr(measure, "SHARD_SENTENCES", 15)
    many = hs.study("vig2019", causal_model(), corpus, context=CONTEXT)
    same(many, one, 1e-5)


def test_a_draw_takes_whole_documents() -> None:
    drawn = draw_documents(treebank(80), 25, seed=1)
    runs = [len(list(run)) for _, run in groupby(drawn, key=lambda each: each.document)]
    assert runs == [10, 10, 10]
    assert drawn.fingerprint == draw_documents(treebank(80), 25, seed=1).fingerprint
    assert drawn.fingerprint != draw_documents(treebank(80), 25, seed=2).fingerprint


def test_examples_show_the_tokens_of_their_document(tmp_path: Path) -> None:
    hs.study("vig2019", causal_model(), treebank(80), tmp_path, context=CONTEXT)
    run = read_run(tmp_path)
    examples = [example for head in heads_of(run.data) for example in run.records.examples(*head)]
    assert len(examples) == (run.data["example_input"] >= 0).sum()
    assert max(max(example.query) for example in examples) > 15  # beyond any single sentence
    inputs = run.records.inputs(example.input for example in examples)
    for example in examples:
        assert max(*example.query, *example.key) < len(inputs[example.input].tokens)


def test_a_context_beyond_the_models_positions_is_refused() -> None:
    with pytest.raises(RunError, match=r"positions for 48 tokens.*give --context 48 or less"):
        hs.study("vig2019", causal_model(), treebank(40), context=49)
    with pytest.raises(RunError, match="of at least 2 or none, not 1"):
        hs.study("vig2019", causal_model(), treebank(40), context=1)
    with pytest.raises(RunError, match="clark2019 has no option 'context'"):
        hs.study("clark2019", causal_model(), treebank(40), context=20)


def test_a_way_that_the_model_cannot_go_is_refused_with_the_reason() -> None:
    with pytest.raises(RunError, match="dense, rows, fused or none, not 'sparse'"):
        hs.study("vig2019", causal_model(), treebank(40), attention="sparse")
    capped = next(family for family in FAMILIES if family.name == "Gemma 2").model()
    with pytest.raises(RunError, match="Gemma 2 cannot run with attention=fused: its weights"):
        hs.study("vig2019", capped, treebank(40), attention="fused")
