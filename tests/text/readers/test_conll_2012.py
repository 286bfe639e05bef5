from itertools import count
from pathlib import Path

from headscope.text.readers.conll import read_conll2012
from headscope.text.sentence import Mention, Sentence


def row(index: int, word: str, tag: str, coreference: str, predicates: str = "") -> str:
    return f"bc/x 0 {index} {word} {tag} (TOP* - - - Speaker#1 * {predicates} {coreference}\n"


def read(path: Path, text: str) -> list[Sentence]:
    file = path / "sample.conll"
    file.write_text(text, encoding="utf-8")
    return list(read_conll2012(file, map(str, count(1))))


DOCUMENT = (
    "#begin document (bc/x); part 000\n"
    + row(0, "-LRB-", "-LRB-", "(12|(3")
    + row(1, "She", "PRP", "(7)|3)", "(V*) *")
    + row(2, "left", "VBD", "12)")
    + row(3, "/.", ".", "-")
    + "\n"
    + row(0, "So", "RB", "-")
    + "\n#end document\n#begin document (bc/x); part 001\n"
    + row(0, "It", "PRP", "(3)")
    + "\n#end document\n"
)


def test_words_tags_and_crossing_mentions(tmp_path: Path) -> None:
    first = read(tmp_path, DOCUMENT)[0]
    assert first.text == "( She left ."
    assert [(w.xpos, first.text[w.start : w.end]) for w in first.words] == [
        ("-LRB-", "("),
        ("PRP", "She"),
        ("VBD", "left"),
        (".", "."),
    ]
    assert first.mentions == (
        Mention("12", ((0, 3),)),
        Mention("3", ((0, 2),)),
        Mention("7", ((1, 2),)),
    )
    assert all(word.head is None for word in first.words)


def test_the_part_belongs_to_the_document(tmp_path: Path) -> None:
    found = [(sentence.document, sentence.id) for sentence in read(tmp_path, DOCUMENT)]
    assert found == [("bc/x; part 000", "1"), ("bc/x; part 000", "2"), ("bc/x; part 001", "1")]
