"""Dependency trees of a batch as tensors: gold ones, and how those that a probe finds are judged.

A class is a set of words that is counted together: one for every relation label as the corpus has
it, ALL for every word, CONTENT for every word but punctuation and roots, and "poss with 's" (in
Universal Dependencies "nmod:poss with 's") where possessors are marked by a clitic.

Undirected trees from attention: how many dependency arcs each head's strongest tree has.

Every head gives a graph over the words of a sentence. An edge weighs as much as the stronger of its
two directions: a head that looks from dependent to governor says nothing in the other direction,
and adding what it says there would add noise. The maximum spanning tree is grown by Prim's
algorithm, for all heads and sentences at once: as many steps as the longest sentence has words.

A probe scores ROOT and all words as governors of every word (Clark et al. 2019, §5). Training is
cross-entropy over all words; parsing is greedy, the arg-max for every word on its own; UAS leaves
gold punctuation out.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
import xarray as xr
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from headscope.metrics.metric import Axis
from headscope.results.replicates import aligned, informed, share_interval
from headscope.studies.shared.words import EXTRA
from headscope.text.sentence import ROOT, Sentence, Word

ALL = "all"
CONTENT = "all but punct and root"
POSSESSIVE = ("poss", "nmod:poss")  # ClearNLP and Stanford, Universal Dependencies
CLITICS = ("'s", "’s", "'", "’")
PUNCTUATION = ("punct", "p")
NO_HEAD = -2  # of padding
BOUND = Axis("bound", ("low", "high"))
IGNORED = -100  # the label of padding: cross-entropy leaves it out


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
    """The trees of a batch, and in which classes its words are counted.

    A word is judged by its own prediction, or in some classes by that of the clitic after it.
    """

    heads: Int[Tensor, "batch word"]  # ROOT for roots, NO_HEAD for padding
    by_itself: Float[Tensor, "batch word class"]  # 1 where the word's own prediction counts
    by_next: Float[Tensor, "batch word class"]  # 1 where the next word's prediction counts
    punctuation: Bool[Tensor, "batch word"]

    @property
    def words(self) -> Bool[Tensor, "batch word"]:
        """True for words, False for padding."""
        return self.heads != NO_HEAD

    @property
    def classes(self) -> Float[Tensor, "batch word class"]:
        """1 where the word belongs to the class."""
        return self.by_itself + self.by_next


def make_gold(
    sentences: Sequence[Sentence], classes: Classes, *, device: torch.device | str = "cpu"
) -> GoldTrees:
    """The trees of a batch; every sentence must have passed `tree_fault`.

    A label that is no class is counted in the sums alone.
    """
    width = max((len(sentence.words) for sentence in sentences), default=0)
    shape = len(sentences), width
    heads = np.full(shape, NO_HEAD, dtype=np.int64)
    by_itself = np.zeros((*shape, len(classes)), dtype=np.float32)
    by_next = np.zeros_like(by_itself)
    punctuation = np.zeros(shape, dtype=bool)
    places = {name: number for number, name in enumerate(classes.names)}
    for row, sentence in enumerate(sentences):
        for index, word in enumerate(sentence.words):
            heads[row, index] = ROOT if word.head is None else word.head
            punctuation[row, index] = is_punctuation(word)
            for name, is_by_itself in _classes_of(sentence.words, index, classes.clitics):
                if name in places:
                    table = by_itself if is_by_itself else by_next
                    table[row, index, places[name]] = 1
    tables = (heads, by_itself, by_next, punctuation)
    return GoldTrees(*(torch.from_numpy(table).to(device) for table in tables))


def is_punctuation(word: Word) -> bool:
    """Whether the corpus calls the word punctuation, by its relation or its tag."""
    return word.deprel in PUNCTUATION or word.upos == "PUNCT"


def tree_fault(words: Sequence[Word]) -> str | None:
    """Why the words are no tree: "no tree", "several roots" or "cycle"; None if they are one."""
    if not words or any(word.head is None or word.deprel is None for word in words):
        return "no tree"
    heads = [word.head for word in words]
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


def _classes_of(words: Sequence[Word], index: int, clitics: bool) -> list[tuple[str, bool]]:
    """The classes of a word, each with whether its own prediction counts or the next word's."""
    word = words[index]
    relation = word.deprel or ""
    has_clitic = index + 1 < len(words) and words[index + 1].text in CLITICS
    is_marked = relation in POSSESSIVE and has_clitic
    in_sums = not (clitics and is_marked)
    classes = [(ALL, in_sums), (relation, True)]
    if word.head != ROOT and not is_punctuation(word):
        classes.append((CONTENT, in_sums))
    if relation in POSSESSIVE:
        classes.append((f"{relation} with 's", not is_marked))
    return classes


def spanning_parents(
    weights: Float[Tensor, "graph word word"], words: Bool[Tensor, "graph word"]
) -> Int[Tensor, "graph word"]:
    """Maximum spanning tree of symmetric graphs: for each word the word it was joined to.

    The first word starts the tree and has the parent −1, as has padding. Of equal edges the one to
    the first word wins, and of those the one that entered the tree first.
    """
    graphs, size = words.shape
    rows = torch.arange(graphs, device=weights.device)
    parents = torch.full_like(words, -1, dtype=torch.long)
    outside = words.clone()
    outside[:, :1] = False
    strongest = weights[:, 0].clone()
    joined = torch.zeros_like(parents)
    for _ in range(size - 1):
        new = strongest.masked_fill(~outside, -torch.inf).argmax(-1)
        growing = outside[rows, new]
        parents[rows[growing], new[growing]] = joined[rows, new][growing]
        outside[rows, new] = False
        edges = weights[rows, new]
        stronger = (edges > strongest) & growing[:, None]
        joined = torch.where(stronger, new[:, None], joined)
        strongest = torch.where(stronger, edges, strongest)
    return parents


def count_arcs(
    maps: Float[Tensor, "batch head word word"], gold: GoldTrees
) -> Float[Tensor, "batch head"]:
    """Gold arcs of each sentence in each head's tree; arcs to punctuation do not count."""
    batch, heads, size, _ = maps.shape
    words = gold.words[:, None].expand(-1, heads, -1).reshape(-1, size)
    weights = torch.maximum(maps, maps.mT).reshape(-1, size, size)
    parents = spanning_parents(weights, words).reshape(batch, heads, size)
    return (_is_edge(parents, gold.heads) & counted_arcs(gold)[:, None]).sum(2).double()


def counted_arcs(gold: GoldTrees) -> Bool[Tensor, "batch word"]:
    """Words whose arc to their governor counts."""
    return (gold.heads >= 0) & ~gold.punctuation


def count_neighbours(gold: GoldTrees) -> Float[Tensor, "batch"]:
    """Arcs of each sentence between neighbours: what the tree of a chain of words has."""
    position = torch.arange(gold.heads.shape[1], device=gold.heads.device)
    return (((gold.heads - position).abs() == 1) & counted_arcs(gold)).sum(1).double()


def _is_edge(
    parents: Int[Tensor, "batch head word"], heads: Int[Tensor, "batch word"]
) -> Bool[Tensor, "batch head word"]:
    """Whether word and governor are joined in the tree, whichever of them was joined first."""
    position = torch.arange(heads.shape[1], device=heads.device)
    governor = heads.clamp(min=0)[:, None].expand_as(parents)
    return (parents == governor) | (parents.gather(-1, governor) == position)


def counted(total: np.ndarray) -> np.ndarray:
    """The counts, or NaN everywhere if nothing at all was counted: nothing is not zero."""
    return total if total.sum() > 0 else np.full(total.shape, np.nan)


def accuracy(correct: np.ndarray, total: np.ndarray) -> np.ndarray:
    """correct / total, NaN where nothing was counted."""
    correct, total = np.broadcast_arrays(np.asarray(correct, float), np.asarray(total, float))
    return np.divide(correct, total, out=np.full(total.shape, np.nan), where=total > 0)


def interval_variable(variables: Mapping[str, xr.DataArray], name: str) -> xr.DataArray:
    """The 95 % interval of a share of counted words along a last dimension `bound`."""
    share, error = variables[name], variables[f"{name}_se"].values
    _, words = aligned(variables[f"{name}_numerator"], variables[f"{name}_denominator"])
    ends = share_interval(share.values, error, informed(words), words.sum(0), counted=True)
    wide = share.expand_dims({BOUND.name: list(BOUND.labels)}, axis=-1)
    return wide.copy(data=np.stack(ends, axis=-1))


@dataclass(frozen=True)
class ParseBatch:
    """Sentences as a probe sees them.

    `maps` holds every head's attention twice, `maps[b, x, k, y]` = a^k[x, y] for the first half of
    the maps and a^k[y, x] for the second, over words and the units START, END and BETWEEN.
    """

    maps: Float[Tensor, "batch unit map unit"] | None
    vectors: Float[Tensor, "batch word dim"] | None
    heads: Int[Tensor, "batch word"]  # ROOT for roots, NO_HEAD for padding
    punctuation: Bool[Tensor, "batch word"]
    control: Int[Tensor, "batch word"] | None = None  # what the control task has for heads

    @property
    def words(self) -> Bool[Tensor, "batch word"]:
        """True for words, False for padding."""
        return self.heads != NO_HEAD

    @property
    def labels(self) -> Int[Tensor, "batch word"]:
        """The place of each word's governor among the candidates."""
        return torch.where(self.words, self.heads + 1, IGNORED)


def make_parse_batch(
    gold: GoldTrees,
    maps: Float[Tensor, "batch head unit unit"] | None,
    vectors: Float[Tensor, "batch word dim"] | None,
    control: Int[Tensor, "batch word"] | None = None,
) -> ParseBatch:
    """A batch from the word maps of all heads of all layers."""
    both = None
    if maps is not None:
        both = torch.cat([maps.permute(0, 2, 1, 3), maps.permute(0, 3, 1, 2)], dim=2)
    return ParseBatch(both, vectors, gold.heads, gold.punctuation, control)


def take_sentences(batch: ParseBatch, rows: Int[Tensor, "row"]) -> ParseBatch:
    """Some sentences of a batch, without the padding that only the others needed."""
    heads = batch.heads[rows]
    width = int((heads != NO_HEAD).sum(1).max())
    units = [*range(width), *range(batch.heads.shape[1], batch.heads.shape[1] + EXTRA)]
    maps = batch.maps
    return ParseBatch(
        None if maps is None else maps[rows][:, units][..., units],
        None if batch.vectors is None else batch.vectors[rows, :width],
        heads[:, :width],
        batch.punctuation[rows, :width],
        None if batch.control is None else batch.control[rows, :width],
    )


def as_control(batch: ParseBatch) -> ParseBatch:
    """The batch with the governors of the control task in place of the tree's."""
    assert batch.control is not None
    return replace(batch, heads=batch.control)


def loss(
    scores: Float[Tensor, "seed batch word candidate"], batch: ParseBatch
) -> Float[Tensor, ""]:
    """Cross-entropy of the governors, summed over words and seeds."""
    labels = batch.labels.expand(scores.shape[:-1])
    masked = _mask(scores, batch.words)
    return nn.functional.cross_entropy(
        masked.flatten(0, 2), labels.flatten(), ignore_index=IGNORED, reduction="sum"
    )


def parse(
    scores: Float[Tensor, "seed batch word candidate"], batch: ParseBatch
) -> Int[Tensor, "seed batch word"]:
    """The best governor of every word: ROOT is −1."""
    return _mask(scores, batch.words).argmax(-1) - 1


def right_branching(words: Bool[Tensor, "batch word"]) -> Int[Tensor, "1 batch word"]:
    """Every word hangs on the next one, the last on ROOT."""
    position = torch.arange(words.shape[1], device=words.device)
    last = words.sum(1, keepdim=True) - 1
    return torch.where(position < last, position + 1, -1)[None]


def count_attached(
    predicted: Int[Tensor, "seed batch word"], batch: ParseBatch
) -> tuple[Float[Tensor, "seed batch"], Float[Tensor, "batch"]]:
    """How many words of every sentence have the right governor, and how many there are.

    Punctuation is left out.
    """
    counted = batch.words & ~batch.punctuation
    right = (predicted == batch.heads) & counted
    return right.sum(2).double(), counted.sum(1).double()


def _mask(
    scores: Float[Tensor, "seed batch word candidate"], words: Bool[Tensor, "batch word"]
) -> Float[Tensor, "seed batch word candidate"]:
    allowed = nn.functional.pad(words, (1, 0), value=True)
    return scores.masked_fill(~allowed[None, :, None], -torch.inf)
