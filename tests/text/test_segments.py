"""Segments pair consecutive paragraphs, or sentences where there are no paragraphs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headscope.errors import CorpusError
from headscope.text.corpus import Corpus
from headscope.text.segments import Segment, Segments
from headscope.text.sentence import Sentence

Shape = list[list[int]]  # per document, per paragraph, how many sentences

SHAPES = st.lists(
    st.lists(st.integers(1, 3), min_size=1, max_size=5), min_size=1, max_size=4
).filter(lambda shape: any(len(document) > 1 for document in shape))


def corpus_of(shape: Shape) -> Corpus:
    return Corpus.from_sentences(
        Sentence(text=f"d{d} p{p} s{s}.", document=f"d{d}", paragraph=p)
        for d, document in enumerate(shape)
        for p, count in enumerate(document)
        for s in range(count)
    )


def plain_segments(shape: Shape) -> list[tuple[str, str]]:
    """Two by two, written as nested loops."""
    found = []
    for d, document in enumerate(shape):
        texts = [
            " ".join(f"d{d} p{p} s{s}." for s in range(count)) for p, count in enumerate(document)
        ]
        found += [(texts[p], texts[p + 1]) for p in range(0, len(texts) - 1, 2)]
    return found


def texts(segments: list[Segment]) -> list[tuple[str, str]]:
    return [(segment.first, segment.second) for segment in segments]


@given(SHAPES)
def test_consecutive_paragraphs_are_paired_within_their_document(shape: Shape) -> None:
    corpus = corpus_of(shape)
    segments = Segments(corpus)
    assert texts(segments.starting_in(0, len(corpus))) == plain_segments(shape)
    assert len(segments) == len(plain_segments(shape))
    odd = sum(len(document) % 2 for document in shape)
    assert len(segments.unpaired) == segments.unpaired_in(0, len(corpus)) == odd


@given(SHAPES, st.integers(1, 5))
def test_shards_share_the_segments_out_without_loss(shape: Shape, size: int) -> None:
    corpus = corpus_of(shape)
    segments = Segments(corpus)
    found = [
        s for shard in corpus.shards(size) for s in segments.starting_in(shard.start, shard.stop)
    ]
    assert texts(found) == plain_segments(shape)
    assert all(corpus[s.number].text == s.first[: len(corpus[s.number].text)] for s in found)


@given(SHAPES, st.integers(0, 9), st.data())
def test_a_sample_is_a_corpus_of_exactly_the_drawn_segments(
    shape: Shape, seed: int, data: st.DataObject
) -> None:
    whole = Segments(corpus_of(shape))
    n = data.draw(st.integers(1, len(whole)))
    drawn = Segments(whole.sample(n, seed))
    found = texts(drawn.starting_in(0, len(drawn.corpus)))
    assert len(found) == n and set(found) <= set(plain_segments(shape))
    assert drawn.corpus.fingerprint == whole.sample(n, seed).fingerprint
    assert drawn.unpaired == ()


def test_without_paragraphs_sentences_are_paired() -> None:
    names = ["a", "a", "a", "b", "b"]
    corpus = Corpus.from_sentences(Sentence(text=f"{i}.", document=d) for i, d in enumerate(names))
    segments = Segments(corpus)
    assert segments.unit == "sentences"
    assert texts(segments.starting_in(0, 5)) == [("0.", "1."), ("3.", "4.")]


def test_more_segments_than_there_are_cannot_be_drawn() -> None:
    segments = Segments(corpus_of([[1, 2], [1]]))
    with pytest.raises(CorpusError, match="Cannot draw 2 of 1 segments of two paragraphs"):
        segments.sample(2, seed=0)
