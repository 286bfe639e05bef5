"""Heads as coreference resolvers (Clark et al. 2019, §4.3, Table 2), as counts that add.

A mention is scored if an earlier mention of its entity lies in the window. A head is right if the
word it attends to most from the mention's head word is the head word of any antecedent. Candidates
are either all other words, or the head words of all earlier mentions: the paper leaves it open, and
the second is the easier task. Of equal weights the first word wins.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headscope.metrics.metric import (
    GROUP,
    Axis,
    Grid,
    Metric,
    Sums,
    Variables,
    add_by_group,
    group_zeros,
    label,
    ratio_variables,
)
from headscope.observe.batch import AnnotatedBatch
from headscope.observe.layer import Layer
from headscope.results.measure import Baseline, Measure
from headscope.studies.clark2019.probes.mentions import (
    SYSTEMS,
    antecedents,
    candidates,
    phrases,
    resolve,
)
from headscope.studies.clark2019.probes.relations import SUMS
from headscope.studies.clark2019.probes.trees import accuracy, counted, interval_variable
from headscope.studies.shared.words import From, word_layer
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
    more="resolves more mentions",
    axes={"candidates": "Candidates", "mention": "Mention"},
    baselines=(Baseline("coref_baseline", "{}", best_over="system"),),
    with_errors=False,
    also=tuple(f"coref_accuracy{end}" for end in (*SUMS, "_ci", "_q", "_untrained")),
)
COREF_BASELINE = Measure(
    name="coref_baseline",
    title="Coreference without a network",
    meaning="How often a system that reads only the mentions picks a true antecedent.",
    formula="the same for the nearest mention, the nearest with the same head word, and rules",
    reference="Clark et al. 2019, Table 2",
    axes={"system": "System", "mention": "Mention"},
    with_errors=False,
    also=tuple(f"coref_baseline{end}" for end in SUMS),
)
COREF_COUNT = Measure(
    name="coref_count",
    title="Mentions with an antecedent",
    meaning="Mentions with an antecedent, and the share of them that a head could resolve.",
    formula="mentions; scored mentions / mentions",
    reference="Clark et al. 2019, Table 2",
    unit="",
    axes={"mention": "Mention"},
    with_errors=False,
    also=("coref_coverage",),
)
MEASURES = (COREF_ACCURACY, COREF_BASELINE, COREF_COUNT)


@dataclass(frozen=True)
class Queries:
    """The scored mentions of a batch of windows, one row each."""

    window: Int[Tensor, "mention"]  # place in the batch
    head: Int[Tensor, "mention"]  # the mention's head word
    targets: Bool[Tensor, "mention word"]  # head words of antecedents
    earlier: Bool[Tensor, "mention word"]  # head words of earlier mentions
    kinds: Float[Tensor, "mention kind"]  # 1 where the mention belongs to the kind
    right: Bool[Tensor, "mention system"]  # whether each baseline is right
    unseen: Float[Tensor, "batch kind"]  # mentions that no causal head could resolve

    def __len__(self) -> int:
        return len(self.head)


@dataclass(frozen=True)
class CorefAccuracy(Metric):
    """How often every head finds an antecedent, by kind of mention, next to three baselines."""

    grid: Grid
    is_causal: bool
    row: From = "mean"
    name: str = "coreference"
    measures: tuple[Measure, ...] = MEASURES
    needs_matrices: bool = True

    def zero(self) -> Sums:
        return {
            "correct": group_zeros(*self.grid.shape, len(CANDIDATES), len(KINDS)),
            "scored": group_zeros(len(KINDS)),
            "unseen": group_zeros(len(KINDS)),
            "baseline": group_zeros(len(SYSTEMS), len(KINDS)),
        }

    def see_text(self, sums: Sums, batch: AnnotatedBatch) -> None:
        """Count mentions and what the baselines resolve."""
        queries = self._queries(batch)
        groups = batch.groups[queries.window]
        add_by_group(sums["scored"], queries.kinds, groups)
        add_by_group(sums["unseen"], queries.unseen, batch.groups)
        add_by_group(sums["baseline"], find_baselines(queries), groups)

    def see_layer(self, sums: Sums, layer: Layer) -> None:
        """Count what the heads of one layer resolve."""
        queries = self._queries(layer.batch)
        resolved = find_resolved(word_layer(layer, self.row), queries)
        add_by_group(sums["correct"][:, layer.index], resolved, layer.batch.groups[queries.window])

    def compute(self, sums: Sums) -> Variables:
        """Accuracies with intervals, baselines and coverage, and the counts of every group."""
        correct = label(sums["correct"], GROUP, *self.grid.axes, CANDIDATE, MENTION)
        scored = label(sums["scored"], GROUP, MENTION)
        accuracies = ratio_variables("coref_accuracy", correct, scored)
        baseline = label(sums["baseline"], GROUP, SYSTEM, MENTION)
        seen = sums["scored"].sum(0).numpy()
        total = counted(seen + sums["unseen"].sum(0).numpy())
        return {
            **accuracies,
            "coref_accuracy_ci": interval_variable(accuracies, "coref_accuracy"),
            **ratio_variables("coref_baseline", baseline, scored),
            "coref_count": label(total, MENTION),
            "coref_coverage": label(accuracy(seen, total), MENTION),
        }

    def _queries(self, batch: AnnotatedBatch) -> Queries:
        def make() -> Queries:
            return make_queries(batch.sentences, is_causal=self.is_causal, device=batch.mask.device)

        return batch.once(self.name, make)


def make_queries(
    windows: Sequence[Sentence],
    *,
    is_causal: bool = False,
    device: torch.device | str = "cpu",
) -> Queries:
    """The scored mentions of windows; a causal head is asked only for what it could see."""
    places: list[tuple[int, int]] = []  # window, head word
    targets: list[list[int]] = []
    earlier: list[list[int]] = []
    kinds: list[list[bool]] = []
    right: list[list[bool]] = []
    unseen = torch.zeros(len(windows), len(KINDS))
    for number, window in enumerate(windows):
        mentions = phrases(window)
        for index, mention in enumerate(mentions):
            words = [antecedent.head for antecedent in antecedents(mentions, index)]
            if not words:
                continue
            is_kind = [kind in ("all", mention.kind) for kind in KINDS]
            if is_causal and min(words) > mention.head:
                unseen[number] += torch.tensor(is_kind)
                continue
            places.append((number, mention.head))
            targets.append(words)
            earlier.append([candidate.head for candidate in candidates(mentions, index)])
            kinds.append(is_kind)
            # Systems are judged as heads are: by the head word that they point at.
            picked = [resolve(system, mentions, index) for system in SYSTEMS]
            right.append([phrase is not None and phrase.head in words for phrase in picked])
    width = max((len(window.words) for window in windows), default=0)
    window_of, head = torch.tensor(places, dtype=torch.long).reshape(-1, 2).to(device).T
    return Queries(
        window=window_of,
        head=head,
        targets=_marked(targets, width).to(device),
        earlier=_marked(earlier, width).to(device),
        kinds=torch.tensor(kinds).reshape(-1, len(KINDS)).float().to(device),
        right=torch.tensor(right, dtype=torch.bool).reshape(-1, len(SYSTEMS)).to(device),
        unseen=unseen.to(device),
    )


def find_resolved(
    maps: Float[Tensor, "batch head word word"], queries: Queries
) -> Float[Tensor, "mention head candidates kind"]:
    """1 where a head resolves a mention of a kind, for both sets of candidates."""
    rows = maps[queries.window, :, queries.head]
    words = queries.targets.shape[1]
    itself = torch.nn.functional.one_hot(queries.head, words).bool()[:, None]
    among_words = rows.masked_fill(itself, 0.0).argmax(-1)
    among_mentions = rows.masked_fill(~queries.earlier[:, None], -1.0).argmax(-1)
    predicted = torch.stack([among_words, among_mentions], dim=-1)
    hits = queries.targets[:, None].expand(-1, rows.shape[1], -1).gather(-1, predicted)
    return hits.float()[..., None] * queries.kinds[:, None, None]


def find_baselines(queries: Queries) -> Float[Tensor, "mention system kind"]:
    """1 where a baseline resolves a mention of a kind."""
    return queries.right.float()[..., None] * queries.kinds[:, None]


def _marked(places: Sequence[Sequence[int]], width: int) -> Bool[Tensor, "mention word"]:
    table = torch.zeros(len(places), width, dtype=torch.bool)
    for row, words in enumerate(places):
        table[row, list(words)] = True
    return table
