import json
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headscope.errors import CorpusError
from headscope.text.readers.jsonl import read_jsonl
from headscope.text.sentence import Sentence
from tests.references.random_sentences import sentences


def read(path: Path, *lines: str) -> list[Sentence]:
    file = path / "sample.jsonl"
    file.write_text("\n".join(lines), encoding="utf-8")
    return list(read_jsonl(file, map(str, count(1))))


def to_json(sentence: Sentence) -> str:
    record = {
        "text": sentence.text,
        "words": [word.text for word in sentence.words],
        "mentions": [{"entity": m.entity, "spans": m.spans} for m in sentence.mentions],
        "document": sentence.document,
        "paragraph": sentence.paragraph,
        "id": sentence.id,
    }
    for name in ("upos", "xpos", "feats", "head", "deprel"):
        record[name] = [getattr(word, name) for word in sentence.words]
    return json.dumps(record)


@settings(max_examples=60)
@given(st.lists(sentences(), min_size=1, max_size=3))
def test_reading_gives_back_what_was_written(
    tmp_path_factory: pytest.TempPathFactory, given: list[Sentence]
) -> None:
    assert read(tmp_path_factory.mktemp("jsonl"), *map(to_json, given)) == given


def test_text_alone_is_enough_and_objects_without_document_are_apart(tmp_path: Path) -> None:
    found = read(tmp_path, '{"text": "One."}', "", '{"words": ["Two", "."], "extra": 1}')
    assert [(s.text, s.document, len(s.words)) for s in found] == [
        ("One.", "1", 0),
        ("Two .", "2", 2),
    ]


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("{", "not JSON"),
        ("[]", "not a JSON object"),
        ("{}", "there is no text"),
        ('{"text": 3}', '"text" is 3; give a str'),
        ('{"text": "a", "paragraph": "b"}', "\"paragraph\" is 'b'; give a int"),
        ('{"words": "ab"}', '"words" is not a list of strings'),
        ('{"text": "a b", "words": ["a", "c"]}', "has 'b' where \"words\" has 'c'"),
        ('{"text": "a b", "words": ["a"]}', "has 'b' where \"words\" has the end"),
        ('{"words": ["a"], "upos": []}', '"upos" is not a list with one value for each of 1'),
        ('{"words": ["a"], "upos": [1]}', '"upos" holds more than strings and null'),
        ('{"words": ["a"], "head": [1]}', "the head 1 of word 1 'a' is not in the sentence"),
        ('{"words": ["a"], "head": [0]}', "lead back to it"),
        ('{"words": ["a"], "mentions": [{"entity": "e"}]}', "the mention"),
        (
            '{"words": ["a"], "mentions": [{"entity": "e", "spans": [[0, 2]]}]}',
            "the mention of 'e' does not lie in the sentence, which has 1 word;",
        ),
        (
            '{"words": ["a"], "mentions": [{"entity": "e", "spans": [[0, 1.5]]}]}',
            "is not {",
        ),
        ('{"text": "\\ud83d"}', "half of a surrogate pair"),
        ('{"text": "a", "paragraph": -1}', "the paragraph is -1; number them from 0"),
        ('{"words": ["a"], "mentions": 3}', '"mentions" is not a list'),
    ],
)
def test_a_mistake_is_named_by_file_and_line(tmp_path: Path, line: str, part: str) -> None:
    with pytest.raises(CorpusError) as caught:
        read(tmp_path, '{"text": "fine"}', line)
    assert "sample.jsonl:2: " in str(caught.value)
    assert part in str(caught.value)
