import json
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
