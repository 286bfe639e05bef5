"""Table 2 as a metric: counts of resolved mentions that add over shards."""

from dataclasses import dataclass

import numpy as np
from torch import Tensor

from headscope.metrics.metric import Axis, Grid, Records, State, Sums, Variables, add, label
from headscope.observe.batch import AnnotatedBatch
from headscope.observe.dense import DenseLayer
from headscope.probes.coreference.queries import (
    CANDIDATES,
    KINDS,
    Queries,
    count_baselines,
    count_mentions,
    count_resolved,
    make_queries,
)
from headscope.probes.coreference.sieves import SYSTEMS
from headscope.probes.proportion import accuracy, known, standard_error, wilson
from headscope.probes.relations import HALVES
from headscope.probes.word_batch import word_layer
from headscope.probes.words import From

HALF = Axis("half", range(HALVES))
CANDIDATE = Axis("candidates", CANDIDATES)
MENTION = Axis("mention", KINDS)
SYSTEM = Axis("system", SYSTEMS)
BOUND = Axis("bound", ("low", "high"))


@dataclass(frozen=True)
class CorefAccuracy:
    """How often every head finds an antecedent, by kind of mention, next to three baselines.

    Variables: coref_accuracy, coref_accuracy_se, coref_accuracy_ci
    Formula: mentions whose head word has its arg-max on the head word of an antecedent / mentions
    Reference: Clark et al. 2019, §4.3, Table 2
    Range: 0 to 1
    Cost: n² for word maps, and an arg-max for every mention

    Variables: coref_baseline, coref_baseline_se
    Formula: the same for the nearest mention, the nearest with the same head word, and rules
    Reference: Clark et al. 2019, Table 2
    Range: 0 to 1
    Cost: mentions², once for all heads

    Variables: coref_count, coref_coverage
    Formula: mentions with an antecedent, and the share of them that a head could resolve
    Reference: Clark et al. 2019, Table 2
    Range: from 0; 0 to 1
    Cost: none beyond coref_baseline

    Variables: coref_correct, coref_scored
    Formula: the counts behind the accuracies, for two halves of the documents
    Reference: Clark et al. 2019, Table 2
    Range: from 0
    Cost: none beyond coref_accuracy
    """

    grid: Grid
    is_causal: bool
    row: From = "mean"
    name: str = "coreference"

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
        """Counts add."""
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


def _numpy(counts: Tensor) -> np.ndarray:
    return counts.double().cpu().numpy()
