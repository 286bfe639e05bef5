"""Segments are packed with consecutive paragraphs, or sentences where there are none."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headscope.errors import CorpusError
from headscope.text.corpus import Corpus, Shard
from headscope.text.segments import (
    Excerpt,
    Range,
    Segment,
    Segments,
    cut,
    documents_around,
    documents_of,
    join,
    joined,
    read_around,
    segment_of,
)
from headscope.text.sentence import ROOT, Mention, Sentence, Word
from tests.references.segments import starting_in

Shape = list[list[int]]  # per document, per paragraph, how many sentences

WORDS = st.sampled_from([0, 8, 15, 100])
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


def plain_chunks(shape: Shape, words: int) -> list[tuple[int, list[str]]]:
    """Paragraphs of every segment, and of what is left alone, with their document."""
    found = []
    for d, document in enumerate(shape):
        chunk: list[str] = []
        for p, count in enumerate(document):
            chunk.append(" ".join(f"d{d} p{p} s{s}." for s in range(count)))
            if len(chunk) > 1 and len(" ".join(chunk).split()) >= words:
                found.append((d, chunk))
                chunk = []
        if chunk:
            found.append((d, chunk))
    return found


def plain_segments(shape: Shape, words: int) -> list[tuple[str, str]]:
    """Segments as two texts, split where the draw of the segment falls."""
    found = []
    for d, chunk in plain_chunks(shape, words):
        if len(chunk) > 1:
            sizes = [len(text.split()) for text in chunk]
            middle = Random(f"d{d} {sizes}").randint(1, len(chunk) - 1)
            found.append((" ".join(chunk[:middle]), " ".join(chunk[middle:])))
    return found


def texts(segments: list[Segment]) -> list[tuple[str, str]]:
    return [(segment.first, segment.second) for segment in segments]


@given(SHAPES, WORDS)
def test_consecutive_paragraphs_are_packed_within_their_document(shape: Shape, words: int) -> None:
    corpus = corpus_of(shape)
    segments = Segments(corpus, words)
    assert texts(starting_in(segments, 0, len(corpus))) == plain_segments(shape, words)
    assert len(segments) == len(plain_segments(shape, words))
    alone = sum(len(chunk) == 1 for _, chunk in plain_chunks(shape, words))
    assert len(segments.unpaired) == segments.unpaired_in(0, len(corpus)) == alone


@given(SHAPES, WORDS, st.integers(1, 5))
def test_shards_share_the_segments_out_without_loss(shape: Shape, words: int, size: int) -> None:
    corpus = corpus_of(shape)
    segments = Segments(corpus, words)
    found = [
        s for shard in corpus.shards(size) for s in starting_in(segments, shard.start, shard.stop)
    ]
    assert texts(found) == plain_segments(shape, words)
    assert all(corpus[s.number].text == s.first[: len(corpus[s.number].text)] for s in found)


@given(SHAPES, WORDS, st.integers(0, 9), st.data())
def test_a_sample_is_a_corpus_of_exactly_the_drawn_segments(
    shape: Shape, words: int, seed: int, data: st.DataObject
) -> None:
    whole = Segments(corpus_of(shape), words)
    n = data.draw(st.integers(1, len(whole)))
    drawn = Segments(whole.sample(n, seed), words)
    found = texts(starting_in(drawn, 0, len(drawn.corpus)))
    assert len(found) == n and set(found) <= set(plain_segments(shape, words))
    assert drawn.corpus.fingerprint == whole.sample(n, seed).fingerprint
    assert drawn.unpaired == ()


def test_paragraphs_without_words_are_passed_over() -> None:
    rows = ["one .", "  ", "two .", "three ."]
    corpus = Corpus.from_sentences(
        Sentence(text, document="d", paragraph=p) for p, text in enumerate(rows)
    )
    segments = Segments(corpus)
    assert texts(starting_in(segments, 0, 4)) == [("one .", "two .")]
    assert len(segments.unpaired) == 1


def test_words_of_a_corpus_count_where_no_space_parts_them() -> None:
    words = tuple(Word("猫", place, place + 1) for place in range(6))
    sentences = [Sentence("猫" * 6, words, document="d", paragraph=p) for p in range(6)]
    assert len(Segments(Corpus.from_sentences(sentences), 18)) == 2


def test_without_paragraphs_sentences_are_packed() -> None:
    names = ["a", "a", "a", "b", "b"]
    corpus = Corpus.from_sentences(Sentence(text=f"{i}.", document=d) for i, d in enumerate(names))
    segments = Segments(corpus)
    assert segments.unit == "sentences"
    assert texts(starting_in(segments, 0, 5)) == [("0.", "1."), ("3.", "4.")]


def test_more_segments_than_there_are_cannot_be_drawn() -> None:
    segments = Segments(corpus_of([[1, 2], [1]]))
    with pytest.raises(CorpusError, match="Cannot draw 2 of 1 segments of paragraphs"):
        segments.sample(2, seed=0)


@pytest.mark.parametrize(
    ("first", "second", "together"),
    [
        ("It rained.", "We left.", "It rained. We left."),
        ("下雨了。", "我们走了。", "下雨了。我们走了。"),
        ("猫です", "犬です", "猫です犬です"),
        ("비가 왔다.", "갔다", "비가 왔다. 갔다"),
        ("고양이", "개", "고양이 개"),
        ("हम गए।", "वह आया।", "हम गए। वह आया।"),
        ("Nice 😀", "Yes", "Nice 😀 Yes"),
    ],
)
def test_a_space_stands_between_sentences_where_the_script_has_spaces(
    first: str, second: str, together: str
) -> None:
    words = [(Word(text, 0, len(text)),) for text in (first, second)]
    sentences = [Sentence(text, own) for text, own in zip((first, second), words, strict=True)]
    found = join(sentences)
    assert found.text == joined(sentences) == together
    assert [together[word.start : word.end] for word in found.words] == [first, second]
    assert segment_of(Range(0, 2, 2), sentences).first == together


FIRST = Sentence(
    "Ada came.",
    (Word("Ada", 0, 3, head=1), Word("came", 4, 8, head=ROOT), Word(".", 8, 9, head=1)),
    (Mention("ada", ((0, 1),)),),
    "d",
)
SECOND = Sentence(
    "She sat",
    (Word("She", 0, 3, head=1), Word("sat", 4, 7, head=ROOT)),
    (Mention("ada", ((0, 1),)),),
)


def test_joined_sentences_keep_what_their_words_and_mentions_say() -> None:
    joined = join([FIRST, SECOND])
    assert joined.text == "Ada came. She sat"
    assert [joined.text[word.start : word.end] for word in joined.words] == [
        "Ada",
        "came",
        ".",
        "She",
        "sat",
    ]
    assert [word.head for word in joined.words] == [1, ROOT, 1, 4, ROOT]
    assert [mention.spans for mention in joined.mentions] == [((0, 1),), ((3, 4),)]
    assert joined.document == "d"


@given(st.lists(st.integers(1, 12), max_size=12), st.integers(4, 20))
def test_windows_hold_as_many_consecutive_sentences_as_fit(lengths: list[int], size: int) -> None:
    windows, too_long = cut(lengths, size)
    assert too_long == [i for i, length in enumerate(lengths) if length > size]
    assert sorted([*too_long, *(i for window in windows for i in window)]) == list(
        range(len(lengths))
    )
    for window in windows:
        assert window == list(range(window[0], window[-1] + 1))
        used, after = sum(lengths[i] for i in window), window[-1] + 1
        assert used <= size
        assert after == len(lengths) or used + lengths[after] > size


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
