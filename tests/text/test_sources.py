"""Documents come the same from every kind of source, and mistakes are one sentence."""

import gzip
import io
import json
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import headscope as hs
from headscope.errors import CorpusError
from headscope.text.annotate import find_inputs
from headscope.text.corpus import Corpus
from headscope.text.readers import raw
from headscope.text.sentence import Sentence
from headscope.text.sources import Document, Documents, read_documents

TEXTS = ["Erste Zeile.\nZweite.", "第二篇。", "ثالثة.", "no\u00a0end"]
EXPECTED = [Document(text, str(number)) for number, text in enumerate(TEXTS, start=1)]


def _txt(path: Path) -> None:
    path.write_text("\n\n\n".join(TEXTS), encoding="utf-8")


def _jsonl(path: Path) -> None:
    path.write_text("\n".join(json.dumps({"text": text}) for text in TEXTS), encoding="utf-8")


def _table(kind: pa.DataType | None = None) -> pa.Table:
    texts = pa.array(TEXTS, pa.string())
    column = texts.dictionary_encode() if kind is None else texts.cast(kind)
    return pa.table({"number": list(range(len(TEXTS))), "text": column})


def _parquet(path: Path) -> None:
    pq.write_table(_table(pa.string()), path, row_group_size=3)


def _arrow_file(path: Path) -> None:
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, _table().schema) as writer:
        writer.write_table(_table(), max_chunksize=3)


def _arrow_stream(path: Path) -> None:
    table = _table(pa.large_string())
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=3)


WRITERS: dict[str, Callable[[Path], None]] = {
    "a.txt": _txt,
    "a.jsonl": _jsonl,
    "a.parquet": _parquet,
    "a.feather": _arrow_file,
    "a.arrow": _arrow_stream,
}
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".zst": lambda content: pa.compress(content, codec="zstd", asbytes=True),
}
LINES = ("a.txt", "a.jsonl")
TABLES = ("a.parquet", "a.feather", "a.arrow")
SOURCES = [*((name, packed) for name in LINES for packed in PACKERS), *((n, "") for n in TABLES)]


def _write(folder: Path, name: str, packed: str = "") -> Path:
    plain = folder / name
    WRITERS[name](plain)
    path = folder / f"{name}{packed}"
    path.write_bytes(PACKERS[packed](plain.read_bytes()))
    return path


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADSCOPE_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def standard_input(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], None]:
    def give(content: bytes) -> None:
        wrapped = io.TextIOWrapper(io.BufferedReader(io.BytesIO(content)))  # type: ignore[arg-type]
        monkeypatch.setattr(sys, "stdin", wrapped)

    return give


@pytest.mark.parametrize(("name", "packed"), SOURCES)
def test_every_format_holds_the_same_documents(tmp_path: Path, name: str, packed: str) -> None:
    found = read_documents(_write(tmp_path, name, packed))
    assert list(found) == EXPECTED
    assert list(found) == EXPECTED  # files can be read again


@pytest.mark.parametrize("name", LINES)
def test_standard_input_shows_its_format_by_its_bytes(
    tmp_path: Path, name: str, standard_input: Callable[[bytes], None]
) -> None:
    standard_input(_write(tmp_path, name).read_bytes())
    assert list(read_documents("-")) == EXPECTED


@pytest.mark.parametrize("name", ["a.parquet", "a.txt.gz"])
def test_standard_input_of_bytes_is_refused(
    tmp_path: Path, name: str, standard_input: Callable[[bytes], None]
) -> None:
    plain, packed = (name.removesuffix(".gz"), ".gz" if name.endswith(".gz") else "")
    standard_input(_write(tmp_path, plain, packed).read_bytes())
    assert refused("-").startswith("standard input is not UTF-8 at byte offset ")


def test_several_members_of_one_gz_are_all_read(tmp_path: Path) -> None:
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(b"One.\n\n") + gzip.compress(b"Two.\n"))
    assert [each.text for each in read_documents(path)] == ["One.", "Two."]
    path = tmp_path / "a.txt.zst"
    path.write_bytes(PACKERS[".zst"](b"One.\n\n") + PACKERS[".zst"](b"Two.\n"))
    assert [each.text for each in read_documents(path)] == ["One.", "Two."]


def _saved(folder: Path, *names: str) -> None:
    """What `Dataset.save_to_disk` writes: Arrow streams and two JSON files."""
    folder.mkdir(parents=True)
    for name in names:
        _arrow_stream(folder / name)
    listed = {"_data_files": [{"filename": name} for name in names], "_fingerprint": "f"}
    (folder / "state.json").write_text(json.dumps(listed))
    (folder / "dataset_info.json").write_text("{}")


def test_a_saved_dataset_is_read_in_the_order_that_it_lists(tmp_path: Path) -> None:
    _saved(tmp_path / "one", "data-00000-of-00001.arrow")
    assert list(read_documents(tmp_path / "one")) == EXPECTED
    _saved(tmp_path / "both" / "train", "data.arrow")
    _saved(tmp_path / "both" / "test", "data.arrow")
    (tmp_path / "both" / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    both = read_documents(tmp_path / "both")
    assert isinstance(both, Documents)
    assert [file.parent.name for file in both.files] == ["train", "test"]
    assert [each.text for each in both] == TEXTS * 2


@pytest.mark.parametrize("state", ["", "{}", '{"_data_files": 3}', '{"_data_files": [3]}'])
def test_a_saved_dataset_that_lists_nothing_is_refused(tmp_path: Path, state: str) -> None:
    (tmp_path / "state.json").write_text(state)
    with pytest.raises(CorpusError, match=r"state\.json does not say which files .*save_to_disk"):
        read_documents(tmp_path)


def test_a_directory_is_read_in_the_order_of_names(tmp_path: Path) -> None:
    (tmp_path / "in" / "deep").mkdir(parents=True)
    (tmp_path / "in" / "b.txt").write_text("Second.")
    pq.write_table(pa.table({"text": ["First."]}), tmp_path / "in" / "a.parquet")
    (tmp_path / "in" / "deep" / "c.jsonl.gz").write_bytes(gzip.compress(b'{"text": "Third."}'))
    assert list(read_documents(tmp_path / "in")) == [
        Document("First.", "1"),
        Document("Second.", "2"),
        Document("Third.", "3"),
    ]


def test_names_come_from_the_column_document(tmp_path: Path) -> None:
    table = pa.table({"body": ["a", None, " ", "d"], "document": ["x", "y", "z", None]})
    pq.write_table(table, tmp_path / "a.parquet")
    found = list(read_documents(tmp_path / "a.parquet", column="body"))
    assert found == [Document("a", "x"), Document("d", "4")]


def test_an_annotated_corpus_gives_the_texts_of_its_documents(tmp_path: Path) -> None:
    sentences = [
        Sentence("One.", document="a", paragraph=0),
        Sentence("Two.", document="a", paragraph=0),
        Sentence("Three.", document="a", paragraph=1),
        Sentence("Four.", document="b"),
    ]
    Corpus.write(tmp_path / "a.parquet", sentences)
    expected = [Document("One. Two.\nThree.", "a"), Document("Four.", "b")]
    assert list(read_documents(tmp_path / "a.parquet")) == expected
    conllu = b"# newdoc id = n\n# text = Hi\n1\tHi\thi\tINTJ\t_\t_\t0\troot\t_\t_\n\n"
    (tmp_path / "b.conllu.gz").write_bytes(gzip.compress(conllu))
    assert list(read_documents(tmp_path / "b.conllu.gz")) == [Document("Hi", "n")]
    assert hs.read_corpus(tmp_path / "b.conllu.gz")[0].text == "Hi"
    demo = list(read_documents("demo"))
    assert len(demo) == sum(1 for _ in hs.demo_corpus().documents())


def test_only_a_few_rows_are_held(tmp_path: Path) -> None:
    rows = 20_000
    pq.write_table(pa.table({"text": ["word " * 200] * rows}), tmp_path / "a.parquet")
    pa.default_memory_pool().release_unused()
    before = pa.total_allocated_bytes()
    most = max(pa.total_allocated_bytes() - before for _ in read_documents(tmp_path / "a.parquet"))
    assert most < 4_000_000  # of 20 MB


def refused(source: Any, *, column: str = "text") -> str:
    with pytest.raises(CorpusError) as caught:
        list(read_documents(source, column=column))
    said = str(caught.value)
    assert "\n" not in said and len(said) < 600
    return said


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "a.feather", "a.jsonl"])
def test_a_missing_column_names_those_that_exist(tmp_path: Path, name: str) -> None:
    said = refused(_write(tmp_path, name), column="body")
    assert "'body'" in said and "'text'" in said and str(tmp_path / name) in said


def test_a_column_of_numbers_is_refused(tmp_path: Path) -> None:
    said = refused(_write(tmp_path, "a.parquet"), column="number")
    assert "'number' holds int, not text" in said


@pytest.mark.parametrize("values", [[], ["", " \n"], [None, None]])
def test_an_empty_column_is_refused(tmp_path: Path, values: list[str | None]) -> None:
    pq.write_table(pa.table({"text": pa.array(values, pa.string())}), tmp_path / "a.parquet")
    said = refused(tmp_path / "a.parquet")
    assert said.startswith(f"There is no text in the column 'text' of {tmp_path}")


@pytest.mark.parametrize(("name", "packed"), [each for each in SOURCES if each[1]])
def test_a_file_cut_short_is_named(tmp_path: Path, name: str, packed: str) -> None:
    path = _write(tmp_path, name, packed)
    path.write_bytes(path.read_bytes()[:-6])
    said = refused(path)
    assert said.startswith(f"{path} is cut short or damaged (")
    assert said.endswith("copy or download it again.")


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "a.feather", "a.txt.gz", "a.jsonl.zst"])
def test_a_file_that_is_something_else_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"This is no such file, whatever its ending says." * 9)
    said = refused(tmp_path / name)
    assert f"{name} is cut short or damaged (" in said or f"{name} is not a readable" in said


@pytest.mark.parametrize("name", ["a.arrow", "a.feather"])
def test_texts_that_lie_outside_a_table_are_refused(tmp_path: Path, name: str) -> None:
    table = pa.table({"text": ["One.", "Two.", "Six."]})
    new = pa.ipc.new_stream if name == "a.arrow" else pa.ipc.new_file
    with pa.OSFile(str(tmp_path / name), "wb") as file, new(file, table.schema) as writer:
        writer.write_table(table)
    content = (tmp_path / name).read_bytes()
    offsets, wrong = struct.pack("<4i", 0, 4, 8, 12), struct.pack("<4i", 0, 4, 2_000_000_000, 12)
    assert content.count(offsets) == 1
    (tmp_path / name).write_bytes(content.replace(offsets, wrong))
    assert refused(tmp_path / name).startswith(f"{tmp_path / name} is cut short or damaged (")


def test_a_document_without_end_is_refused_before_it_is_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(raw, "LONGEST_TEXT", 20)
    (tmp_path / "a.txt").write_text("A line.\n" * 5)
    assert "a.txt:3: a document of more than 20 characters" in refused(tmp_path / "a.txt")
    pq.write_table(pa.table({"text": ["a" * 21]}), tmp_path / "a.parquet")
    assert "Document 1 of" in refused(tmp_path / "a.parquet")


def test_places_that_hold_no_text_are_refused(
    tmp_path: Path, standard_input: Callable[[bytes], None]
) -> None:
    assert "There is no file or directory" in refused(tmp_path / "none.txt")
    assert "No file in" in refused(tmp_path)
    (tmp_path / "a.docx").write_text("x")
    assert "'.docx', which no reader knows" in refused(tmp_path / "a.docx")
    assert "is empty" in refused("")
    assert "name of the column is empty" in refused("demo", column="")
    standard_input(b"  \n")
    assert refused("-").startswith("There is no text in standard input")


def _hub(monkeypatch: pytest.MonkeyPatch, load: Callable[..., Any]) -> None:
    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset=load))


def test_a_name_without_the_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    said = refused("someone/corpus")
    assert "no file or directory someone/corpus" in said and "headscope[hub]" in said


def test_a_name_while_offline_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(*_: Any, **__: Any) -> None:
        raise ConnectionError("Couldn't reach 'someone/corpus' on the Hub.\nMore lines.")

    _hub(monkeypatch, load)
    said = refused("someone/corpus")
    assert "(Couldn't reach 'someone/corpus' on the Hub); check the name and the network" in said


def test_a_name_is_streamed_by_configuration_and_split(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def load(*names: Any, **options: Any) -> list[dict[str, Any]]:
        asked.append((*names, options))
        return [{"text": "One.", "document": "d"}, {"text": None}, {"text": "Three."}]

    _hub(monkeypatch, load)
    for name in ("HF_DATASETS_OFFLINE", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    found = [Document("One.", "d"), Document("Three.", "3")]
    assert list(read_documents("someone/corpus:raw:test")) == found
    assert list(read_documents("plain")) == found
    assert "'text', 'document'" in refused("plain", column="body")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert list(read_documents("plain::test")) == found
    assert asked == [
        ("someone/corpus", "raw", {"split": "test", "streaming": True}),
        ("plain", None, {"split": "train", "streaming": True}),
        ("plain", None, {"split": "train", "streaming": True}),
        ("plain", None, {"split": "test", "streaming": False}),
    ]


def _found(corpus: Corpus) -> list[tuple[str, str, int, str]]:
    return [(each.text, each.document, each.paragraph, each.id) for each in corpus]


CUT = [
    ("Erste Zeile.", "1", 0, "1"),
    ("Zweite.", "1", 1, "2"),
    ("Dritte.", "1", 1, "3"),
    ("第二篇。", "2", 0, "1"),
    ("完。", "2", 0, "2"),
]
LAYOUTS = {
    "running": CUT,
    "paragraphs": [
        ("Erste Zeile.", "1", 0, "1"),
        ("Zweite. Dritte.", "1", 1, "2"),
        ("第二篇。完。", "2", 0, "1"),
    ],
    "sentences": [
        ("Erste Zeile.", "1", 0, "1"),
        ("Zweite. Dritte.", "1", 0, "2"),
        ("第二篇。完。", "2", 0, "1"),
    ],
    "documents": [
        ("Erste Zeile.\nZweite. Dritte.", "1", 0, "1"),
        ("第二篇。完。", "2", 0, "1"),
    ],
}


@pytest.mark.parametrize("layout", [None, *LAYOUTS])
def test_raw_text_becomes_sentences_as_the_layout_says(tmp_path: Path, layout: Any) -> None:
    texts = ["Erste Zeile.\nZweite. Dritte.", "第二篇。完。", " "]
    pq.write_table(pa.table({"body": texts}), tmp_path / "a.parquet")
    (tmp_path / "a.txt").write_text("\n\n".join(texts), encoding="utf-8")
    table = hs.read_corpus(tmp_path / "a.parquet", layout=layout, column="body")
    assert _found(table) == LAYOUTS[layout or "running"]
    assert not table.has("words") and table.source.name == "a.parquet"
    lines = hs.read_corpus(tmp_path / "a.txt", layout=layout)
    assert _found(lines) == LAYOUTS[layout or "sentences"]
    few = hs.read_corpus(tmp_path / "a.txt", layout=layout, documents=1)
    assert {each.document for each in few} == {"1"}


def test_objects_are_cut_only_when_asked(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "One. Two."}\n{"text": "Three."}')
    assert [each.text for each in hs.read_corpus(tmp_path / "a.jsonl")] == ["One. Two.", "Three."]
    cut = hs.read_corpus(tmp_path / "a.jsonl", layout="running")
    assert [each.text for each in cut] == ["One.", "Two.", "Three."]


def test_standard_input_becomes_a_corpus_named_by_its_sentences(
    tmp_path: Path, standard_input: Callable[[bytes], None]
) -> None:
    standard_input("Erste Zeile.\nZweite. Dritte.\n\n第二篇。完。".encode())
    corpus = hs.read_corpus("-")
    assert _found(corpus) == CUT
    assert corpus.source.name == "standard input"
    (kept,) = (tmp_path / "cache" / "corpora").glob("*.parquet")
    assert kept.stem == corpus.fingerprint
    standard_input(b" ")
    with pytest.raises(CorpusError, match="There is no sentence in standard input"):
        hs.read_corpus("-")
    assert len(list((tmp_path / "cache" / "corpora").glob("*.parquet*"))) == 1
    with pytest.raises(CorpusError, match="documents=0 leaves nothing to read"):
        hs.read_corpus("demo", documents=0)


def test_a_table_is_compressed_inside_alone(tmp_path: Path) -> None:
    said = refused(_write(tmp_path, "a.parquet", ".gz"))
    assert "has the ending '.gz', which no reader knows" in said


def test_annotating_takes_the_same_sources(tmp_path: Path) -> None:
    found = find_inputs([_write(tmp_path, "a.parquet")])
    assert not isinstance(found, Corpus) and list(found) == EXPECTED
    found = find_inputs(["demo"])
    assert isinstance(found, Corpus)
