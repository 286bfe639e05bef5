"""CoNLL-U: syntactic words, multiword tokens, empty nodes, trees and coreference.

CoNLL-2012: words, part-of-speech tags and a coreference column; no dependencies, no spacing.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import chain, groupby
from pathlib import Path
from typing import Literal

from headscope.text.alignment import merge_runs
from headscope.text.readers.lines import LineError, read_lines, sound, whole_number
from headscope.text.readers.mentions import MentionBuilder, position_of_id, read_brackets
from headscope.text.sentence import Sentence, SurfaceError, Word, locate, quoted

Fused = Literal["merge", "keep"]
Span = tuple[int, int]
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
    place, block = _Place(documents), _Block()
    try:
        for number, line in enumerate(chain(read_lines(path), [""]), start=1):
            if line.startswith("#"):
                _read_comment(line, number, block, place)
            elif line.strip():
                _read_row(line, number, block, place)
            else:
                if block.words:
                    sentence = _sentence(block, place)
                    if fused == "merge" and block.fused:
                        counts["merged"] += block.fused
                        sentence = merge_fused(sentence)
                    yield sentence
                block = _Block()
    except LineError as error:
        raise error.at(path) from error


@dataclass
class _Place:
    """Where in the file we are: document and paragraph, and how entities are written there."""

    unnamed: Iterator[str]
    document: str | None = None
    paragraph: int = 0
    sentences: int = 0  # in this document
    id_position: int = 0  # of an entity's id among the fields of a bracket

    def start_document(self, name: str) -> None:
        self.document, self.paragraph, self.sentences = name or next(self.unnamed), 0, 0

    def start_paragraph(self) -> None:
        if self.sentences:
            self.paragraph += 1


@dataclass
class _Token:
    """A written token: one word, or a multiword token with several."""

    form: str
    glued: bool  # no space after it
    first: int  # index of its first word
    stop: int  # index after its last


@dataclass
class _Block:
    """One sentence while its lines come in."""

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
            place.id_position = position_of_id(value, number)


def _read_row(line: str, number: int, block: _Block, place: _Place) -> None:
    columns = line.split("\t")
    if len(columns) != _COLUMNS:
        raise LineError(
            f"{len(columns)} columns where CoNLL-U has {_COLUMNS}; separate them with single tabs.",
            number,
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
        raise LineError(
            f"the id {quoted(identifier)} does not follow {count}; number the words from 1 in "
            "order.",
            number,
        )
    if not form:
        raise LineError("the word is empty; fill its second column.", number)
    if "Entity=" in misc:
        for attribute in misc.split("|"):
            if attribute.startswith("Entity="):
                brackets = attribute.removeprefix("Entity=")
                read_brackets(brackets, place.id_position, start, end, number, block.mentions)


def _multiword(columns: list[str], number: int, block: _Block) -> _Token:
    identifier, count = columns[0], len(block.words)
    first, _, last = identifier.partition("-")
    is_inside_another = bool(block.tokens) and block.tokens[-1].stop > count
    stop = whole_number(last)
    if is_inside_another or first != str(count + 1) or stop is None or stop <= count:
        raise LineError(
            f"the multiword token {quoted(identifier)} does not start after word {count}; put it "
            "before its words.",
            number,
        )
    return _Token(columns[1], _is_glued(columns[9]), count, stop)


def _is_empty_node(identifier: str, count: int) -> bool:
    word, dot, rank = identifier.partition(".")
    return dot == "." and word == str(count) and rank.isdecimal()


def _is_glued(misc: str) -> bool:
    return "SpaceAfter=No" in misc and "SpaceAfter=No" in misc.split("|")


def _sentence(block: _Block, place: _Place) -> Sentence:
    last = block.tokens[-1]
    if last.stop > len(block.words):
        raise LineError(
            f"the multiword token {quoted(last.form)} reaches to word {last.stop}, but the "
            f"sentence ends with word {len(block.words)}; correct its range.",
            block.lines[-1],
        )
    if place.document is None:
        place.start_document("")
    place.sentences += 1
    text = block.text
    if text is None:
        text = "".join(token.form if token.glued else f"{token.form} " for token in block.tokens)
        text = text.rstrip(" ")
    words: list[Word] = []
    for columns, (start, end), line in zip(
        block.words, _spans(block, text), block.lines, strict=True
    ):
        _, form, _, upos, xpos, feats, _, deprel, _, _ = columns
        words.append(
            Word(
                form,
                start,
                end,
                _value(upos),
                _value(xpos),
                _value(feats),
                _head(columns, line, len(block.words)),
                _value(deprel),
            )
        )
    mentions = block.mentions.finish()
    sentence = Sentence(
        text, tuple(words), mentions, place.document or "", place.paragraph, block.id
    )
    return sound(sentence, block.lines[0], block.lines)


def _spans(block: _Block, text: str) -> list[Span]:
    """Where every word is in the text.

    The words of a multiword token have its characters in turn if they spell it, else all of it.
    """
    try:
        places = locate([token.form for token in block.tokens], text)
    except SurfaceError as error:
        raise _text_differs(block, error) from error
    spans: list[Span] = []
    for token, (start, end) in zip(block.tokens, places, strict=True):
        if token.stop - token.first == 1:
            spans.append((start, end))
            continue
        parts = [columns[1] for columns in block.words[token.first : token.stop]]
        if "".join(parts) != token.form:
            block.fused += 1
            spans += [(start, end)] * len(parts)
            continue
        for part in parts:
            spans.append((start, start + len(part)))
            start += len(part)
    return spans


def _text_differs(block: _Block, error: SurfaceError) -> LineError:
    if error.index == len(block.tokens):
        difference = f"`# text` goes on with {error.rest!r} after the last word"
    else:
        form = block.tokens[error.index].form
        difference = f"`# text` has {error.rest!r} where the words have {quoted(form)}"
    line = block.text_line or block.lines[0]
    return LineError(f"{difference}; correct one or the other.", line)


def _head(columns: list[str], line: int, count: int) -> int | None:
    number, form, value = columns[0], columns[1], columns[6]
    if value == "_":
        return None
    head = whole_number(value)
    if head is None or head > count:
        raise LineError(
            f"the head {quoted(value)} of word {number} {quoted(form)} is not in the sentence; "
            f"give a number from 0 to {count}.",
            line,
        )
    return head - 1


def _value(column: str) -> str | None:
    return None if column == "_" else column


def merge_fused(sentence: Sentence) -> Sentence:
    """The sentence with one word for every run of words that have the same span."""
    words = sentence.words
    runs = [list(run) for _, run in groupby(range(len(words)), key=lambda i: words[i].start)]
    if len(runs) == len(words):
        return sentence
    merged = merge_runs(sentence.text, words, sentence.mentions, runs)
    return replace(sentence, words=merged.words, mentions=merged.mentions)


def read_conll2012(path: Path, documents: Iterator[str]) -> Iterator[Sentence]:
    """The sentences of one file; the part belongs to the document id."""
    document, begun, count = None, 0, 0
    rows: list[tuple[int, list[str]]] = []  # line number and columns of every word of a sentence
    try:
        for number, line in enumerate(read_lines(path), start=1):
            if line.startswith("#begin document"):
                document, begun, count = _document(line, number, documents), number, 0
            elif line.strip() and line[0] != "#":
                if document is None:
                    raise LineError(
                        "words outside a document; add `#begin document (name)`.", number
                    )
                rows.append((number, _columns_2012(line, number)))
            elif rows and document is not None:
                count += 1
                yield _sentence_2012(rows, document, str(count))
                rows = []
            if line.startswith("#end document"):
                document = None
        if document is not None:
            raise LineError(f"the document {document} never ends; add `#end document`.", begun)
    except LineError as error:
        raise error.at(path) from error


def _document(line: str, number: int, documents: Iterator[str]) -> str:
    begin = _BEGIN.fullmatch(line)
    if begin is None:
        raise LineError(
            f"{quoted(line)} is not `#begin document (name); part 000`; correct it.", number
        )
    name = begin["name"] or next(documents)
    return f"{name}; part {begin['part']}" if begin["part"] else name


def _columns_2012(line: str, number: int) -> list[str]:
    columns = line.split()
    if len(columns) < _COLUMNS_2012:
        raise LineError(
            f"{len(columns)} columns where CoNLL-2012 has at least {_COLUMNS_2012}.", number
        )
    return columns


def _sentence_2012(rows: list[tuple[int, list[str]]], document: str, name: str) -> Sentence:
    words: list[Word] = []
    mentions, text = MentionBuilder(), ""
    for index, (line, columns) in enumerate(rows):
        form, tag = _ESCAPES.get(columns[_WORD], columns[_WORD]), columns[_TAG]
        text += f" {form}" if index else form
        start, end = len(text) - len(form), len(text)
        words.append(Word(form, start, end, xpos=None if tag in _NOTHING else tag))
        if columns[-1] not in _NOTHING:
            _read_coreference(columns[-1], index, line, mentions)
    sentence = Sentence(text, tuple(words), mentions.finish(), document, 0, name)
    return sound(sentence, rows[0][0])


def _read_coreference(column: str, index: int, line: int, into: MentionBuilder) -> None:
    for item in column.split("|"):
        bracket = _BRACKET.fullmatch(item)
        if bracket is None:
            raise LineError(
                f"the coreference {quoted(column)} is not like (1|(2)|3); correct it.", line
            )
        entity = bracket["single"] or bracket["open"] or bracket["close"]
        if bracket["single"] or bracket["open"]:
            into.open(entity, index, line)
        if bracket["single"] or bracket["close"]:
            into.close(entity, index + 1, line)
