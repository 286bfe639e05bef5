"""A sentence as a corpus has it: words with spans, tags and a tree, and mentions of entities."""

from dataclasses import dataclass

ROOT = -1


@dataclass(frozen=True, slots=True)
class Word:
    """One syntactic word; what the corpus does not annotate is None."""

    text: str
    start: int  # character span in Sentence.text, end exclusive
    end: int
    upos: str | None = None
    xpos: str | None = None
    feats: str | None = None  # CoNLL-U notation, "Gender=Fem|Number=Sing"
    head: int | None = None  # index of the governing word, ROOT (-1) for the root of the tree
    deprel: str | None = None


@dataclass(frozen=True, slots=True)
class Mention:
    """A phrase that refers to an entity: word ranges, end exclusive, several if discontinuous."""

    entity: str
    spans: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of a document."""

    text: str
    words: tuple[Word, ...] = ()
    mentions: tuple[Mention, ...] = ()
    document: str = ""
    paragraph: int = 0
    id: str = ""
