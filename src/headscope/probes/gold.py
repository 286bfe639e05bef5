"""Dependency trees of a batch as tensors: heads, relation classes, punctuation.

A class is a set of words that is counted together: one for every relation label as the corpus has
it, ALL for every word, CONTENT for every word but punctuation and roots, and "poss with 's" (in
Universal Dependencies "nmod:poss with 's") where possessors are marked by a clitic.

Proportions of counted words with confidence intervals.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
import xarray as xr
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headscope.metrics.metric import Axis
from headscope.results.replicates import aligned, informed, share_interval
from headscope.text.sentence import ROOT, Sentence, Word

ALL = "all"
CONTENT = "all but punct and root"
POSSESSIVE = ("poss", "nmod:poss")  # ClearNLP and Stanford, Universal Dependencies
CLITICS = ("'s", "’s", "'", "’")
PUNCTUATION = ("punct", "p")
NO_HEAD = -2  # of padding
Z95 = 1.959963984540054  # the 97.5 % point of the normal distribution
BOUND = Axis("bound", ("low", "high"))


@dataclass(frozen=True)
class Classes:
    """The classes of a corpus, in the order of the result: sums first, then labels by name."""

    names: tuple[str, ...]
    clitics: bool = False  # whether 's answers for its possessor in the sums too

    @classmethod
    def of(cls, relations: Iterable[str], *, clitics: bool = False) -> "Classes":
        """The classes that a set of relation labels gives."""
        labels = sorted(set(relations))
        clitic = [f"{label} with 's" for label in labels if label in POSSESSIVE]
        return cls((ALL, CONTENT, *labels, *clitic), clitics)

    def __len__(self) -> int:
        return len(self.names)


@dataclass(frozen=True)
class GoldTrees:
    """What is known of the words of a batch."""

    heads: Int[Tensor, "batch word"]  # ROOT for roots, NO_HEAD for padding
    own: Float[Tensor, "batch word class"]  # 1 where the word's own prediction counts
    following: Float[Tensor, "batch word class"]  # 1 where the next word's prediction counts
    punctuation: Bool[Tensor, "batch word"]

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
    """The trees of a batch; every sentence must have passed `tree_fault`.

    A label that is no class is counted in the sums alone.
    """
    width = max((len(sentence.words) for sentence in sentences), default=0)
    shape = len(sentences), width
    heads = np.full(shape, NO_HEAD, dtype=np.int64)
    punctuation = np.zeros(shape, dtype=bool)
    own, following = (np.zeros((*shape, len(classes)), dtype=np.float32) for _ in range(2))
    places = {name: place for place, name in enumerate(classes.names)}
    for row, sentence in enumerate(sentences):
        for index, word in enumerate(sentence.words):
            heads[row, index] = ROOT if word.head is None else word.head
            punctuation[row, index] = is_punctuation(word)
            for name, is_own in _memberships(sentence.words, index, classes.clitics):
                if name in places:
                    (own if is_own else following)[row, index, places[name]] = 1
    tables = (heads, own, following, punctuation)
    return GoldTrees(*(torch.from_numpy(table).to(device) for table in tables))


def is_punctuation(word: Word) -> bool:
    """Whether the corpus calls the word punctuation, by its relation or its tag."""
    return word.deprel in PUNCTUATION or word.upos == "PUNCT"


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


def _memberships(words: Sequence[Word], index: int, clitics: bool) -> list[tuple[str, bool]]:
    """The classes of a word, each with whether its own prediction counts or the next word's."""
    word = words[index]
    relation = word.deprel or ""
    has_clitic = index + 1 < len(words) and words[index + 1].text in CLITICS
    is_marked = relation in POSSESSIVE and has_clitic
    in_sums = not (clitics and is_marked)
    found = [(ALL, in_sums), (relation, True)]
    if word.head != ROOT and not is_punctuation(word):
        found.append((CONTENT, in_sums))
    if relation in POSSESSIVE:
        found.append((f"{relation} with 's", not is_marked))
    return found


def counted(total: np.ndarray) -> np.ndarray:
    """The counts, or NaN everywhere if nothing at all was counted: nothing is not zero."""
    return total if total.sum() > 0 else np.full(total.shape, np.nan)


def accuracy(correct: np.ndarray, total: np.ndarray) -> np.ndarray:
    """correct / total, NaN where nothing was counted."""
    correct, total = np.broadcast_arrays(np.asarray(correct, float), np.asarray(total, float))
    return np.divide(correct, total, out=np.full(total.shape, np.nan), where=total > 0)


def interval_variable(found: Mapping[str, xr.DataArray], name: str) -> xr.DataArray:
    """The 95 % interval of a share of counted words along a last dimension `bound`."""
    share, error = found[name], found[f"{name}_se"].values
    _, words = aligned(found[f"{name}_numerator"], found[f"{name}_denominator"])
    ends = share_interval(share.values, error, informed(words), words.sum(0), counted=True)
    wide = share.expand_dims({BOUND.name: list(BOUND.labels)}, axis=-1)
    return wide.copy(data=np.stack(ends, axis=-1))


def wilson(correct: np.ndarray, total: np.ndarray, z: float = Z95) -> Float[np.ndarray, "2 *item"]:
    """Lower and upper end of Wilson's score interval (Wilson 1927), NaN where nothing was counted.

    (p + z²/2n ± z √(p(1 − p)/n + z²/4n²)) / (1 + z²/n): unlike p ± z·se it stays within 0 … 1 and
    says something of proportions that are 0 or 1. Only for words that are independent; where sums
    of groups are known, `share_interval` is right.
    """
    share = accuracy(correct, total)
    n = np.where(np.isnan(share), np.nan, np.asarray(total, float))
    middle = share + z**2 / (2 * n)
    reach = z * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    bounds = np.stack([middle - reach, middle + reach]) / (1 + z**2 / n)
    return np.clip(bounds, 0.0, 1.0)  # rounding alone leaves the range
