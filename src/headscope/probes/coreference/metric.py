"""Heads as coreference resolvers (Clark et al. 2019, §4.3, Table 2), as counts that add.

A mention is scored if an earlier mention of its entity lies in the window. A head is right if the
word it attends to most from the mention's head word is the head word of any antecedent. Candidates
are either all other words, or the head words of all earlier mentions: the paper leaves it open, and
the second is the easier task. Of equal weights the first word wins.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headscope.metrics.metric import Axis, Grid, Records, State, Sums, Variables, add, label
from headscope.observe.batch import AnnotatedBatch
from headscope.observe.dense import DenseLayer
from headscope.probes.coreference.mentions import Phrase, antecedents, candidates, phrases
from headscope.probes.coreference.rules import SYSTEMS, resolve
from headscope.probes.proportion import accuracy, known, standard_error, wilson
from headscope.probes.relations import BOUND, HALF, HALVES
from headscope.probes.words import From, word_layer
from headscope.results import papers
from headscope.results.measure import Baseline, Measure, Published
from headscope.text.sentence import Sentence

CANDIDATES = ("words", "mentions")
KINDS = ("all", "pronoun", "proper", "nominal")
CANDIDATE = Axis("candidates", CANDIDATES)
MENTION = Axis("mention", KINDS)
SYSTEM = Axis("system", SYSTEMS)

COREF_ACCURACY = Measure(
    name="coref_accuracy",
    title="Coreference accuracy",
    meaning="How often the head picks a true antecedent.",
    formula="mentions whose head word has its arg-max on the head word of an antecedent / mentions",
    reference="Clark et al. 2019, §4.3, Table 2",
    cost="n² for word maps, and an arg-max for every mention",
    more="resolves more mentions",
    axes={"candidates": "Candidates", "mention": "Mention"},
    baselines=(Baseline("coref_baseline", "{}", best_over="system"),),
    published=papers.COREF_ACCURACY,
    with_errors=False,
    also=("coref_accuracy_se", "coref_accuracy_ci"),
)
COREF_BASELINE = Measure(
    name="coref_baseline",
    title="Coreference without a network",
    meaning="How often a system that reads only the mentions picks a true antecedent.",
    formula="the same for the nearest mention, the nearest with the same head word, and rules",
    reference="Clark et al. 2019, Table 2",
    cost="mentions², once for all heads",
    axes={"system": "System", "mention": "Mention"},
    published=tuple(
        Published(system.replace("_", " "), papers.CLARK, percent / 100, at)
        for system in SYSTEMS
        for kind, percent in zip(KINDS, papers.TABLE2[system], strict=True)
        for at in ({"system": system, "mention": kind},)
    ),
    with_errors=False,
    also=("coref_baseline_se",),
)
COREF_COUNT = Measure(
    name="coref_count",
    title="Mentions with an antecedent",
    meaning="Mentions with an antecedent, and the share of them that a head could resolve.",
    formula="mentions; scored mentions / mentions",
    reference="Clark et al. 2019, Table 2",
    unit="",
    range="from 0; 0 to 1",
    cost="none beyond coref_baseline",
    axes={"mention": "Mention"},
    with_errors=False,
    also=("coref_coverage",),
)
COREF_SCORED = Measure(
    name="coref_scored",
    title="Counts behind the accuracies",
    meaning="For two halves of the documents, so that a head can be chosen on one half and judged "
    "on the other.",
    formula="scored mentions, and those that every head resolves",
    reference="Clark et al. 2019, Table 2",
    unit="",
    range="from 0",
    cost="none beyond coref_accuracy",
    axes={"half": "Half", "mention": "Mention"},
    with_errors=False,
    also=("coref_correct",),
)
MEASURES = (COREF_ACCURACY, COREF_BASELINE, COREF_COUNT, COREF_SCORED)


@dataclass(frozen=True)
class Queries:
    """The scored mentions of a batch of windows, one row each."""

    window: Int[Tensor, "mention"]  # place in the batch
    head: Int[Tensor, "mention"]  # the mention's head word
    targets: Bool[Tensor, "mention word"]  # head words of antecedents
    earlier: Bool[Tensor, "mention word"]  # head words of earlier mentions
    kinds: Float[Tensor, "mention kind"]  # 1 where the mention belongs to the kind
    half: Int[Tensor, "mention"]
    right: Bool[Tensor, "mention system"]  # whether each baseline is right
    unseen: Float[Tensor, "half kind"]  # mentions that no causal head could resolve

    def __len__(self) -> int:
        return len(self.head)


@dataclass(frozen=True)
class CorefAccuracy:
    """How often every head finds an antecedent, by kind of mention, next to three baselines."""

    grid: Grid
    is_causal: bool
    row: From = "mean"
    name: str = "coreference"

    @property
    def measures(self) -> tuple[Measure, ...]:
        """What the variables are."""
        return MEASURES

    def zero(self, inputs: int) -> State:
        """Empty counts."""
        return State(
            {
                "correct": np.zeros((HALVES, *self.grid.shape, len(CANDIDATES), len(KINDS))),
                "scored": np.zeros((HALVES, len(KINDS))),
                "unseen": np.zeros((HALVES, len(KINDS))),
                "baseline": np.zeros((HALVES, len(SYSTEMS), len(KINDS))),
            }
        )

    def update_text(self, state: State, batch: AnnotatedBatch) -> None:
        """Count mentions and what the baselines resolve."""
        queries = self._queries(batch)
        state.sums["scored"] += _numpy(count_mentions(queries))
        state.sums["unseen"] += _numpy(queries.unseen)
        state.sums["baseline"] += _numpy(count_baselines(queries))

    def update_matrix(self, state: State, layer: DenseLayer) -> None:
        """Count what the heads of one layer resolve."""
        resolved = count_resolved(word_layer(layer, self.row), self._queries(layer.batch))
        state.sums["correct"][:, layer.index] += _numpy(resolved)

    def merge(self, left: Sums, right: Sums) -> Sums:
        return add(left, right)

    def compute(self, sums: Sums, records: Records) -> Variables:
        """Accuracies with intervals, baselines, coverage, and the counts of both halves."""
        sums = known(sums, "scored")
        correct, scored = sums["correct"].sum(0), sums["scored"].sum(0)
        baseline, unseen = sums["baseline"].sum(0), sums["unseen"].sum(0)
        axes = (CANDIDATE, MENTION)
        bounds = np.moveaxis(wilson(correct, scored), 0, -1)
        by_half = sums["correct"].transpose(1, 2, 0, 3, 4)
        return {
            "coref_accuracy": self.grid.array(accuracy(correct, scored), *axes),
            "coref_accuracy_se": self.grid.array(standard_error(correct, scored), *axes),
            "coref_accuracy_ci": self.grid.array(bounds, *axes, BOUND),
            "coref_baseline": label(accuracy(baseline, scored), SYSTEM, MENTION),
            "coref_baseline_se": label(standard_error(baseline, scored), SYSTEM, MENTION),
            "coref_count": label(scored + unseen, MENTION),
            "coref_coverage": label(accuracy(scored, scored + unseen), MENTION),
            "coref_correct": self.grid.array(by_half, HALF, *axes),
            "coref_scored": label(sums["scored"], HALF, MENTION),
        }

    def _queries(self, batch: AnnotatedBatch) -> Queries:
        def make() -> Queries:
            return make_queries(batch.sentences, is_causal=self.is_causal, device=batch.mask.device)

        return batch.once(self.name, make)


def make_queries(
    windows: Sequence[Sentence],
    *,
    width: int | None = None,
    is_causal: bool = False,
    device: torch.device | str = "cpu",
) -> Queries:
    """The scored mentions of windows; a causal head is asked only for what it could see."""
    rows = [row for place, window in enumerate(windows) for row in _rows(place, window)]
    seen = [row for row in rows if not is_causal or min(row.targets) < row.phrase.head]
    unseen = torch.zeros(HALVES, len(KINDS))
    for row in rows:
        if is_causal and min(row.targets) > row.phrase.head:
            unseen[row.half] += torch.tensor(_kinds(row.phrase))
    size = max((len(window.words) for window in windows), default=0) if width is None else width
    tables = (*_columns(seen, size), unseen)
    return Queries(*(table.to(device) for table in tables))


def count_resolved(
    maps: Float[Tensor, "batch head word word"], queries: Queries
) -> Float[Tensor, "half head candidates kind"]:
    """How many mentions of each kind every head resolves, for both sets of candidates."""
    rows = maps[queries.window, :, queries.head]
    words = queries.targets.shape[1]
    itself = torch.nn.functional.one_hot(queries.head, words).bool()[:, None]
    among_words = rows.masked_fill(itself, 0.0).argmax(-1)
    among_mentions = rows.masked_fill(~queries.earlier[:, None], -1.0).argmax(-1)
    predicted = torch.stack([among_words, among_mentions], dim=-1)
    hits = queries.targets[:, None].expand(-1, rows.shape[1], -1).gather(-1, predicted)
    return _sum_by_half(hits.float()[..., None] * queries.kinds[:, None, None], queries.half)


def count_mentions(queries: Queries) -> Float[Tensor, "half kind"]:
    """How many mentions of each kind are scored."""
    return _sum_by_half(queries.kinds, queries.half)


def count_baselines(queries: Queries) -> Float[Tensor, "half system kind"]:
    """How many of the same mentions each baseline resolves."""
    hits = queries.right.float()[..., None] * queries.kinds[:, None]
    return _sum_by_half(hits, queries.half)


def document_half(document: str) -> int:
    """0 or 1: which half of the documents a window belongs to, the same in every run."""
    return zlib.crc32(document.encode()) & 1


@dataclass(frozen=True)
class _Row:
    window: int
    phrase: Phrase
    targets: list[int]
    earlier: list[int]
    right: list[bool]
    half: int


def _rows(place: int, window: Sentence) -> list[_Row]:
    found = phrases(window)
    half = document_half(window.document or window.text)
    return [
        _Row(
            place,
            found[index],
            targets,
            [found[i].head for i in candidates(found, index)],
            [_is_right(system, found, index, targets) for system in SYSTEMS],
            half,
        )
        for index in range(len(found))
        if (targets := [found[i].head for i in antecedents(found, index)])
    ]


def _columns(rows: Sequence[_Row], width: int) -> tuple[Tensor, ...]:
    """The fields of `Queries` in their order, all but the last."""
    return (
        torch.tensor([row.window for row in rows], dtype=torch.long),
        torch.tensor([row.phrase.head for row in rows], dtype=torch.long),
        _marked([row.targets for row in rows], width),
        _marked([row.earlier for row in rows], width),
        torch.tensor([_kinds(row.phrase) for row in rows]).reshape(-1, len(KINDS)),
        torch.tensor([row.half for row in rows], dtype=torch.long),
        torch.tensor([row.right for row in rows], dtype=torch.bool).reshape(-1, len(SYSTEMS)),
    )


def _is_right(system: str, found: Sequence[Phrase], index: int, targets: list[int]) -> bool:
    """Judged as heads are: by the head word that the system points at."""
    chosen = resolve(system, found, index)
    return chosen is not None and found[chosen].head in targets


def _kinds(phrase: Phrase) -> list[float]:
    return [float(kind in ("all", phrase.kind)) for kind in KINDS]


def _marked(places: Sequence[Sequence[int]], width: int) -> Bool[Tensor, "mention word"]:
    table = torch.zeros(len(places), width, dtype=torch.bool)
    for row, marked in enumerate(places):
        table[row, list(marked)] = True
    return table


def _sum_by_half(
    values: Float[Tensor, "mention *item"], half: Int[Tensor, "mention"]
) -> Float[Tensor, "half *item"]:
    sums = torch.zeros(HALVES, *values.shape[1:], device=values.device)
    return sums.index_add(0, half, values)


def _numpy(counts: Tensor) -> np.ndarray:
    return counts.double().cpu().numpy()
