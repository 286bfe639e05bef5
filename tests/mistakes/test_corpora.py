"""Files that are wrong, by mistake or on purpose: one sentence with the file and the line."""

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
GOOD = Sentence(
    "A cat sat.",
    (Word("A", 0, 1, head=1), Word("cat", 2, 5, head=2), Word("sat.", 6, 10, head=ROOT)),
    (Mention("e", ((0, 2),)),),
)


def conllu(number: object, form: str, head: object, deprel: str = "x", misc: str = "_") -> str:
    return f"{number}\t{form}\t_\tX\t_\t_\t{head}\t{deprel}\t_\t{misc}\n"


def entity(mentions: str) -> str:
    return conllu(1, "a", 0, misc=f"Entity={mentions}")


def conll(coreference: str) -> str:
    row = f"bc/x 0 0 a X (TOP* - - - Speaker#1 *  {coreference}\n"
    return f"#begin document (x); part 000\n{row}\n#end document\n"


A_B = conllu(1, "a", 0) + conllu(2, "b", 1) + "\n"

# The content of a file, the line that is named, and a part of what is said.
CONLLU = [
    ("1\ta\tb\n", 1, "3 columns where CoNLL-U has 10"),
    (conllu(1, "a", 0) + "\n" + conllu(2, "b", 0), 3, "the id '2' does not follow 0"),
    (conllu(1, "", 0), 1, "the word is empty"),
    (conllu(1, "a", 2) + conllu(2, "b", 1), 1, "lead back to it"),
    (conllu(1, "a", 1), 1, "lead back to it"),
    (conllu(1, "a", 0) + conllu(2, "b", 2), 2, "word 2 'b' lead back to it"),
    (conllu(1, "a", 0) + conllu(2, "b", 3), 2, "give a number from 0 to 2"),
    (conllu(1, "a", "-1"), 1, "the head '-1' of word 1 'a'"),
    (entity("(e1"), 1, "never closed"),
    (conllu(1, "q", 0) + "\n" + entity("e1)"), 3, "closed but not open"),
    (entity("(e1[1/2]-x)"), 1, "1 of its 2 parts"),
    (entity("(e1[1/2]-x)(e1[1/2]-x)"), 1, "comes twice"),
    (entity("(e1[3/2]-x)"), 1, "not an entity part"),
    (entity("(e1)e2"), 1, "not a row of brackets"),
    (entity("(-x)"), 1, "names no entity"),
    ("# global.Entity = etype-head\n", 1, "one field must be GRP or eid"),
    ("# x\n# text = a c\n" + A_B, 2, "has 'c' where the words have 'b'"),
    ("# text = a b c\n" + A_B, 1, "goes on with 'c' after the last word"),
    (conllu("2-3", "ab", "_"), 1, "does not start after word 0"),
    (conllu("1-3", "ab", "_") + A_B, 3, "reaches to word 3"),
    (conllu("2.1", "x", "_"), 1, "the id '2.1' does not follow 0"),
    (conllu(1, "a", NUMBER), 1, "999 …"),
    (conllu(f"1-{NUMBER}", "a", "_"), 1, "999 …"),
    (conllu(NUMBER, "a", 0), 1, "999 …"),
    (entity(f"(e1[1/{NUMBER}])"), 1, "999 …"),
    (entity(f"(e1[{NUMBER}/2])"), 1, "999 …"),
]
CONLL = [
    (conll("-").partition("\n")[2], 1, "words outside a document"),
    (conll("-").removesuffix("#end document\n"), 1, "never ends"),
    (conll("-").replace(" (TOP*", "\n"), 2, "5 columns where CoNLL-2012 has at least 12"),
    (conll("(1"), 2, "never closed"),
    (conll("1)"), 2, "closed but not open"),
    (conll("1"), 2, "is not like (1|(2)|3)"),
    ("#begin document x\n", 1, "is not `#begin document (name); part 000`"),
]
RECORDS = [
    ("{", "not JSON"),
    ("[]", "not a JSON object"),
    ("{}", "there is no text"),
    ('{"text": 3}', '"text" is 3; give a str'),
    ('{"text": "\\ud83d"}', "half of a surrogate pair"),
    ('{"text": "a", "paragraph": "b"}', "\"paragraph\" is 'b'; give a int"),
    ('{"text": "a", "paragraph": -1}', "the paragraph is -1; number them from 0"),
    ('{"words": "ab"}', '"words" is not a list of strings'),
    ('{"text": "a b", "words": ["a", "c"]}', "has 'b' where \"words\" has 'c'"),
    ('{"text": "a b", "words": ["a"]}', "has 'b' where \"words\" has the end"),
    ('{"words": ["a"], "upos": []}', '"upos" is not a list with one value for each of 1'),
    ('{"words": ["a"], "upos": [1]}', '"upos" holds more than strings and null'),
    ('{"words": ["a"], "head": [1]}', "the head 1 of word 1 'a' is not in the sentence"),
    ('{"words": ["a"], "head": [0]}', "lead back to it"),
    ('{"words": ["a"], "mentions": 3}', '"mentions" is not a list'),
    ('{"words": ["a"], "mentions": [{"entity": "e"}]}', "the mention"),
    (
        '{"words": ["a"], "mentions": [{"entity": "e", "spans": [[0, 2]]}]}',
        "the mention of 'e' does not lie in the sentence, which has 1 word;",
    ),
    ('{"words": ["a"], "mentions": [{"entity": "e", "spans": [[0, 1.5]]}]}', "is not {"),
    ("[" * 100_000, "nested too deeply"),
    ('{"text": ' + "[" * 100_000, "nested too deeply"),
    ('{"words": ["a"], "mentions": ' + "[" * 50_000, "nested too deeply"),
    (f'{{"text": "a", "paragraph": {NUMBER}}}', "value has 5000 digits"),
    (f'{{"text": "a", "paragraph": {NUMBER[:4000]}}}', "999"),
    (f'{{"words": ["a"], "head": [{NUMBER[:4000]}]}}', "999"),
    (
        f'{{"words": ["a"], "mentions": [{{"entity": "e", "spans": [[0, {NUMBER[:4000]}]]}}]}}',
        "of 'e' does not lie",
    ),
]
# Files without any sentence, or of no format: no line is to be named.
FILES = [
    ("a.docx", "x", "has the ending '.docx', which no reader knows; use .parquet, .arrow"),
    ("a.txt", " \n\n", "no sentence in"),
    ("a.conllu", "", "no sentence in"),
    ("a.conllu", "# only = comments\n", "no sentence in"),
    ("a.parquet", "", "not a readable Parquet file"),
]
LINES = [
    *(("a.conllu", *mistake) for mistake in CONLLU),
    *(("a.conll", *mistake) for mistake in CONLL),
    *(("a.jsonl", '{"text": "Good."}\n' + line, 2, part) for line, part in RECORDS),
]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty one."""
    monkeypatch.setenv("HEADSCOPE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "corpora"


def refusal(path: Path, content: str) -> str:
    """What is said of a file with this content."""
    path.write_text(content, encoding="utf-8")
    with pytest.raises(CorpusError) as caught:
        list(hs.read_corpus(path))
    said = str(caught.value)
    assert str(path) in said and "\n" not in said and len(said) < len(str(path)) + 400
    return said


@pytest.mark.parametrize(("name", "content", "line", "part"), LINES)
def test_a_mistake_is_named_by_file_and_line(
    name: str, content: str, line: int, part: str, tmp_path: Path, cache: Path
) -> None:
    said = refusal(tmp_path / name, content)
    assert said.startswith(f"{tmp_path / name}:{line}: ") and part in said
    assert said.endswith(".")
    assert list(cache.glob("*")) == []


@pytest.mark.parametrize(("name", "content", "part"), FILES)
def test_a_file_that_is_no_corpus_is_named(
    name: str, content: str, part: str, tmp_path: Path
) -> None:
    assert part in refusal(tmp_path / name, content)


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
    said = refusal(tmp_path / name, "\n" + "a" * 2000)
    assert f"{name}:2: a line of more than 1,000 bytes" in said


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
