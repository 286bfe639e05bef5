"""CoNLL-U: syntactic words, multiword tokens, empty nodes, trees and coreference.

CoNLL-2012: words, part-of-speech tags and a coreference column; no dependencies, no spacing.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Literal

from headscope.errors import CorpusError
from headscope.text.readers.lines import mistake, quoted, read_lines, whole_number
from headscope.text.readers.words import (
    BracketError,
    EntityNotation,
    MentionBuilder,
    SurfaceError,
    find_cycle,
    join,
    locate,
    merge_fused,
)
from headscope.text.sentence import Sentence, Word

Fused = Literal["merge", "keep"]
_COLUMNS = 10

_BEGIN = re.compile(r"#begin document \((?P<name>.*)\)(?:;\s*part\s+(?P<part>\d+))?\s*")
_BRACKET = re.compile(r"\((?P<single>[^()|]+)\)|\((?P<open>[^()|]+)|(?P<close>[^()|]+)\)")
_WORD, _TAG = 3, 4
_NOTHING = ("-", "_", "*")
_COLUMNS_2012 = 12  # without predicates: eleven fixed columns, then coreference

# Written in the treebank for characters that its own notation needed.
_ESCAPES = {
    "-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}",
    "/.": ".", "/?": "?", "/-": "-",
}  # fmt: skip


def read_conllu(
    path: Path,
    documents: Iterator[str],
    *,
    fused: Fused = "merge",
    counts: Counter[str] | None = None,
) -> Iterator[Sentence]:
    """The sentences of one file; `documents` names those without an id.

    Words of a multiword token share out its characters when they spell it ("do" + "n't").
    Otherwise ("du" = "de" + "le") they become one word, counted as "merged"; with fused="keep" each
    has the whole span.
    """
    counts = Counter() if counts is None else counts
    try:
        for sentence, merged in _sentences(path, _Place(documents), fused):
            counts["merged"] += merged
            yield sentence
    except BracketError as error:
        raise mistake(path, error.line, str(error)) from error


def _sentences(path: Path, place: "_Place", fused: Fused) -> Iterator[tuple[Sentence, int]]:
    """Every sentence with the number of tokens whose words were merged."""
    block = _Block(path)
    for number, line in enumerate(chain(read_lines(path), [""]), start=1):
        if not line.strip():
            if block.words:
                yield _finish(block, place, fused)
            block = _Block(path)
        elif line[0] == "#":
            _read_comment(line, number, block, place)
        else:
            _read_row(line, number, block, place.notation)


@dataclass
class _Place:
    """Where in the file we are: document, paragraph, and the notation for entities."""

    unnamed: Iterator[str]
    document: str | None = None
    paragraph: int = 0
    sentences: int = 0  # in this document
    notation: EntityNotation = field(default_factory=EntityNotation)

    def start_document(self, name: str) -> None:
        self.document, self.paragraph, self.sentences = name or next(self.unnamed), 0, 0

    def start_paragraph(self) -> None:
        if self.sentences:
            self.paragraph += 1


@dataclass
class _Token:
    """A written token: one word, or a multiword token with several."""

    form: str
    glued: bool
    first: int  # index of its first word
    stop: int  # index after its last


@dataclass
class _Block:
    """One sentence while its lines come in."""

    path: Path
    id: str = ""
    text: str | None = None
    text_line: int = 0
    lines: list[int] = field(default_factory=list)  # line number of every word
    words: list[list[str]] = field(default_factory=list)  # the columns of every word
    tokens: list[_Token] = field(default_factory=list)
    fused: int = 0  # multiword tokens that their words do not spell
    mentions: MentionBuilder = field(default_factory=MentionBuilder)


def _read_comment(line: str, number: int, block: _Block, place: _Place) -> None:
    key, _, value = line[1:].partition("=")
    match key.strip():
        case "sent_id":
            block.id = value.strip()
        case "text":
            block.text, block.text_line = value.strip(), number
        case "newdoc" | "newdoc id":
            place.start_document(value.strip())
        case "newpar" | "newpar id":
            place.start_paragraph()
        case "global.Entity":
            place.notation = EntityNotation.declared(value, number)


def _read_row(line: str, number: int, block: _Block, notation: EntityNotation) -> None:
    columns = line.split("\t")
    if len(columns) != _COLUMNS:
        raise mistake(
            block.path,
            number,
            f"{len(columns)} columns where CoNLL-U has {_COLUMNS}; separate them with single tabs.",
        )
    identifier, form, misc = columns[0], columns[1], columns[9]
    count = len(block.words)
    if identifier == str(count + 1):
        block.words.append(columns)
        block.lines.append(number)
        if not block.tokens or block.tokens[-1].stop <= count:
            block.tokens.append(_Token(form, _is_glued(misc), count, count + 1))
        start, end = count, count + 1
    elif "-" in identifier:
        block.tokens.append(_multiword(columns, number, block))
        return
    elif _is_empty_node(identifier, count):
        start = end = count
    else:
        raise mistake(
            block.path,
            number,
            f"the id {quoted(identifier)} does not follow {count}; "
            "number the words from 1 in order.",
        )
    if not form:
        raise mistake(block.path, number, "the word is empty; fill its second column.")
    for attribute in misc.split("|") if "Entity=" in misc else ():
        if attribute.startswith("Entity="):
            notation.read(attribute[7:], start, end, number, block.mentions)


def _multiword(columns: list[str], number: int, block: _Block) -> _Token:
    identifier, count = columns[0], len(block.words)
    first, _, last = identifier.partition("-")
    inside = bool(block.tokens) and block.tokens[-1].stop > count
    stop = whole_number(last)
    if inside or first != str(count + 1) or stop is None or stop <= count:
        raise mistake(
            block.path,
            number,
            f"the multiword token {quoted(identifier)} does not start after word {count}; "
            "put it before its words.",
        )
    return _Token(columns[1], _is_glued(columns[9]), count, stop)


def _is_empty_node(identifier: str, count: int) -> bool:
    word, dot, rank = identifier.partition(".")
    return dot == "." and word == str(count) and rank.isdecimal()


def _is_glued(misc: str) -> bool:
    return "SpaceAfter=No" in misc and "SpaceAfter=No" in misc.split("|")


def _finish(block: _Block, place: _Place, fused: Fused) -> tuple[Sentence, int]:
    last = block.tokens[-1]
    if last.stop > len(block.words):
        raise mistake(
            block.path,
            block.lines[-1],
            f"the multiword token {quoted(last.form)} reaches to word {last.stop}, but the "
            f"sentence ends with word {len(block.words)}; correct its range.",
        )
    if place.document is None:
        place.start_document("")
    place.sentences += 1
    text, spans = _surface(block)
    words = _words(block, spans)
    mentions = block.mentions.finish()
    merged = block.fused if fused == "merge" else 0
    if merged:
        words, mentions = merge_fused(text, words, mentions)
    found = Sentence(text, words, mentions, place.document or "", place.paragraph, block.id)
    return found, merged


def _surface(block: _Block) -> tuple[str, list[tuple[int, int]]]:
    """The text, and the span of every word in it."""
    forms = [token.form for token in block.tokens]
    text = block.text
    if text is None:
        text = join(forms, [token.glued for token in block.tokens])
    try:
        places = locate(forms, text)
    except SurfaceError as error:
        raise _text_differs(block, error) from error
    spans: list[tuple[int, int]] = []
    for token, (start, end) in zip(block.tokens, places, strict=True):
        spans.extend(_share_out(token, start, end, block))
    return text, spans


def _share_out(token: _Token, start: int, end: int, block: _Block) -> list[tuple[int, int]]:
    """Spans of the words of one token: its characters in turn if they spell it, else all of it."""
    if token.stop - token.first == 1:
        return [(start, end)]
    parts = [block.words[index][1] for index in range(token.first, token.stop)]
    if "".join(parts) != token.form:
        block.fused += 1
        return [(start, end)] * len(parts)
    spans = []
    for part in parts:
        spans.append((start, start + len(part)))
        start += len(part)
    return spans


def _text_differs(block: _Block, error: SurfaceError) -> CorpusError:
    if error.index == len(block.tokens):
        problem = f"`# text` goes on with {error.found!r} after the last word"
    else:
        form = block.tokens[error.index].form
        problem = f"`# text` has {error.found!r} where the words have {quoted(form)}"
    line = block.text_line or block.lines[0]
    return mistake(block.path, line, f"{problem}; correct one or the other.")


def _words(block: _Block, spans: list[tuple[int, int]]) -> tuple[Word, ...]:
    heads = [
        _head(columns, line, block) for columns, line in zip(block.words, block.lines, strict=True)
    ]
    cyclic = find_cycle(heads)
    if cyclic is not None:
        raise mistake(
            block.path,
            block.lines[cyclic],
            f"the heads of word {cyclic + 1} {quoted(block.words[cyclic][1])} lead back to it; "
            "correct the HEAD column.",
        )
    return tuple(
        Word(form, start, end, _value(upos), _value(xpos), _value(feats), head, _value(deprel))
        for (_, form, _, upos, xpos, feats, _, deprel, _, _), (start, end), head in zip(
            block.words, spans, heads, strict=True
        )
    )


def _head(columns: list[str], line: int, block: _Block) -> int | None:
    value = columns[6]
    if value == "_":
        return None
    head = whole_number(value)
    if head is None or head > len(block.words):
        raise mistake(
            block.path,
            line,
            f"the head {quoted(value)} of word {columns[0]} {quoted(columns[1])} is not in the "
            f"sentence; give a number from 0 to {len(block.words)}.",
        )
    return head - 1


def _value(column: str) -> str | None:
    return None if column == "_" else column


def read_conll2012(path: Path, documents: Iterator[str]) -> Iterator[Sentence]:
    """The sentences of one file; the part belongs to the document id."""
    try:
        yield from _sentences_2012(path, documents)
    except BracketError as error:
        raise mistake(path, error.line, str(error)) from error


def _sentences_2012(path: Path, documents: Iterator[str]) -> Iterator[Sentence]:
    document, begun, count = None, 0, 0
    rows: list[tuple[int, list[str]]] = []  # line number and columns of every word of a sentence
    for number, line in enumerate(read_lines(path), start=1):
        if line.startswith("#begin document"):
            document, begun, count = _document(path, number, line, documents), number, 0
        elif line.strip() and line[0] != "#":
            if document is None:
                raise mistake(
                    path, number, "words outside a document; add `#begin document (name)`."
                )
            rows.append((number, _columns_2012(path, number, line)))
        elif rows and document is not None:
            count += 1
            yield _sentence_2012(rows, document, count)
            rows = []
        if line.startswith("#end document"):
            document = None
    if document is not None:
        raise mistake(path, begun, f"the document {document} never ends; add `#end document`.")


def _document(path: Path, number: int, line: str, documents: Iterator[str]) -> str:
    begin = _BEGIN.fullmatch(line)
    if begin is None:
        raise mistake(
            path, number, f"{line!r} is not `#begin document (name); part 000`; correct it."
        )
    name = begin["name"] or next(documents)
    return f"{name}; part {begin['part']}" if begin["part"] else name


def _columns_2012(path: Path, number: int, line: str) -> list[str]:
    columns = line.split()
    if len(columns) < _COLUMNS_2012:
        said = f"{len(columns)} columns where CoNLL-2012 has at least {_COLUMNS_2012}."
        raise mistake(path, number, said)
    return columns


def _sentence_2012(rows: list[tuple[int, list[str]]], document: str, count: int) -> Sentence:
    words: list[Word] = []
    mentions, text = MentionBuilder(), ""
    for index, (number, columns) in enumerate(rows):
        form, tag = _ESCAPES.get(columns[_WORD], columns[_WORD]), columns[_TAG]
        text += f" {form}" if index else form
        span = len(text) - len(form), len(text)
        words.append(Word(form, *span, xpos=None if tag in _NOTHING else tag))
        if columns[-1] not in _NOTHING:
            _read_brackets(columns[-1], index, number, mentions)
    return Sentence(text, tuple(words), mentions.finish(), document, 0, str(count))


def _read_brackets(column: str, index: int, line: int, into: MentionBuilder) -> None:
    for item in column.split("|"):
        bracket = _BRACKET.fullmatch(item)
        if bracket is None:
            raise BracketError(
                line, f"the coreference {column!r} is not like (1|(2)|3); correct it."
            )
        opened = bracket["single"] or bracket["open"]
        if opened:
            into.open(opened, index, line)
        if not bracket["open"]:
            into.close(bracket["single"] or bracket["close"], index + 1, line)
