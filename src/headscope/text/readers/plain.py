"""Plain text: one sentence, or one paragraph, per line; blank lines between documents."""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from headscope.text.lines import read_lines
from headscope.text.sentence import Sentence

Layout = Literal["sentences", "paragraphs"]


def read_plain(
    path: Path, documents: Iterator[str], *, layout: Layout = "sentences"
) -> Iterator[Sentence]:
    """Each line as a sentence without words; in layout "paragraphs" each counts as a paragraph."""
    document, line_in_document = "", 0
    for line in read_lines(path):
        text = line.strip()
        if not text:
            line_in_document = 0
            continue
        if line_in_document == 0:
            document = next(documents)
        paragraph = line_in_document if layout == "paragraphs" else 0
        line_in_document += 1
        yield Sentence(text, document=document, paragraph=paragraph, id=str(line_in_document))
