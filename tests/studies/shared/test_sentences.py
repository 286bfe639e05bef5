"""Inputs of vig2019 against a plain reading, character by character and pair by pair."""

from collections import Counter
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import headscope as hs
from headscope.engine import Setup
from headscope.model.model import Model
from headscope.observe import NO_LABEL, Example
from headscope.studies import find_study
from headscope.studies.shared.sentences import sentence_inputs
from headscope.text.alignment import BARE, SEVERAL, SPLIT, WORDS
from headscope.text.corpus import Corpus
from headscope.text.sentence import ROOT, Sentence, Word
from tests.references.random_sentences import sentences

FUSED = Sentence(
    "Il parle du chat.",
    (
        Word("Il", 0, 2, upos="PRON", head=1, deprel="nsubj"),
        Word("parle", 3, 8, upos="VERB", head=ROOT, deprel="root"),
        Word("de", 9, 11, upos="ADP", head=4, deprel="case"),
        Word("le", 9, 11, upos="DET", head=4, deprel="det"),
        Word("chat", 12, 16, upos="NOUN", head=1, deprel="obl"),
        Word(".", 16, 17, upos="PUNCT", head=1, deprel="punct"),
    ),
)


@pytest.fixture(scope="module", params=["mini-gpt2", "mini-bert"])
def model(request: pytest.FixtureRequest) -> Model:
    return bundled(request.param)


@cache
def bundled(name: str) -> Model:
    return hs.load(name)


def setup_of(model: Model, corpus: Corpus, alignment: str = "overlap") -> Setup:
    study = find_study("vig2019")
    options = study.with_options({"alignment": alignment})
    return Setup(model, corpus, options, study.labels(corpus), 1024)


def word_of(sentence: Sentence, start: int, end: int) -> set[int]:
    """The words that have a character between start and end."""
    return {
        place
        for place, word in enumerate(sentence.words)
        if any(word.start <= character < word.end for character in range(start, end))
    }


def owners(example: Example, sentence: Sentence) -> list[int | None]:
    """The word with which every token shares the most characters, the earlier where equal."""
    encoded, own = example.tokens, []
    for (start, end), special in zip(encoded.offsets, encoded.special, strict=True):
        best, most = None, 0
        for place, word in enumerate(sentence.words):
            common = sum(word.start <= character < word.end for character in range(start, end))
            if common > most and not special:
                best, most = place, common
        own.append(best)
    return own


def check_tokens(example: Example, sentence: Sentence, setup: Setup) -> None:
    """Labels of every token, and arcs of every pair of tokens."""
    own = owners(example, sentence)
    tags = "upos" if setup.corpus.has("upos") else "xpos"
    for name, field in (("tag", tags), ("deprel", "deprel")):
        for token, word in enumerate(own):
            if name in setup.labels:
                wanted = None if word is None else getattr(sentence.words[word], field)
                code = example.labels[name][token]
                assert (None if code == NO_LABEL else setup.labels[name][code]) == wanted
    related = {
        (above, below)
        for above, parent in enumerate(own)
        for below, child in enumerate(own)
        if parent is not None and child is not None and sentence.words[child].head == parent
    }
    assert sorted(example.arcs or ()) == sorted(related)


def counts_of(examples: list[Example], drawn: list[Sentence]) -> dict[str, int]:
    """How words and tokens meet, by looking at every token."""
    counts: Counter[str] = Counter(dict.fromkeys((WORDS, SPLIT, SEVERAL, BARE), 0))
    for example in examples:
        sentence, encoded = drawn[example.number - 7], example.tokens
        own = owners(example, sentence)
        pieces = [own.count(place) for place in range(len(sentence.words))]
        counts[WORDS] += len(pieces)
        counts[SPLIT] += sum(count > 1 for count in pieces)
        counts[BARE] += pieces.count(0)
        for span, special in zip(encoded.offsets, encoded.special, strict=True):
            counts[SEVERAL] += not special and len(word_of(sentence, *span)) > 1
    return dict(counts)


@pytest.mark.parametrize("alignment", ["overlap", "strict", "words"])
@given(drawn=st.lists(sentences(), min_size=1, max_size=4))
@settings(max_examples=40, deadline=None)
def test_tokens_carry_the_labels_and_arcs_of_their_words(
    model: Model, alignment: str, drawn: list[Sentence]
) -> None:
    corpus = Corpus.from_sentences(drawn)
    setup = setup_of(model, corpus, alignment)
    made = sentence_inputs(setup, drawn, 7)
    if alignment != "strict":
        assert {*made.skipped} <= {"too long", "empty"}
    assert dict(made.words) == (counts_of(list(made.examples), drawn) if setup.labels else {})
    if alignment == "words":
        assert not made.words.get(SEVERAL)
    for example in made.examples:
        sentence = drawn[example.number - 7]
        assert list(example.null) == [
            token == 0 if model.is_causal else special
            for token, special in enumerate(example.tokens.special)
        ]
        if setup.labels:
            check_tokens(example, sentence, setup)
    assert len(made.examples) + sum(made.skipped.values()) == len(drawn)
    assert not Counter(made.skipped)["alignment: shared"]


@given(drawn=st.lists(sentences(), min_size=1, max_size=3))
@settings(max_examples=40, deadline=None)
def test_strictly_only_sentences_with_a_token_over_two_words_are_skipped(
    drawn: list[Sentence],
) -> None:
    """mini-gpt2 reads bytes, so it loses no letter: what is skipped straddles."""
    model = bundled("mini-gpt2")
    made = sentence_inputs(setup_of(model, Corpus.from_sentences(drawn), "strict"), drawn, 0)
    kept = {example.number for example in made.examples}
    for number, sentence in enumerate(drawn):
        offsets = model.encode(sentence.text, special=False).offsets
        straddles = any(len(word_of(sentence, *span)) > 1 for span in offsets)
        labelled = any(word.upos or word.xpos or word.deprel for s in drawn for word in s.words)
        assert (number in kept) == (not straddles or not labelled)


def test_the_first_of_two_words_in_one_span_has_its_tokens(model: Model) -> None:
    setup = setup_of(model, Corpus.from_sentences([FUSED]))
    (example,) = sentence_inputs(setup, [FUSED], 0).examples
    check_tokens(example, FUSED, setup)


def test_two_words_in_one_span_are_strictly_skipped_and_counted(model: Model) -> None:
    setup = setup_of(model, Corpus.from_sentences([FUSED]), "strict")
    made = sentence_inputs(setup, [FUSED], 0)
    assert len(made.examples) == 0
    assert dict(made.skipped) == {"alignment: shared": 1}


def test_fused_words_read_as_one_tie_their_pieces_to_the_governor(
    model: Model, tmp_path_factory: pytest.TempPathFactory
) -> None:
    rows = [
        "1\tIl\t_\tPRON\t_\t_\t2\tnsubj\t_\t_",
        "2\tparle\t_\tVERB\t_\t_\t0\troot\t_\t_",
        "3-4\tdu\t_\t_\t_\t_\t_\t_\t_\t_",
        "3\tde\t_\tADP\t_\t_\t5\tcase\t_\t_",
        "4\tle\t_\tDET\t_\t_\t5\tdet\t_\t_",
        "5\tchat\t_\tNOUN\t_\t_\t2\tobl\t_\tSpaceAfter=No",
        "6\t.\t_\tPUNCT\t_\t_\t2\tpunct\t_\t_",
    ]
    path = tmp_path_factory.mktemp("fused") / "fused.conllu"
    path.write_text("\n".join(["# text = Il parle du chat.", *rows, "", ""]), encoding="utf-8")
    corpus = hs.read_corpus(path, fused="merge")
    setup = setup_of(model, corpus)
    (example,) = sentence_inputs(setup, list(corpus), 0).examples
    check_tokens(example, corpus[0], setup)
    assert [word.text for word in corpus[0].words] == ["Il", "parle", "du", "chat", "."]
