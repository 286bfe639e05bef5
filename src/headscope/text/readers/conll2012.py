"""CoNLL-2012: words, part-of-speech tags and a coreference column; no dependencies, no spacing."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from headscope.text.readers.lines import mistake, read_lines
from headscope.text.readers.words import BracketError, MentionBuilder
from headscope.text.sentence import Sentence, Word

_BEGIN = re.compile(r"#begin document \((?P<name>.*)\)(?:;\s*part\s+(?P<part>\d+))?\s*")
_BRACKET = re.compile(r"\((?P<single>[^()|]+)\)|\((?P<open>[^()|]+)|(?P<close>[^()|]+)\)")
_WORD, _TAG = 3, 4
_NOTHING = ("-", "_", "*")
_COLUMNS = 12  # without predicates: eleven fixed columns, then coreference

# Written in the treebank for characters that its own notation needed.
_ESCAPES = {
    "-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}",
    "/.": ".", "/?": "?", "/-": "-",
}  # fmt: skip


def read_conll2012(path: Path, documents: Iterator[str]) -> Iterator[Sentence]:
    """The sentences of one file; the part belongs to the document id."""
    try:
        yield from _sentences(path, documents)
    except BracketError as error:
        raise mistake(path, error.line, str(error)) from error


def _sentences(path: Path, documents: Iterator[str]) -> Iterator[Sentence]:
    document, begun, count = None, 0, 0
    block = _Block(path)
    for number, line in enumerate(read_lines(path), start=1):
        if line.startswith("#begin document"):
            document, begun, count = _document(path, number, line, documents), number, 0
        elif line.strip() and line[0] != "#":
            if document is None:
                raise mistake(
                    path, number, "words outside a document; add `#begin document (name)`."
                )
            _read_row(line, number, block)
        elif block.words and document is not None:
            count += 1
            yield _finish(block, document, count)
            block = _Block(path)
        if line.startswith("#end document"):
            document = None
    if document is not None:
        raise mistake(path, begun, f"the document {document} never ends; add `#end document`.")


@dataclass
class _Block:
    """One sentence while its lines come in."""

    path: Path
    words: list[Word] = field(default_factory=list)
    length: int = 0  # characters so far
    mentions: MentionBuilder = field(default_factory=MentionBuilder)


def _document(path: Path, number: int, line: str, documents: Iterator[str]) -> str:
    begin = _BEGIN.fullmatch(line)
    if begin is None:
        raise mistake(
            path, number, f"{line!r} is not `#begin document (name); part 000`; correct it."
        )
    name = begin["name"] or next(documents)
    return f"{name}; part {begin['part']}" if begin["part"] else name


def _read_row(line: str, number: int, block: _Block) -> None:
    columns = line.split()
    if len(columns) < _COLUMNS:
        raise mistake(
            block.path, number, f"{len(columns)} columns where CoNLL-2012 has at least {_COLUMNS}."
        )
    index = len(block.words)
    form = _ESCAPES.get(columns[_WORD], columns[_WORD])
    start = block.length + 1 if index else 0
    block.length = start + len(form)
    tag = columns[_TAG]
    block.words.append(Word(form, start, block.length, xpos=None if tag in _NOTHING else tag))
    if columns[-1] not in _NOTHING:
        _read_brackets(columns[-1], index, number, block.mentions)


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


def _finish(block: _Block, document: str, count: int) -> Sentence:
    text = " ".join(word.text for word in block.words)
    return Sentence(text, tuple(block.words), block.mentions.finish(), document, 0, str(count))
