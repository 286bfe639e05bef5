"""A slow and plain reading of CoNLL-U, written apart from the reader to check it against."""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class PlainSentence:
    text: str = ""
    document: str = ""
    forms: list[str] = field(default_factory=list)
    upos: list[str] = field(default_factory=list)
    xpos: list[str] = field(default_factory=list)
    feats: list[str] = field(default_factory=list)
    heads: list[int] = field(default_factory=list)
    deprels: list[str] = field(default_factory=list)
    mentions: Counter[tuple[str, int, int]] = field(default_factory=Counter)


def plain_parse(path: Path) -> list[PlainSentence]:
    """Every sentence of a file that has no discontinuous mention and a # text for each."""
    document = ""
    sentences = []
    for block in path.read_text(encoding="utf-8").split("\n\n"):
        if not block.strip():
            continue
        lines = block.strip("\n").split("\n")
        for line in lines:
            if line.startswith("# newdoc id = "):
                document = line.removeprefix("# newdoc id = ")
        sentences.append(_sentence(lines, document))
    return sentences


def _sentence(lines: list[str], document: str) -> PlainSentence:
    sentence = PlainSentence(document=document)
    brackets: list[tuple[int, str]] = []
    for line in lines:
        if line.startswith("# text = "):
            sentence.text = line.removeprefix("# text = ")
        if line.startswith("#"):
            continue
        cells = line.split("\t")
        if "-" in cells[0] or "." in cells[0]:
            continue
        sentence.forms.append(cells[1])
        sentence.upos.append(cells[3])
        sentence.xpos.append(cells[4])
        sentence.feats.append(cells[5])
        sentence.heads.append(int(cells[6]))
        sentence.deprels.append(cells[7])
        for item in cells[9].split("|"):
            if item.startswith("Entity="):
                brackets.append((int(cells[0]), item.removeprefix("Entity=")))
    sentence.mentions = _mentions(brackets)
    return sentence


def _mentions(brackets: list[tuple[int, str]]) -> Counter[tuple[str, int, int]]:
    """Mentions as (entity, first word, last word), words from 1, read character by character."""
    found: Counter[tuple[str, int, int]] = Counter()
    open_now: list[tuple[str, int]] = []
    for word, value in brackets:
        name, opening = "", False
        for character in value + "(":
            if character in "()":
                entity = name.split("-")[0]
                if opening and name:
                    open_now.append((entity, word))
                if character == ")":
                    _close(entity, word, open_now, found)
                name, opening = "", character == "("
            else:
                name += character
    assert not open_now
    return found


def _close(
    entity: str, word: int, open_now: list[tuple[str, int]], found: Counter[tuple[str, int, int]]
) -> None:
    for place in reversed(range(len(open_now))):
        if open_now[place][0] == entity:
            found[entity, open_now[place][1], word] += 1
            del open_now[place]
            return
    raise AssertionError(f"{entity} closes at word {word} but is not open")
