"""The demo corpus: what it promises to contain, readable by any CoNLL-U tool, and all our own."""

from collections import Counter
from importlib.resources import files
from pathlib import Path

import conllu
import numpy as np
import pytest
from build import ARTICLES, read_articles
from overlap import shingles
from sketch import KEPT, kept_hashes, load, save

import headscope as hs
from headscope.text.sentence import ROOT

SKETCH = Path(__file__).parent / "sketch.npz"


@pytest.fixture(scope="module")
def corpus() -> hs.Corpus:
    return hs.demo_corpus()


def test_it_is_as_large_and_as_varied_as_promised(corpus: hs.Corpus) -> None:
    documents = list(corpus.documents())
    assert len(documents) >= 60
    assert len(corpus) >= 600
    for sentences in documents:
        assert len({sentence.paragraph for sentence in sentences}) >= 2, sentences[0].document


def test_it_marks_enough_mentions_of_entities_that_recur(corpus: hs.Corpus) -> None:
    mentions = Counter(mention.entity for sentence in corpus for mention in sentence.mentions)
    assert sum(count for count in mentions.values() if count >= 2) >= 800
    assert min(mentions.values()) >= 2


def test_it_has_pronouns_of_every_kind_and_the_constructions_the_papers_look_at(
    corpus: hs.Corpus,
) -> None:
    words = Counter(word.text.lower() for sentence in corpus for word in sentence.words)
    relations = Counter(word.deprel for sentence in corpus for word in sentence.words)
    pronouns = "he she it they him her them his its their himself herself itself who i we you"
    assert [word for word in pronouns.split() if not words[word]] == []
    assert [
        r for r in ("nsubjpass", "agent", "poss", "prt", "det", "advcl") if relations[r] < 20
    ] == []
    assert words["'s"] >= 25


def test_every_sentence_is_a_tree_whose_words_stand_in_its_text(corpus: hs.Corpus) -> None:
    for sentence in corpus:
        assert [word.head for word in sentence.words].count(ROOT) == 1, sentence.id
        for word in sentence.words:
            assert sentence.text[word.start : word.end] == word.text
            assert word.upos and word.xpos and word.deprel


def test_another_conllu_reader_finds_the_same_words_and_trees(corpus: hs.Corpus) -> None:
    text = files("headscope").joinpath("text/bundled/demo.conllu").read_text(encoding="utf-8")
    others = conllu.parse(text)
    assert len(others) == len(corpus)
    for ours, other in zip(corpus, others, strict=True):
        assert [word.text for word in ours.words] == [token["form"] for token in other]
        assert [word.head for word in ours.words] == [token["head"] - 1 for token in other]
        assert [word.deprel for word in ours.words] == [token["deprel"] for token in other]


def test_the_header_says_where_the_annotation_comes_from() -> None:
    text = files("headscope").joinpath("text/bundled/demo.conllu").read_text(encoding="utf-8")
    header = text[:400]
    assert "CC0" in header and "silver" in header and "en_core_web_sm 3.8" in header


def test_the_corpus_is_what_the_articles_say(corpus: hs.Corpus) -> None:
    articles = {article.name: article for article in read_articles(ARTICLES)}
    for sentences in corpus.documents():
        article = articles.pop(sentences[0].document)
        written = " ".join(paragraph.text for paragraph in article.paragraphs)
        assert " ".join(sentence.text for sentence in sentences) == written
        mentions = sum(len(paragraph.mentions) for paragraph in article.paragraphs)
        assert sum(len(sentence.mentions) for sentence in sentences) == mentions
    assert articles == {}


def test_no_article_stands_in_the_training_text() -> None:
    known = load(SKETCH)
    assert len(known) > 400_000
    for article in read_articles(ARTICLES):
        runs = [run for paragraph in article.paragraphs for run in shingles(paragraph.text)]
        assert kept_hashes(runs) & known == set(), article.name


def test_a_sketch_recognises_a_copied_text(tmp_path: Path) -> None:
    copied = " ".join(f"word{number % 97} and{number}" for number in range(400))
    hashes = kept_hashes(shingles(copied))
    assert 400 * 2 / KEPT / 3 < len(hashes) < 400 * 2 / KEPT * 3
    save(np.array(sorted(hashes), dtype=np.uint64), tmp_path / "sketch.npz")
    assert load(tmp_path / "sketch.npz") == hashes
