"""Mentions of entities as phrases: where they are, their head word, and what kind they are."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from headscope.probes.coreference.agreement import PRONOUNS, Agreement, agreement
from headscope.text.sentence import Mention, Sentence, Word

Kind = Literal["pronoun", "proper", "nominal"]

_PRONOUN_TAGS = ("PRP", "PRP$", "WP", "WP$", "PRON")
_PROPER_TAGS = ("NNP", "NNPS", "PROPN")
# What follows the head noun of an English noun phrase: prepositions, relative words, participles,
# infinitives, brackets, commas and colons. Used only where the corpus has no trees.
_AFTER_HEAD = (
    "IN",
    "TO",
    "WDT",
    "WP",
    "WP$",
    "WRB",
    "VBG",
    "VBN",
    ",",
    ":",
    "-LRB-",
    "ADP",
    "PUNCT",
)
_POSSESSIVE_TAG = "POS"


@dataclass(frozen=True)
class Phrase:
    """One mention in one window."""

    entity: str
    start: int  # words, end exclusive; a discontinuous mention reaches from first to last word
    end: int
    head: int
    kind: Kind | None  # None where the corpus has no tags and the word is no pronoun we know
    text: str  # lower-cased
    head_text: str  # lower-cased
    agreement: Agreement


def phrases(window: Sentence) -> list[Phrase]:
    """The mentions of a window in reading order: by first word, then the shorter one first."""
    found = [_phrase(mention, window.words) for mention in window.mentions]
    return sorted(found, key=lambda phrase: (phrase.start, phrase.end))


def antecedents(found: Sequence[Phrase], index: int) -> list[int]:
    """Earlier mentions of the same entity.

    A mention with the same head word ("[[Ada], the engineer]" as two mentions) is none: a head
    word cannot point at itself.
    """
    phrase = found[index]
    return [place for place in candidates(found, index) if found[place].entity == phrase.entity]


def candidates(found: Sequence[Phrase], index: int) -> list[int]:
    """Earlier mentions of any entity that have another head word."""
    return [place for place in range(index) if found[place].head != found[index].head]


def head_word(words: Sequence[Word], spans: Sequence[tuple[int, int]]) -> int:
    """The word of a phrase whose governor lies outside it; of several the first, not punctuation.

    Without a tree: the last word before the first preposition, participle, relative word or
    punctuation, and not a possessive 's.
    """
    inside = [place for start, end in spans for place in range(start, end)]
    if any(words[place].head is None for place in inside):
        return _last_before_modifier(words, inside)
    members = set(inside)
    tops = [place for place in inside if words[place].head not in members]
    spoken = [place for place in tops if words[place].upos != "PUNCT"]
    return (spoken or tops or inside)[0]


def kind_of(word: Word) -> Kind | None:
    """Pronoun, proper noun or anything else, by the tag of the head word."""
    tag = word.upos or word.xpos
    if tag in _PRONOUN_TAGS or (tag is None and word.text.lower() in PRONOUNS):
        return "pronoun"
    if tag in _PROPER_TAGS:
        return "proper"
    # A determiner that heads a phrase stands alone: "this", "those".
    if tag in ("DT", "DET"):
        return "pronoun"
    return "nominal" if tag is not None else None


def _phrase(mention: Mention, words: Sequence[Word]) -> Phrase:
    head = head_word(words, mention.spans)
    inside = [words[place] for start, end in mention.spans for place in range(start, end)]
    return Phrase(
        entity=mention.entity,
        start=mention.spans[0][0],
        end=mention.spans[-1][1],
        head=head,
        kind=kind_of(words[head]),
        text=" ".join(word.text.lower() for word in inside),
        head_text=words[head].text.lower(),
        agreement=agreement(inside, words[head], head),
    )


def _last_before_modifier(words: Sequence[Word], inside: Sequence[int]) -> int:
    end = len(inside)
    for place, index in enumerate(inside[1:], start=1):
        if (words[index].xpos or words[index].upos) in _AFTER_HEAD:
            end = place
            break
    kept = [place for place in inside[:end] if words[place].xpos != _POSSESSIVE_TAG]
    return (kept or list(inside))[-1]
