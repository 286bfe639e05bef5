"""The sentences around a shard: whole documents, whatever the shard cuts."""

import pytest

from headscope.text.corpus import Corpus, Shard
from headscope.text.segments import Excerpt, documents_around, documents_of, read_around
from headscope.text.sentence import Sentence

LENGTHS = (3, 1, 4, 2)


def make_corpus() -> Corpus:
    return Corpus.from_sentences(
        Sentence(f"{document}.{place}", document=f"d{document}")
        for document, length in enumerate(LENGTHS)
        for place in range(length)
    )


def test_documents_are_runs_of_sentences_with_one_name() -> None:
    assert documents_of(make_corpus()) == ((0, 3), (3, 4), (4, 8), (8, 10))


@pytest.mark.parametrize(
    ("start", "stop", "bounds"),
    [(0, 3, (0, 3)), (1, 2, (0, 3)), (2, 5, (0, 8)), (3, 4, (3, 4)), (4, 10, (4, 10))],
)
def test_a_shard_touches_the_documents_of_its_sentences(
    start: int, stop: int, bounds: tuple[int, int]
) -> None:
    assert documents_around(make_corpus(), Shard(0, start, stop)) == bounds


def test_an_excerpt_is_the_shard_between_its_neighbours() -> None:
    corpus, shard = make_corpus(), Shard(0, 5, 7)
    excerpt = read_around(corpus, shard, corpus.read(shard), (4, 8))
    assert [each.text for each in excerpt] == ["2.1", "2.2"]
    assert [each.text for each in excerpt.before] == ["2.0"]
    assert [each.text for each in excerpt.after] == ["2.3"]
    assert excerpt.whole == list(corpus)[4:8]


def test_bounds_within_the_shard_add_nothing() -> None:
    corpus, shard = make_corpus(), Shard(0, 2, 6)
    sentences = corpus.read(shard)
    assert read_around(corpus, shard, sentences, (3, 4)) == Excerpt(sentences, [], [])
