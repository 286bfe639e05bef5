"""Files that nobody means well with: each is refused in a sentence that names file and line."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import headscope as hs
from headscope.errors import CorpusError
from headscope.text import sentence, storage
from headscope.text.corpus import Corpus, columns_of
from headscope.text.readers import lines
from headscope.text.sentence import ROOT, Mention, Sentence, Word
from headscope.text.sources import read_documents

NUMBER = "9" * 5000
ROW = "{id}\tHello\t_\tX\t_\t_\t{head}\troot\t_\t{misc}\n\n"
GOOD = Sentence(
    "A cat sat.",
    (Word("A", 0, 1, head=1), Word("cat", 2, 5, head=2), Word("sat.", 6, 10, head=ROOT)),
    (Mention("e", ((0, 2),)),),
)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADSCOPE_CACHE", str(tmp_path / "cache"))


def refused(path: Path, content: str) -> str:
    path.write_text(content, encoding="utf-8")
    with pytest.raises(CorpusError) as caught:
        list(hs.read_corpus(path))
    said = str(caught.value)
    assert str(path) in said and len(said) < len(str(path)) + 400
    return said.removeprefix(str(path))


@pytest.mark.parametrize(
    "row",
    [
        ROW.format(id=1, head=NUMBER, misc="_"),
        ROW.format(id=f"1-{NUMBER}", head="_", misc="_"),
        ROW.format(id=NUMBER, head=0, misc="_"),
        ROW.format(id=1, head=0, misc=f"Entity=(e1[1/{NUMBER}])"),
        ROW.format(id=1, head=0, misc=f"Entity=(e1[{NUMBER}/2])"),
    ],
)
def test_a_number_of_thousands_of_digits_is_named_with_its_line(tmp_path: Path, row: str) -> None:
    assert refused(tmp_path / "a.conllu", row).startswith(":1: ")


@pytest.mark.parametrize(
    "record",
    [
        "[" * 100_000,
        '{"text": ' + "[" * 100_000,
        f'{{"text": "a", "paragraph": {NUMBER}}}',
        f'{{"text": "a", "paragraph": {NUMBER[:4000]}}}',
        f'{{"words": ["a"], "head": [{NUMBER[:4000]}]}}',
        f'{{"words": ["a"], "mentions": [{{"entity": "e", "spans": [[0, {NUMBER[:4000]}]]}}]}}',
        '{"words": ["a"], "mentions": ' + "[" * 50_000,
    ],
)
def test_deep_and_huge_records_are_named_with_their_line(tmp_path: Path, record: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(f'{{"text": "Good."}}\n{record}\n', encoding="utf-8")
    with pytest.raises(CorpusError) as caught:
        list(hs.read_corpus(path))
    said = str(caught.value)
    assert said.startswith(f"{path}:2: ") and len(said) < len(str(path)) + 400


def test_a_deep_document_to_annotate_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("[" * 100_000, encoding="utf-8")
    with pytest.raises(CorpusError, match=r"a\.jsonl:1: .*nested too deeply"):
        list(read_documents(path))


@pytest.mark.parametrize("name", ["a.txt", "a.jsonl", "a.conllu", "a.conll"])
def test_a_line_without_end_is_refused_before_it_is_read(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "LONGEST_LINE", 1000)
    assert ":2: a line of more than 1,000 bytes" in refused(tmp_path / name, "\n" + "a" * 2000)


def store(path: Path, table: pa.Table, facts: bytes) -> None:
    pq.write_table(table.replace_schema_metadata({b"headscope": facts}), path)


def facts_in(path: Path) -> bytes:
    return pq.read_metadata(path).metadata[b"headscope"]


def rewritten(path: Path, **changes: Any) -> Path:
    """A corpus as Headscope writes it, with other values in some columns of its second row."""
    Corpus.write(path, [GOOD, GOOD])
    table, facts = pq.read_table(path), facts_in(path)
    for name, value in changes.items():
        values = [*table.column(name).to_pylist()[:1], value]
        place = table.column_names.index(name)
        column = pa.array(values, table.schema.field(name).type)
        table = table.set_column(place, table.schema.field(name), column)
    store(path, table, facts)
    return path


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"head": [1, 0, -1]}, "lead back"),
        ({"head": [0, -1, -1]}, "lead back"),
        ({"head": [1, 2, 0]}, "lead back"),
        ({"head": [-2, 2, -1]}, "not in the sentence"),
        ({"head": [3, 2, -1]}, "not in the sentence"),
        ({"head": [2**31 - 1, 2, -1]}, "not in the sentence"),
        ({"start": [-1, 2, 6]}, "not lie in the text"),
        ({"end": [1, 5, 11]}, "not lie in the text"),
        ({"end": [1, 1, 10]}, "not lie in the text"),
        ({"paragraph": -1}, "paragraph is -1"),
        ({"parts": [0], "span_start": [], "span_end": []}, "has no words"),
        ({"span_end": [4]}, "the mention of 'e' does not lie"),
        ({"span_end": [0]}, "the mention of 'e' does not lie"),
        ({"span_start": [-1]}, "the mention of 'e' does not lie"),
    ],
)
def test_rows_of_parquet_that_no_reader_gives_are_refused(
    tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    path = rewritten(tmp_path / "c.parquet", **changes)
    with pytest.raises(CorpusError, match=rf"c\.parquet: sentence 2: .*{said}"):
        list(hs.read_corpus(path))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"head": [1, 2]}, '"head" and "form" have different lengths'),
        ({"span_end": []}, '"span_end" and "span_start" have different lengths'),
        ({"head": None}, '"head" lacks a value'),
        ({"start": [None, 2, 6]}, '"start" lacks a value'),
        ({"form": [None, "cat", "sat"]}, '"form" lacks a value'),
        ({"text": None}, '"text" lacks a value'),
        ({"parts": [2]}, "not as many"),
        ({"parts": [-1, 2], "entity": ["a", "b"]}, "not as many"),
    ],
)
def test_columns_that_do_not_fit_together_are_refused(
    tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    path = rewritten(tmp_path / "c.parquet", **changes)
    with pytest.raises(CorpusError, match=rf"c\.parquet .*{said}.* write it again"):
        list(hs.read_corpus(path))
    with pytest.raises(CorpusError, match=said):
        list(columns_of(hs.read_corpus(path), "document"))


def test_what_was_not_changed_is_read(tmp_path: Path) -> None:
    path = rewritten(tmp_path / "c.parquet", head=[None, 2, -1])
    first, second = hs.read_corpus(path)
    assert first == GOOD
    assert second == replace(GOOD, words=(replace(GOOD.words[0], head=None), *GOOD.words[1:]))


def test_a_text_without_end_in_a_cell_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "c.parquet"
    Corpus.write(path, [GOOD, Sentence("a" * 2000)])
    monkeypatch.setattr(sentence, "LONGEST_TEXT", 1000)
    with pytest.raises(CorpusError, match="sentence 2: the text is longer than 1,000 characters"):
        list(Corpus.open(path))


def test_a_row_group_that_unpacks_to_too_much_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "c.parquet"
    Corpus.write(path, [Sentence("a" * 1_000_000)])
    assert path.stat().st_size < 10_000
    monkeypatch.setattr(storage, "LARGEST_GROUP", 100_000)
    with pytest.raises(CorpusError, match="a row group holds"):
        Corpus.open(path)
    with pytest.raises(CorpusError, match="1 sentences hold"):
        Corpus.write(tmp_path / "d.parquet", [Sentence("a" * 1_000_000)])


@pytest.mark.parametrize(
    "facts",
    [
        "[" * 100_000,
        "nonsense",
        "[]",
        "{}",
        '{"format": 1}',
        {"rows": 3},
        {"rows": -2},
        {"rows": "2"},
        {"group_rows": 0},
        {"group_rows": 1},
        {"fields": 7},
        {"fields": [1]},
        {"fingerprint": None},
        {"more": 1},
    ],
)
def test_a_parquet_that_lies_about_itself_is_refused(tmp_path: Path, facts: Any) -> None:
    path = tmp_path / "c.parquet"
    Corpus.write(path, [GOOD, GOOD])
    table = pq.read_table(path)
    known = json.loads(facts_in(path))
    said = facts if isinstance(facts, str) else json.dumps(known | facts)
    store(path, table, said.encode())
    with pytest.raises(CorpusError, match=r"c\.parquet .*write it again from its source"):
        Corpus.open(path)


def test_a_parquet_with_other_columns_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "c.parquet"
    Corpus.write(path, [GOOD])
    store(path, pq.read_table(path).drop_columns(["head"]), facts_in(path))
    with pytest.raises(CorpusError, match="columns are not those of a corpus"):
        Corpus.open(path)


def test_a_list_whose_items_have_another_name_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "c.parquet"
    Corpus.write(path, [GOOD])
    content = path.read_bytes()
    at = content.index(b"element", content.index(b"feats"))  # in the schema, which comes first
    path.write_bytes(content[:at] + b"elemant" + content[at + 7 :])
    with pytest.raises(CorpusError, match="columns are not those of a corpus"):
        list(Corpus.open(path))
