"""JSONL: one object per line with "text" or "words" and whatever annotation there is."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from headscope.text.readers.lines import LineError, read_lines, sound
from headscope.text.sentence import (
    ROOT,
    Mention,
    Sentence,
    SurfaceError,
    Word,
    locate,
    quoted,
)

_TAGS = ("upos", "xpos", "feats", "deprel")


def read_jsonl(path: Path, documents: Iterator[str]) -> Iterator[Sentence]:
    """Each object as a sentence; one without "document" is a document of its own."""
    for number, line in enumerate(read_lines(path), start=1):
        if not line.strip():
            continue
        try:
            sentence = sound(_sentence(parse_record(line), documents))
        except LineError as error:
            raise error.at(path, number) from error
        yield sentence


def parse_record(line: str) -> dict[str, Any]:
    """The object on a line."""
    try:
        value = json.loads(line)
        if "\\ud" in line.lower():
            # An escape may be half of a surrogate pair, which is no character and cannot be stored.
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError as error:
        raise LineError("lists or objects are nested too deeply; write them flat.") from error
    except UnicodeEncodeError as error:
        raise LineError("a \\u escape is half of a surrogate pair; write both.") from error
    except ValueError as error:
        raise LineError(f"not JSON ({error}); correct it.") from error
    if not isinstance(value, dict):
        raise LineError('not a JSON object; write {"text": "…"}.')
    return value


def _sentence(record: dict[str, Any], documents: Iterator[str]) -> Sentence:
    forms = _strings(record, "words")
    text = _value(record, "text", str, " ".join(forms))
    if not text.strip():
        raise LineError('there is no text; give "text", "words" or both.')
    words = _words(record, text, forms)
    document = _value(record, "document", str, None)
    return Sentence(
        text,
        words,
        _mentions(record),
        next(documents) if document is None else document,
        _value(record, "paragraph", int, 0),
        _value(record, "id", str, ""),
    )


def _value(record: dict[str, Any], name: str, kind: type, default: Any) -> Any:
    value = record.get(name, default)
    if value is not default and (not isinstance(value, kind) or isinstance(value, bool)):
        raise LineError(f'"{name}" is {quoted(value)}; give a {kind.__name__}.')
    return value


def _strings(record: dict[str, Any], name: str) -> list[str]:
    values = record.get(name, [])
    if not isinstance(values, list) or not all(isinstance(v, str) and v for v in values):
        raise LineError(f'"{name}" is not a list of strings; correct it.')
    return values


def _words(record: dict[str, Any], text: str, forms: Sequence[str]) -> tuple[Word, ...]:
    count = len(forms)
    try:
        spans = locate(forms, text) if forms else []
    except SurfaceError as error:
        word = repr(forms[error.index]) if error.index < count else "the end"
        raise LineError(
            f'"text" has {error.rest!r} where "words" has {word}; correct one or the other.'
        ) from error
    upos, xpos, feats, deprel = (_tags(record, name, count) for name in _TAGS)
    heads = _heads(record, count)
    rows = zip(forms, spans, upos, xpos, feats, heads, deprel, strict=True)
    return tuple(Word(form, start, end, *rest) for form, (start, end), *rest in rows)


def _tags(record: dict[str, Any], name: str, count: int) -> list[str | None]:
    values = _column(record, name, count)
    if not all(value is None or isinstance(value, str) for value in values):
        raise LineError(f'"{name}" holds more than strings and null; correct it.')
    return values


def _heads(record: dict[str, Any], count: int) -> list[int | None]:
    values = _column(record, "head", count)
    for value in values:
        if value is not None and type(value) is not int:
            raise LineError(
                f'"head" holds {quoted(value)}; give word indices from 0, or {ROOT} for the root.'
            )
    return values


def _column(record: dict[str, Any], name: str, count: int) -> list[Any]:
    values = record.get(name)
    if values is None:
        return [None] * count
    if not isinstance(values, list) or len(values) != count:
        raise LineError(f'"{name}" is not a list with one value for each of {count} "words".')
    return values


def _mentions(record: dict[str, Any]) -> tuple[Mention, ...]:
    mentions = record.get("mentions", [])
    if not isinstance(mentions, list):
        raise LineError('"mentions" is not a list; correct it.')
    return tuple(_mention(value) for value in mentions)


def _mention(value: Any) -> Mention:
    match value:
        case {"entity": str(entity), "spans": [_, *_] as spans} if all(map(_is_span, spans)):
            return Mention(entity, tuple((start, end) for start, end in spans))
    raise LineError(
        f'the mention {quoted(value)} is not {{"entity": "e1", "spans": [[0, 2]]}}; correct it.'
    )


def _is_span(value: Any) -> bool:
    return isinstance(value, list) and [type(edge) for edge in value] == [int, int]
