"""Documents drawn first and sentences from them; exemplars sought in more than the numbers are."""

from pathlib import Path

import numpy as np
import pytest

import headscope as hs
from headscope.errors import RunError
from headscope.results.records import KeptInput
from headscope.results.run import read_run
from headscope.studies.draw import pick_documents
from headscope.text.corpus import Corpus
from tests.references.tiny_models import causal_model, make_sentences, treebank


def names(corpus: Corpus) -> list[str]:
    return [sentence.document for sentence in corpus]


def inputs_of(path: Path) -> list[KeptInput]:
    """The inputs that a run shows."""
    run = read_run(path)
    numbers = np.unique(run.data["example_input"])
    return list(run.records.inputs(numbers[numbers >= 0].tolist()).values())


def test_documents_are_drawn_whole_and_in_order() -> None:
    corpus = treebank(80)
    drawn = pick_documents(corpus, 3, seed=1)
    assert len(set(names(drawn))) == 3 and len(drawn) == 30
    assert names(drawn) == sorted(names(drawn))
    assert drawn.fingerprint == pick_documents(corpus, 3, seed=1).fingerprint
    assert drawn.fingerprint != pick_documents(corpus, 3, seed=2).fingerprint
    assert pick_documents(corpus, 99, seed=1) is corpus


def test_a_sample_of_sentences_is_of_the_documents_drawn(tmp_path: Path) -> None:
    corpus = treebank(80)
    result = hs.study(
        "vig2019", causal_model(), corpus, tmp_path / "run", sentences=12, documents=2, seed=4
    )
    assert result.attrs["sentences"] == 12
    drawn = set(names(pick_documents(corpus, 2, seed=4)))
    assert {shown.document for shown in inputs_of(tmp_path / "run")} <= drawn


def test_exemplars_are_sought_in_more_sentences_than_the_numbers_are_from(tmp_path: Path) -> None:
    model, corpus = causal_model(), Corpus.from_sentences(make_sentences(60))
    result = hs.study(
        "vig2019", model, corpus, tmp_path / "run", sentences=20, exemplar_sentences=50, seed=2
    )
    assert result.attrs["sentences"] == 20
    whole = hs.study("vig2019", model, corpus.sample(50, 2), seed=2)
    for name in ("example_peak", "example_input"):
        np.testing.assert_array_equal(result[name], whole[name])
    assert not np.allclose(result["distance"], whole["distance"])
    texts = {sentence.text for sentence in corpus.sample(50, 2)}
    assert {shown.text for shown in inputs_of(tmp_path / "run")} <= texts
    again = hs.study(
        "vig2019", model, corpus, tmp_path / "run", sentences=20, exemplar_sentences=50, seed=2
    )
    np.testing.assert_array_equal(again["distance"], result["distance"])


def test_a_sample_for_exemplars_that_is_not_larger_is_refused() -> None:
    model, corpus = causal_model(), treebank(80)
    with pytest.raises(RunError, match="the numbers are from all of the corpus"):
        hs.study("vig2019", model, corpus, exemplar_sentences=20)
    with pytest.raises(RunError, match="the numbers are from 30 sentences"):
        hs.study("vig2019", model, corpus, sentences=30, exemplar_sentences=30)
    with pytest.raises(RunError, match="leave one of the two out"):
        hs.study("vig2019", model, corpus, sentences=5, exemplar_sentences=30, context=40)
