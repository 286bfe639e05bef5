"""What is measured and what is left out are declared together, so that both agree."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from headscope.engine.question import InputKind, Question, find_left_out, make_parts
from headscope.engine.setup import Setup
from headscope.studies import STUDIES, find_study
from headscope.text.corpus import Corpus
from tests.references.tiny_models import MODELS, annotated


def words_alone() -> Corpus:
    """A corpus without tags and trees."""
    nothing: dict[str, Any] = dict.fromkeys(("upos", "xpos", "head", "deprel"))
    sentences = [
        replace(sentence, words=tuple(replace(word, **nothing) for word in sentence.words))
        for sentence in annotated()
    ]
    return Corpus.from_sentences(sentences)


CORPORA: dict[str, Callable[[], Corpus]] = {"annotated": annotated, "words alone": words_alone}


def setup_of(study: str, model: str, corpus: str) -> Setup:
    declared, read, texts = find_study(study), MODELS[model](), CORPORA[corpus]()
    options = dict(declared.settle(read, texts, declared.with_options({})))
    return Setup(read, texts, options, declared.labels(texts), 64)


@pytest.mark.parametrize("corpus", list(CORPORA))
@pytest.mark.parametrize("model", list(MODELS))
@pytest.mark.parametrize("study", list(STUDIES))
def test_a_metric_is_made_exactly_if_no_reason_is_given_against_it(
    study: str, model: str, corpus: str
) -> None:
    setup, declared = setup_of(study, model, corpus), find_study(study)
    left_out, metrics = declared.left_out(setup), declared.metrics(setup)
    measured = {measure.name for metric in metrics.values() for measure in metric.measures}
    for kind in declared.inputs:
        for question in kind.questions:
            reason = question.unless(setup)
            for name in question.measures:
                assert left_out.get(name) == reason
            if reason is not None:
                assert measured.isdisjoint(question.measures) or not question.make(setup)


def test_what_a_question_cannot_have_is_left_out_with_its_reason() -> None:
    setup = setup_of("vig2019", next(iter(MODELS)), "annotated")
    possible = find_study("vig2019").inputs[0]
    impossible = Question(("a", "b"), unless=lambda setup: "it is too late")
    elsewhere = InputKind(possible.make, (impossible,))
    assert find_left_out((elsewhere,), setup) == {"a": "it is too late", "b": "it is too late"}
    (part,) = make_parts((elsewhere, possible), setup)  # without a metric nothing is read
    assert [metric.name for metric in part.metrics] == [
        m.name for m in make_parts((possible,), setup)[0].metrics
    ]


@pytest.mark.parametrize("model", list(MODELS))
def test_a_corpus_of_words_alone_says_what_to_do_about_tags_and_trees(model: str) -> None:
    for study in ("vig2019", "clark2019"):
        reasons = find_study(study).left_out(setup_of(study, model, "words alone"))
        of_labels = {name: why for name, why in reasons.items() if "headscope annotate" in why}
        trees = {"vig2019": "dependency_alignment", "clark2019": "relation_accuracy"}[study]
        assert of_labels[trees].startswith("the corpus has no dependency relations")
        assert ("pos_to" in of_labels) == (study == "vig2019")
