"""Both studies equal a plain reading under every alignment, and lose no sentence to it."""

from dataclasses import replace

import pytest

import headscope as hs
from headscope.model.model import Model
from headscope.results import dataset as results
from headscope.results.run import read_run
from headscope.studies import find_study
from headscope.text.alignment import JOINED, SEVERAL, SPLIT, WORDS
from headscope.text.corpus import Corpus
from headscope.text.sentence import Sentence
from tests.references.tiny_models import MODELS, make_sentences
from tests.tools.check_alignment import WORDS_ALONE, check_vig, check_words

ALIGNMENTS = ["overlap", "strict", "words"]


@pytest.fixture(scope="module", params=list(MODELS))
def model(request: pytest.FixtureRequest) -> Model:
    return MODELS[request.param]()


def broken(sentence: Sentence) -> Sentence:
    """The sentence with one "the" as the two words "t" and "he", which share a token."""
    words = list(sentence.words)
    place = next(n for n, word in enumerate(words) if word.text.lower() == "the")
    old = words[place]
    moved = [
        replace(word, head=None if word.head is None else word.head + (word.head > place))
        for word in words
    ]
    middle = old.start + 1
    first = replace(moved[place], text=old.text[0], end=middle, head=place + 1, deprel="goeswith")
    second = replace(moved[place], text=old.text[1:], start=middle)
    moved = [replace(w, head=place + 1) if w.head == place else w for w in moved]
    return replace(sentence, words=(*moved[:place], first, second, *moved[place + 1 :]))


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    """Some sentences with tokens of several words, some without."""
    with_the = [s for s in make_sentences(60) if "the" in [word.text for word in s.words]]
    return Corpus.from_sentences(
        broken(each) if place % 2 else each for place, each in enumerate(with_the[:10])
    )


@pytest.mark.parametrize("alignment", ALIGNMENTS)
def test_vig2019_equals_a_plain_reading(model: Model, corpus: Corpus, alignment: str) -> None:
    result, counts = check_vig(model, corpus, alignment)
    assert counts.sentences == (5 if alignment == "strict" else 10)
    assert (counts.several > 0) == (alignment == "overlap")
    assert results.read_attribute(result, "skipped") == (
        {"alignment: straddles": 5} if alignment == "strict" else {}
    )


@pytest.mark.parametrize("alignment", ALIGNMENTS)
def test_relations_equal_a_plain_reading(model: Model, corpus: Corpus, alignment: str) -> None:
    result, counts = check_words(model, corpus, alignment)
    assert counts.sentences == 10
    assert (counts.merged > 0) == (counts.several > 0) == (alignment == "overlap")
    assert not any(why.startswith("trees") for why in results.read_attribute(result, "skipped"))


def test_a_run_says_how_words_and_tokens_met(
    model: Model, corpus: Corpus, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("run")
    studies = {"vig2019": find_study("vig2019"), "clark2019": WORDS_ALONE}
    for name, chosen in studies.items():
        result = hs.study(chosen, model, corpus, folder / name)
        prefix = "trees: " if name == "clark2019" else ""
        counts = results.read_attribute(result, "words")
        assert read_run(folder / name).about["counts"]["words"] == counts
        said = chosen.notes(result)
        total, split = counts[prefix + WORDS], counts[prefix + SPLIT]
        assert f"{split / total:.1%} of {total:,} words are split into pieces." in said
        assert f"{counts[prefix + SEVERAL]:,} tokens cover characters of several words" in said
        joined = counts.get(prefix + JOINED)
        assert (f"{joined} words that share one were joined" in said) == (name == "clark2019")
