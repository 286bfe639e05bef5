"""Names for documents that have none: their number in the corpus, whatever file they are in."""

from collections.abc import Iterator
from itertools import count


def document_numbers() -> Iterator[str]:
    """ "1", "2", … shared by all files of a corpus, so that two documents never share a name."""
    return map(str, count(1))
