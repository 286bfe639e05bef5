"""Dependency trees of a batch as tensors: heads, relation classes, punctuation, halves.

A class is a set of words that is counted together: one for every relation label as the corpus has
it, ALL for every word, CONTENT for every word but punctuation and roots, and "poss with 's" (in
Universal Dependencies "nmod:poss with 's") where possessors are marked by a clitic.
"""

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headscope.text.sentence import ROOT, Sentence, Word

ALL = "all"
CONTENT = "all but punct, root"
POSSESSIVE = ("poss", "nmod:poss")  # ClearNLP and Stanford, Universal Dependencies
CLITICS = ("'s", "’s", "'", "’")
PUNCTUATION = ("punct", "p")
NO_HEAD = -2  # padding, whose head nobody asks for


@dataclass(frozen=True)
class Classes:
    """The classes of a corpus, in the order of the result: sums first, then labels by name."""

    names: tuple[str, ...]

    @classmethod
    def of(cls, relations: Iterable[str]) -> "Classes":
        """The classes that a set of relation labels gives."""
        labels = sorted(set(relations))
        clitic = [f"{label} with 's" for label in labels if label in POSSESSIVE]
        return cls((ALL, CONTENT, *labels, *clitic))

    def __len__(self) -> int:
        return len(self.names)


@dataclass(frozen=True)
class GoldTrees:
    """What is known of the words of a batch."""

    heads: Int[Tensor, "batch word"]  # ROOT for roots, NO_HEAD for padding
    own: Float[Tensor, "batch word class"]  # 1 where the word's own prediction counts
    following: Float[Tensor, "batch word class"]  # 1 where the next word's prediction counts
    punctuation: Bool[Tensor, "batch word"]
    half: Int[Tensor, "batch"]  # 0 or 1: which half of the corpus the sentence belongs to

    @property
    def words(self) -> Bool[Tensor, "batch word"]:
        """True for words, False for padding."""
        return self.heads != NO_HEAD

    @property
    def classes(self) -> Float[Tensor, "batch word class"]:
        """1 where the word belongs to the class."""
        return self.own + self.following


def make_gold(
    sentences: Sequence[Sentence], classes: Classes, *, device: torch.device | str = "cpu"
) -> GoldTrees:
    """The trees of a batch; every sentence must have passed `tree_fault`."""
    width = max((len(sentence.words) for sentence in sentences), default=0)
    heads = torch.full((len(sentences), width), NO_HEAD)
    punctuation = torch.zeros(len(sentences), width, dtype=torch.bool)
    own = torch.zeros(len(sentences), width, len(classes))
    following = torch.zeros_like(own)
    places = {name: place for place, name in enumerate(classes.names)}
    for row, sentence in enumerate(sentences):
        for index, word in enumerate(sentence.words):
            heads[row, index] = ROOT if word.head is None else word.head
            punctuation[row, index] = is_punctuation(word)
            for name, table in _memberships(sentence.words, index, own, following):
                table[row, index, places[name]] = 1
    half = torch.tensor([half_of(sentence.text) for sentence in sentences])
    return GoldTrees(*(t.to(device) for t in (heads, own, following, punctuation, half)))


def is_punctuation(word: Word) -> bool:
    """Whether the corpus calls the word punctuation, by its relation or its tag."""
    return word.deprel in PUNCTUATION or word.upos == "PUNCT"


def half_of(text: str) -> int:
    """0 or 1, by a checksum of the text: the same half in every run, order and machine.

    Repeated sentences fall into the same half, so none is held out from its own copy.
    """
    return zlib.crc32(text.encode()) & 1


def tree_fault(words: Sequence[Word]) -> str | None:
    """Why the words are no tree: "no tree", "several roots" or "cycle"; None if they are one."""
    heads = [word.head for word in words]
    if not words or any(
        head is None or word.deprel is None for head, word in zip(heads, words, strict=True)
    ):
        return "no tree"
    if heads.count(ROOT) > 1:
        return "several roots"
    return "cycle" if _reached(heads) < len(words) else None


def _reached(heads: Sequence[int | None]) -> int:
    """How many words hang on the root."""
    children: dict[int | None, list[int]] = {}
    for index, head in enumerate(heads):
        children.setdefault(head, []).append(index)
    reached, waiting = 0, children.get(ROOT, []).copy()
    while waiting:
        reached += 1
        waiting += children.get(waiting.pop(), [])
    return reached


def _memberships(
    words: Sequence[Word], index: int, own: Tensor, following: Tensor
) -> list[tuple[str, Tensor]]:
    """The classes of a word, each with the table that says whose prediction counts."""
    word = words[index]
    relation = word.deprel or ""
    found = [(ALL, own), (relation, own)]
    if word.head != ROOT and not is_punctuation(word):
        found.append((CONTENT, own))
    if relation in POSSESSIVE:
        marked = index + 1 < len(words) and words[index + 1].text in CLITICS
        found.append((f"{relation} with 's", following if marked else own))
    return found
