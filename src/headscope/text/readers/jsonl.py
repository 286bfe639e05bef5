"""JSONL: one object per line with "text" or "words" and whatever annotation there is."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from headscope.text.readers.lines import mistake, quoted, read_lines
from headscope.text.readers.words import SurfaceError, find_cycle, locate
from headscope.text.sentence import ROOT, Mention, Sentence, Word

_TAGS = ("upos", "xpos", "feats", "deprel")


def read_jsonl(path: Path, documents: Iterator[str]) -> Iterator[Sentence]:
    """Each object as a sentence; one without "document" is a document of its own."""
    for number, line in enumerate(read_lines(path), start=1):
        if line.strip():
            try:
                yield _sentence(parse_record(line), documents)
            except RecordError as error:
                raise mistake(path, number, str(error)) from error


def _sentence(record: dict[str, Any], documents: Iterator[str]) -> Sentence:
    forms = _strings(record, "words")
    text = _text(record, forms)
    words = _words(record, text, forms)
    document = _plain(record, "document", str, None)
    paragraph = _plain(record, "paragraph", int, 0)
    if not 0 <= paragraph < 2**31:
        raise RecordError(f'"paragraph" is {quoted(paragraph)}; number paragraphs from 0.')
    return Sentence(
        text,
        words,
        _mentions(record, len(words)),
        next(documents) if document is None else document,
        paragraph,
        _plain(record, "id", str, ""),
    )


def _plain(record: dict[str, Any], name: str, kind: type, default: Any) -> Any:
    value = record.get(name, default)
    if value is not default and (not isinstance(value, kind) or isinstance(value, bool)):
        raise RecordError(f'"{name}" is {quoted(value)}; give a {kind.__name__}.')
    return value


def _text(record: dict[str, Any], forms: Sequence[str]) -> str:
    text = _plain(record, "text", str, " ".join(forms))
    if not text.strip():
        raise RecordError('there is no text; give "text", "words" or both.')
    return text


def _strings(record: dict[str, Any], name: str) -> list[str]:
    values = record.get(name, [])
    if not isinstance(values, list) or not all(isinstance(v, str) and v for v in values):
        raise RecordError(f'"{name}" is not a list of strings; correct it.')
    return values


def _words(record: dict[str, Any], text: str, forms: Sequence[str]) -> tuple[Word, ...]:
    count = len(forms)
    try:
        spans = locate(forms, text) if forms else []
    except SurfaceError as error:
        word = repr(forms[error.index]) if error.index < count else "the end"
        raise RecordError(
            f'"text" has {error.found!r} where "words" has {word}; correct one or the other.'
        ) from error
    tags = [_column(record, name, count) for name in _TAGS]
    for name, values in zip(_TAGS, tags, strict=True):
        if not all(value is None or isinstance(value, str) for value in values):
            raise RecordError(f'"{name}" holds more than strings and null; correct it.')
    heads = _heads(record, count)
    return tuple(
        Word(form, start, end, upos, xpos, feats, head, deprel)
        for form, (start, end), upos, xpos, feats, deprel, head in zip(
            forms, spans, *tags, heads, strict=True
        )
    )


def _column(record: dict[str, Any], name: str, count: int) -> list[Any]:
    values = record.get(name)
    if values is None:
        return [None] * count
    if not isinstance(values, list) or len(values) != count:
        raise RecordError(f'"{name}" is not a list with one value for each of {count} "words".')
    return values


def _heads(record: dict[str, Any], count: int) -> list[int | None]:
    heads = _column(record, "head", count)
    for head in heads:
        if head is not None and (type(head) is not int or not ROOT <= head < count):
            raise RecordError(
                f'"head" {quoted(head)} is not in the sentence; give word indices 0 to '
                f"{count - 1}, or {ROOT} for the root."
            )
    cyclic = find_cycle(heads)
    if cyclic is not None:
        raise RecordError(f'the "head" values of word {cyclic} lead back to it; correct them.')
    return heads


def _mentions(record: dict[str, Any], count: int) -> tuple[Mention, ...]:
    mentions = record.get("mentions", [])
    if not isinstance(mentions, list):
        raise RecordError('"mentions" is not a list; correct it.')
    return tuple(_mention(value, count) for value in mentions)


def _mention(value: Any, count: int) -> Mention:
    match value:
        case {"entity": str(entity), "spans": [_, *_] as spans} if all(map(_is_span, spans)):
            found = tuple((start, end) for start, end in spans)
        case _:
            raise RecordError(
                f'the mention {quoted(value)} is not {{"entity": "e1", "spans": [[0, 2]]}}; '
                "correct it."
            )
    if not all(0 <= start < end <= count for start, end in found):
        raise RecordError(f"the spans of the mention {quoted(value)} are not in the {count} words.")
    return Mention(entity, found)


def _is_span(value: Any) -> bool:
    return isinstance(value, list) and [type(edge) for edge in value] == [int, int]


class RecordError(Exception):
    """What is wrong with the object on a line."""


def parse_record(line: str) -> dict[str, Any]:
    """The object on a line."""
    try:
        value = json.loads(line)
        # JSON can escape half of a surrogate pair, which is no character and cannot be stored.
        json.dumps(value, ensure_ascii=False).encode()
    except RecursionError as error:
        raise RecordError("lists or objects are nested too deeply; write them flat.") from error
    except UnicodeEncodeError as error:
        raise RecordError("a \\u escape is half of a surrogate pair; write both.") from error
    except ValueError as error:
        raise RecordError(f"not JSON ({error}); correct it.") from error
    if not isinstance(value, dict):
        raise RecordError('not a JSON object; write {"text": "…"}.')
    return value
