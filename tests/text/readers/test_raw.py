from itertools import count
from pathlib import Path

from headscope.text.readers.raw import read_plain

TEXT = "One.\n Two. \n\n\n  \nThree.\u2028Still three.\n"


def test_every_line_is_a_sentence_and_blank_lines_part_documents(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text(TEXT, encoding="utf-8")
    found = [(s.text, s.document, s.paragraph) for s in read_plain(file, map(str, count(1)))]
    assert found == [("One.", "1", 0), ("Two.", "1", 0), ("Three.\u2028Still three.", "2", 0)]


def test_in_the_paragraph_layout_every_line_is_a_paragraph(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text(TEXT, encoding="utf-8")
    found = read_plain(file, map(str, count(5)), layout="paragraphs")
    assert [(s.document, s.paragraph, s.id) for s in found] == [
        ("5", 0, "1"),
        ("5", 1, "2"),
        ("6", 0, "1"),
    ]
