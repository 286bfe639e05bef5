import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

import headscope as hs
from headscope.errors import CorpusError
from headscope.text import read
from headscope.text.alignment import align
from headscope.text.corpus import Source
from headscope.text.read import cache_directory
from headscope.text.readers import SUFFIXES, list_formats
from headscope.text.storage import Storage

CONLLU = "# newdoc id = d\n# sent_id = {name}\n1\tHello\t_\tX\t_\t_\t0\troot\t_\t_\n\n"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADSCOPE_CACHE", str(tmp_path / "cache"))


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def converted(path: Path) -> list[Path]:
    return sorted((path / "cache" / "corpora").glob("*.parquet"))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.conllu", CONLLU.format(name="a")),
        ("a.txt", "Hello\n"),
        ("a.jsonl", '{"text": "Hello"}\n'),
        (
            "a.conll",
            "#begin document (d); part 000\nd 0 0 Hello X * - - - - * -\n\n#end document\n",
        ),
        ("a.gold_conll", "#begin document (d)\nd 0 0 Hello X * - - - - * -\n\n#end document\n"),
    ],
)
def test_the_ending_chooses_the_reader(tmp_path: Path, name: str, text: str) -> None:
    corpus = hs.read_corpus(write(tmp_path / name, text))
    assert [sentence.text for sentence in corpus] == ["Hello"]


def test_a_parquet_opens_as_it_is(tmp_path: Path) -> None:
    written = hs.Corpus.write(tmp_path / "c.parquet", [hs.Sentence("Hello")])
    opened = hs.read_corpus(str(tmp_path / "c.parquet"))
    assert list(opened) == list(written)
    assert opened.fingerprint == written.fingerprint
    assert not (tmp_path / "cache").exists()


def test_a_file_is_converted_once_wherever_it_lies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = hs.read_corpus(write(tmp_path / "a.txt", "One.\nTwo.\n"))
    monkeypatch.setattr(hs.Corpus, "write", None)  # a second conversion would fail
    second = hs.read_corpus(write(tmp_path / "moved" / "b.txt", "One.\nTwo.\n"))
    assert second.fingerprint == first.fingerprint
    assert len(converted(tmp_path)) == 1


def test_other_content_and_other_options_are_converted_apart(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", "One.\nTwo.\n")
    one = hs.read_corpus(path)
    two = hs.read_corpus(path, layout="paragraphs")
    three = hs.read_corpus(write(path, "One.\nTwo!\n"))
    assert len({corpus.fingerprint for corpus in (one, two, three)}) == 3
    assert len(converted(tmp_path)) == 3
    assert [sentence.text for sentence in three] == ["One.", "Two!"]


def test_a_damaged_conversion_is_made_again(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", "One.\n")
    first = hs.read_corpus(path)
    (place,) = converted(tmp_path)
    place.write_bytes(b"PAR1 nothing PAR1")
    again = hs.read_corpus(path)
    assert again.fingerprint == first.fingerprint
    assert again.remarks == ("a.txt: its copy in the cache was damaged and was made again.",)
    assert Storage(place).facts.rows == 1
    assert hs.read_corpus(path).remarks == ()


def test_a_byte_order_mark_is_no_text_and_is_remarked_on(tmp_path: Path) -> None:
    remark = "the byte order mark at the beginning"
    path = write(tmp_path / "d" / "a.txt", "\ufeffOne.\n")
    for _ in ("converted", "from the cache"):
        corpus = hs.read_corpus(path)
        assert [sentence.text for sentence in corpus] == ["One."]
        assert corpus.remarks == (f"a.txt: {remark} was left out.",)
    write(tmp_path / "d" / "b.txt", "Two.\n")
    both = hs.read_corpus(tmp_path / "d")
    assert both.remarks[1:] == (f"d: {remark} of 1 file was left out.",)


def test_no_flipped_bit_of_a_conversion_changes_a_sentence(tmp_path: Path) -> None:
    path = write(tmp_path / "a.conllu", CONLLU.format(name="s") * 20)
    expected = list(hs.read_corpus(path))
    (place,) = converted(tmp_path)
    good, chance = place.read_bytes(), random.Random(1)
    for _ in range(200):
        spoilt = bytearray(good)
        spoilt[chance.randrange(len(good))] ^= 1 << chance.randrange(8)
        place.write_bytes(spoilt)
        again = hs.read_corpus(path)
        assert list(again) == expected
        assert again.source.remade


def test_files_and_directories_are_read_in_order(tmp_path: Path) -> None:
    write(tmp_path / "d" / "2.conllu", CONLLU.format(name="two"))
    write(tmp_path / "d" / "1.conllu", CONLLU.format(name="one"))
    write(tmp_path / "d" / "inner" / "3.txt", "Unnamed.\n")
    write(tmp_path / "d" / "README.md", "not a corpus")
    last = write(tmp_path / "last.txt", "Unnamed as well.\n")
    corpus = hs.read_corpus([tmp_path / "d", last])
    assert [s.id for s in corpus][:2] == ["one", "two"]
    assert [s.document for s in corpus] == ["d", "d", "1", "2"]


def test_the_same_sentences_have_one_fingerprint_in_every_format(tmp_path: Path) -> None:
    conllu = hs.read_corpus(write(tmp_path / "a.conllu", CONLLU.format(name="s")))
    record = (
        '{"words": ["Hello"], "upos": ["X"], "head": [-1], "deprel": ["root"], '
        '"document": "d", "id": "s"}'
    )
    assert hs.read_corpus(write(tmp_path / "a.jsonl", record)).fingerprint == conllu.fingerprint


def test_a_parquet_among_other_files_is_one_of_them(tmp_path: Path) -> None:
    hs.Corpus.write(tmp_path / "c.parquet", [hs.Sentence("Hello", document="d")])
    both = hs.read_corpus([write(tmp_path / "a.txt", "a"), tmp_path / "c.parquet"])
    assert [(each.text, each.document) for each in both] == [("a", "1"), ("Hello", "d")]


def test_an_unknown_option_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", "a")
    with pytest.raises(CorpusError, match="layout='lines' is unknown; choose 'sentences' or"):
        hs.read_corpus(path, layout="lines")  # pyright: ignore[reportArgumentType]
    with pytest.raises(CorpusError, match="No corpus file was given"):
        hs.read_corpus([])


def test_the_cache_is_where_the_user_wants_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache_directory().name == "cache"
    monkeypatch.delenv("HEADSCOPE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert cache_directory() == Path("/somewhere/headscope")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_directory() == Path.home() / ".cache" / "headscope"


def test_a_cache_that_cannot_be_written_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADSCOPE_CACHE", str(write(tmp_path / "file", "")))
    with pytest.raises(CorpusError, match="HEADSCOPE_CACHE"):
        hs.read_corpus(write(tmp_path / "a.txt", "a"))


def test_reading_annotating_and_aligning_need_no_torch() -> None:
    code = (
        "import sys, headscope.text.annotate, headscope.text.alignment, headscope.text.read\n"
        "headscope.text.read.demo_corpus()\n"
        "print({'torch', 'transformers', 'spacy'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


GERMAN = (
    "# text = Wir gehen zum Haus.\n"
    "1\tWir\twir\tPRON\t_\t_\t2\tnsubj\t_\t_\n"
    "2\tgehen\tgehen\tVERB\t_\t_\t0\troot\t_\t_\n"
    "3-4\tzum\t_\t_\t_\t_\t_\t_\t_\t_\n"
    "3\tzu\tzu\tADP\t_\t_\t5\tcase\t_\t_\n"
    "4\tdem\tder\tDET\t_\t_\t5\tdet\t_\t_\n"
    "5\tHaus\tHaus\tNOUN\t_\t_\t2\tobl\t_\tSpaceAfter=No\n"
    "6\t.\t.\tPUNCT\t_\t_\t2\tpunct\t_\t_\n\n"
)


def test_a_word_written_as_one_is_one_word_by_default_and_said(tmp_path: Path) -> None:
    path = write(tmp_path / "de.conllu", GERMAN)
    for corpus in (hs.read_corpus(path), hs.read_corpus(path)):  # converted, then from the cache
        words = corpus[0].words
        assert [word.text for word in words] == ["Wir", "gehen", "zum", "Haus", "."]
        assert (words[2].upos, words[2].head, words[2].deprel) == ("ADP", 3, "case")
        assert corpus.remarks == (
            "de.conllu: 1 multiword token was taken as one word (docs/corpora.md).",
        )
    tokens = [(0, 3), (4, 9), (10, 13), (14, 18), (18, 19)]
    alignment = align([corpus[0]], [tokens], [[False] * 5], strict=True)
    assert alignment.owner.tolist() == [0, 1, 2, 3, 4]  # was refused as "shared"
    kept = hs.read_corpus(path, fused="keep")
    assert [word.text for word in kept[0].words][2:4] == ["zu", "dem"]
    assert kept.remarks == ()


def test_a_corpus_knows_where_it_comes_from(tmp_path: Path) -> None:
    path = write(tmp_path / "d" / "a.txt", "One.\nTwo.\n")
    assert hs.read_corpus(path).source == Source("a.txt", str(path), "text")
    assert hs.read_corpus(path).sample(1, seed=0).source == Source("a.txt", str(path), "text")
    assert hs.read_corpus("demo").source == Source("demo", "demo", "CoNLL-U")
    write(tmp_path / "d" / "b.conllu", CONLLU.format(name="b"))
    write(tmp_path / "d" / "c.txt", "Three.\n")
    corpus = hs.read_corpus(tmp_path / "d")
    assert corpus.source == Source("d", str(tmp_path / "d"), "2 text, 1 CoNLL-U", 3)
    assert corpus.remarks == ("d: 3 files (2 text, 1 CoNLL-U).",)


@pytest.mark.parametrize("empty", ["", " ", ["a.txt", ""]])
def test_an_empty_path_is_not_the_current_directory(
    empty: str | list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(write(tmp_path / "here" / "a.txt", "One.").parent)
    with pytest.raises(CorpusError, match='is empty; give a file, a directory or "demo"'):
        hs.read_corpus(empty)


def test_every_format_is_listed_once_with_its_endings() -> None:
    assert len(set(SUFFIXES)) == len(SUFFIXES)
    assert all(suffix in list_formats() for suffix in SUFFIXES)
    page = (Path(__file__).parents[2] / "docs" / "corpora.md").read_text(encoding="utf-8")
    assert all(f"`{suffix}`" in page for suffix in SUFFIXES)


def test_the_cache_keeps_the_newest_corpora_and_all_of_today(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADSCOPE_CACHE", str(tmp_path))
    monkeypatch.setattr(read, "CACHED", 3)
    folder = tmp_path / "corpora"
    folder.mkdir()
    for number in range(6):
        (folder / f"{number}.parquet").touch()
        days_ago = time.time() - number * 86_400 - 60
        os.utime(folder / f"{number}.parquet", (days_ago, days_ago))
    (tmp_path / "a.txt").write_text("A cat sat.", encoding="utf-8")
    hs.read_corpus(tmp_path / "a.txt")
    assert {"0.parquet", "1.parquet", "2.parquet"} < {file.name for file in folder.iterdir()}
    assert len(list(folder.iterdir())) == 5
