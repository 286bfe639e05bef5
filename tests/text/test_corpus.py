import gc
import pickle
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headscope.errors import CorpusError
from headscope.text.corpus import Corpus, Source
from headscope.text.sentence import ROOT, Mention, Sentence, Word
from headscope.text.storage import Storage, hold_in_memory, write_parquet
from tests.references.random_sentences import sentences

lists = st.lists(sentences(), min_size=1, max_size=12)


def numbered(count: int) -> Iterator[Sentence]:
    """Sentences that differ, ten to a document."""
    for number in range(count):
        words = tuple(
            Word(f"w{number}", 4 * i, 4 * i + 2, upos="X", head=i - 1, deprel="dep")
            for i in range(5)
        )
        yield Sentence(
            f"sentence {number}".ljust(18), words, (), f"d{number // 10}", 0, str(number)
        )


def stored(path: Path, count: int, group_rows: int = 4) -> Corpus:
    write_parquet(path, numbered(count), group_rows)
    return Corpus.open(path)


class Recording(Storage):
    """A storage that notes which row groups are asked for."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.read: list[int] = []

    def group(self, index: int) -> pa.Table:
        self.read.append(index)
        return super().group(index)


@settings(max_examples=60)
@given(lists)
def test_a_corpus_on_disk_and_one_in_memory_give_back_their_sentences(
    tmp_path_factory: pytest.TempPathFactory, given: list[Sentence]
) -> None:
    path = tmp_path_factory.mktemp("corpus") / "c.parquet"
    write_parquet(path, given, group_rows=5)
    on_disk, in_memory = Corpus.open(path), Corpus.from_sentences(given)
    assert list(on_disk) == list(in_memory) == given
    assert [on_disk[i] for i in range(len(on_disk))] == given
    assert on_disk.fingerprint == in_memory.fingerprint
    assert len(on_disk) == len(given)


@given(lists, st.data())
def test_any_change_of_a_sentence_changes_the_fingerprint(
    given: list[Sentence], data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, len(given) - 1))
    old = given[place]
    first = old.words[0]
    changed = data.draw(
        st.sampled_from(
            [
                replace(old, text=old.text + "!"),
                replace(old, document=old.document + "!"),
                replace(old, paragraph=old.paragraph + 1),
                replace(old, id=old.id + "!"),
                replace(old, words=(*old.words, first)),
                replace(old, words=(replace(first, upos="OTHER"), *old.words[1:])),
                replace(old, words=(replace(first, head=None), *old.words[1:])),
                replace(old, mentions=(*old.mentions, Mention("z", ((0, 1),)))),
            ]
        )
    )
    other = [*given[:place], changed, *given[place + 1 :]]
    assert Corpus.from_sentences(other).fingerprint != Corpus.from_sentences(given).fingerprint


def test_the_fingerprint_tells_where_sentences_and_words_end() -> None:
    word = Word("a", 0, 1)
    one = [Sentence("a", (word, word)), Sentence("a", ())]
    two = [Sentence("a", (word,)), Sentence("a", (word,))]
    assert Corpus.from_sentences(one).fingerprint != Corpus.from_sentences(two).fingerprint


@settings(max_examples=30)
@given(lists, st.integers(1, 12), st.integers(1, 12))
def test_the_fingerprint_does_not_depend_on_the_row_groups(
    given: list[Sentence], one: int, other: int
) -> None:
    first, second = hold_in_memory(given, one), hold_in_memory(given, other)
    assert first.facts.fingerprint == second.facts.fingerprint


def test_the_fingerprint_does_not_depend_on_the_path(tmp_path: Path) -> None:
    first = Corpus.write(tmp_path / "a.parquet", numbered(9))
    second = Corpus.write(tmp_path / "deeper" / "b.parquet", numbered(9))
    assert first.fingerprint == second.fingerprint


def test_a_sample_is_the_same_for_the_same_seed_and_keeps_the_order(tmp_path: Path) -> None:
    corpus = stored(tmp_path / "c.parquet", 50)
    sample = corpus.sample(12, seed=3)
    numbers = [int(sentence.id) for sentence in sample]
    assert numbers == sorted(set(numbers)) and len(numbers) == len(sample) == 12
    again = Corpus.from_sentences(numbered(50)).sample(12, seed=3)
    assert list(again) == list(sample)
    assert again.fingerprint == sample.fingerprint
    assert [s.id for s in corpus.sample(12, seed=4)] != [s.id for s in sample]
    others = {corpus.sample(12, seed=4).fingerprint, corpus.sample(11, seed=3).fingerprint}
    assert len(others | {sample.fingerprint, corpus.fingerprint}) == 4


def test_a_sample_of_a_sample_and_a_selection_are_views(tmp_path: Path) -> None:
    corpus = stored(tmp_path / "c.parquet", 50)
    nested = corpus.sample(20, seed=0).sample(5, seed=1)
    assert set(nested) < set(corpus.sample(20, seed=0))
    assert [s.id for s in corpus.select([30, 2, 2, -1])] == ["30", "2", "2", "49"]


@pytest.mark.parametrize("n", [0, 10])
def test_more_than_there_is_cannot_be_drawn(n: int) -> None:
    with pytest.raises(CorpusError, match=f"Cannot draw {n} of 9 sentences; ask for 1 to 9"):
        Corpus.from_sentences(numbered(9)).sample(n, seed=0)


def test_shards_cut_the_corpus_without_gap_or_overlap(tmp_path: Path) -> None:
    corpus = stored(tmp_path / "c.parquet", 23)
    shards = corpus.shards(6)
    assert [(s.index, s.start, s.stop) for s in shards] == [
        (0, 0, 6),
        (1, 6, 12),
        (2, 12, 18),
        (3, 18, 23),
    ]
    assert [len(shard) for shard in shards] == [6, 6, 6, 5]
    assert [s for shard in shards for s in corpus.read(shard)] == list(numbered(23))


def test_reading_a_shard_reads_only_its_row_groups(tmp_path: Path) -> None:
    stored(tmp_path / "c.parquet", 40)
    storage = Recording(tmp_path / "c.parquet")
    corpus = Corpus(storage, range(40), storage.facts.fingerprint)
    assert [s.id for s in corpus.read(corpus.shards(6)[2])] == [str(i) for i in range(12, 18)]
    assert storage.read == [3, 4]
    next(iter(corpus))
    assert storage.read == [3, 4, 0]


def test_documents_are_runs_of_the_same_id(tmp_path: Path) -> None:
    corpus = stored(tmp_path / "c.parquet", 25)
    assert [(d[0].document, len(d)) for d in corpus.documents()] == [
        ("d0", 10),
        ("d1", 10),
        ("d2", 5),
    ]


def test_a_corpus_says_what_it_has() -> None:
    plain = Corpus.from_sentences([Sentence("Hello there.")])
    word = Word("a", 0, 1, upos="X", head=ROOT)
    full = Corpus.from_sentences([Sentence("a", (word,), (Mention("e", ((0, 1),)),), paragraph=1)])
    names = ("words", "upos", "xpos", "feats", "head", "deprel", "mentions", "paragraphs")
    assert [name for name in names if plain.has(name)] == []
    assert [name for name in names if full.has(name)] == [
        "words", "upos", "head", "mentions", "paragraphs",
    ]  # fmt: skip
    with pytest.raises(CorpusError, match="no field 'tags'; ask for words, upos"):
        full.has("tags")  # pyright: ignore[reportArgumentType]


def test_memory_does_not_grow_with_the_corpus(tmp_path: Path) -> None:
    def peak(count: int) -> int:
        """The most that was held, in Python and in Arrow, while writing and reading."""
        most = 0

        def watched() -> Iterator[Sentence]:
            nonlocal most
            for sentence in numbered(count):
                most = max(most, pa.total_allocated_bytes())
                yield sentence

        tracemalloc.start()
        write_parquet(tmp_path / "c.parquet", watched(), group_rows=200)
        for _ in Corpus.open(tmp_path / "c.parquet"):
            most = max(most, pa.total_allocated_bytes())
        python = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return python + most

    gc.disable()  # a collection empties free lists, and what waits for one would be growth
    try:
        peak(400)  # first use of modules and pools
        small = peak(400)
        assert peak(8000) < 1.2 * small  # the footer grows by a kilobyte for every row group
    finally:
        gc.enable()


def test_a_corpus_travels_to_another_process(tmp_path: Path) -> None:
    for corpus in (stored(tmp_path / "c.parquet", 9), Corpus.from_sentences(numbered(9))):
        copy = pickle.loads(pickle.dumps(corpus.sample(4, seed=1)))
        assert list(copy) == list(corpus.sample(4, seed=1))


def test_an_index_outside_the_corpus_is_an_index_error() -> None:
    corpus = Corpus.from_sentences(numbered(3))
    assert corpus[-1].id == "2"
    with pytest.raises(IndexError):
        corpus[3]


def test_no_sentences_make_no_corpus_and_leave_no_file(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="no sentences"):
        Corpus.write(tmp_path / "c.parquet", [])
    assert list(tmp_path.iterdir()) == []


def test_a_shard_needs_a_sentence() -> None:
    with pytest.raises(CorpusError, match="not 0"):
        Corpus.from_sentences(numbered(3)).shards(0)


def test_samples_and_selections_keep_their_source(tmp_path: Path) -> None:
    corpus = Corpus.write(tmp_path / "c.parquet", numbered(10))
    assert corpus.source == Source("c.parquet", str(tmp_path / "c.parquet"), "Parquet")
    assert corpus.sample(3, seed=1).source == corpus.source
    assert corpus.select([0, 2]).sample(1, seed=0).source == corpus.source
    assert pickle.loads(pickle.dumps(corpus)).source == corpus.source
    assert Corpus.from_sentences(numbered(2)).source == Source("memory", "", "memory")


def test_one_sentence_is_singular() -> None:
    corpus = Corpus.from_sentences(numbered(1))
    assert repr(corpus) == f"<Corpus memory of 1 sentence, {corpus.fingerprint[:8]}>"
    with pytest.raises(CorpusError, match="Cannot draw 2 of 1 sentence;"):
        corpus.sample(2, seed=0)
