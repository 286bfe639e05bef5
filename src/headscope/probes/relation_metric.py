"""Table 1 as a metric: counts of dependency predictions and tree arcs that add over shards."""

from dataclasses import dataclass

import numpy as np
import xarray as xr
from torch import Tensor

from headscope.metrics.metric import Axis, Grid, Records, State, Sums, Variables, add, label
from headscope.observe.batch import AnnotatedBatch
from headscope.observe.dense import DenseLayer
from headscope.probes import relations, tree
from headscope.probes.gold import Classes, GoldTrees, make_gold
from headscope.probes.proportion import accuracy, known, standard_error, wilson
from headscope.probes.relations import DIRECTIONS, HALVES, OFFSETS
from headscope.probes.selection import RelationCounts
from headscope.probes.word_batch import word_layer
from headscope.probes.words import From

HALF = Axis("half", range(HALVES))
DIRECTION = Axis("direction", DIRECTIONS)
OFFSET = Axis("offset", OFFSETS)
BOUND = Axis("bound", ("low", "high"))


@dataclass(frozen=True)
class RelationAccuracy:
    """How often every head points at the governor, by relation, next to fixed offsets; and UUAS.

    Variables: relation_accuracy, relation_accuracy_se, relation_accuracy_ci
    Formula: words whose arg-max is right / words that the head could see; ci is Wilson's 95 %
    Reference: Clark et al. 2019, §4.2, Table 1
    Range: 0 to 1
    Cost: n² for word maps that all probes share, and two arg-maxima

    Variables: offset_accuracy, offset_accuracy_scored
    Formula: the same for the word at a fixed offset: of all words, and of those a head could see
    Reference: Clark et al. 2019, Table 1, the baseline
    Range: 0 to 1
    Cost: words, once for all heads

    Variables: relation_count, relation_coverage
    Formula: words with the relation, and the share of them that a head could see
    Reference: Clark et al. 2019, Table 1
    Range: from 0; 0 to 1
    Cost: words, once for all heads

    Variables: relation_correct, relation_scored, relation_words, offset_correct
    Formula: the counts behind the accuracies, for two halves of the sentences, so that a head can
        be chosen on one and judged on the other
    Reference: Clark et al. 2019, Table 1
    Range: from 0
    Cost: none beyond relation_accuracy

    Variables: tree_accuracy, tree_accuracy_se
    Formula: arcs in the maximum spanning tree of max(a, aᵀ) / arcs, punctuation left out
    Reference: Raganato & Tiedemann 2018; UUAS of Hewitt & Manning 2019
    Range: 0 to 1
    Cost: words² for the tree of every head

    Variables: tree_baseline
    Formula: arcs between neighbouring words / arcs
    Reference: Hewitt & Manning 2019, the linear baseline
    Range: 0 to 1
    Cost: words, once for all heads
    """

    grid: Grid
    classes: Classes
    is_causal: bool
    row: From = "mean"
    name: str = "relations"

    def zero(self, inputs: int) -> State:
        """Empty counts."""
        directions, classes = len(DIRECTIONS), len(self.classes)
        return State(
            {
                "correct": np.zeros((HALVES, *self.grid.shape, directions, classes)),
                "scored": np.zeros((HALVES, directions, classes)),
                "words": np.zeros((HALVES, classes)),
                "offset_correct": np.zeros((HALVES, directions, len(OFFSETS), classes)),
                "arcs_found": np.zeros(self.grid.shape),
                "arcs": np.zeros(()),
                "arcs_of_neighbours": np.zeros(()),
            }
        )

    def update_text(self, state: State, batch: AnnotatedBatch) -> None:
        """Count words, what can be scored, and the baselines."""
        gold = self._gold(batch)
        counts = relations.count_offsets(gold, self._scored(gold))
        state.sums["words"] += _numpy(counts.words)
        state.sums["scored"] += _numpy(counts.scored)
        state.sums["offset_correct"] += _numpy(counts.correct)
        state.sums["arcs"] += _numpy(tree.counted_arcs(gold).sum())
        state.sums["arcs_of_neighbours"] += _numpy(tree.count_neighbours(gold))

    def update_matrix(self, state: State, layer: DenseLayer) -> None:
        """Count what the heads of one layer get right."""
        gold = self._gold(layer.batch)
        maps = word_layer(layer, self.row)
        predicted = relations.predict(maps, gold.words)
        correct = relations.count_correct(predicted, gold, self._scored(gold))
        state.sums["correct"][:, layer.index] += _numpy(correct)
        state.sums["arcs_found"][layer.index] += _numpy(tree.count_arcs(maps, gold))

    def merge(self, left: Sums, right: Sums) -> Sums:
        """Counts add."""
        return add(left, right)

    def compute(self, sums: Sums, records: Records) -> Variables:
        """Accuracies with intervals, baselines, coverage, and the counts of both halves."""
        relation = Axis("relation", self.classes.names)
        sums = known(sums, "words")
        return {
            **self._accuracies(sums, relation),
            **self._baselines(sums, relation),
            **self._counts(sums, relation),
            **self._trees(sums),
        }

    def _gold(self, batch: AnnotatedBatch) -> GoldTrees:
        def make() -> GoldTrees:
            return make_gold(batch.sentences, self.classes, device=batch.mask.device)

        return batch.once(self.name, make)

    def _scored(self, gold: GoldTrees) -> Tensor:
        return relations.scored_words(gold.heads, gold.words, is_causal=self.is_causal)

    def _accuracies(self, sums: Sums, relation: Axis) -> Variables:
        correct, scored = sums["correct"].sum(0), sums["scored"].sum(0)
        bounds = np.moveaxis(wilson(correct, scored), 0, -1)
        axes = (DIRECTION, relation)
        return {
            "relation_accuracy": self.grid.array(accuracy(correct, scored), *axes),
            "relation_accuracy_se": self.grid.array(standard_error(correct, scored), *axes),
            "relation_accuracy_ci": self.grid.array(bounds, *axes, BOUND),
        }

    def _baselines(self, sums: Sums, relation: Axis) -> Variables:
        """Over all words, as in the paper, and over the words that each direction could score."""
        words, scored = sums["words"].sum(0), sums["scored"].sum(0)
        hits = sums["offset_correct"].sum(0)
        # The directions of a causal model share the words out; elsewhere both score them all.
        all_hits = hits.sum(0) if self.is_causal else hits[0]
        seen = accuracy(hits, scored[:, None])
        return {
            "offset_accuracy": label(accuracy(all_hits, words), OFFSET, relation),
            "offset_accuracy_scored": label(seen, DIRECTION, OFFSET, relation),
            "relation_count": label(words, relation),
            "relation_coverage": label(accuracy(scored, words), DIRECTION, relation),
        }

    def _counts(self, sums: Sums, relation: Axis) -> Variables:
        correct = sums["correct"].transpose(1, 2, 0, 3, 4)
        return {
            "relation_correct": self.grid.array(correct, HALF, DIRECTION, relation),
            "relation_scored": label(sums["scored"], HALF, DIRECTION, relation),
            "relation_words": label(sums["words"], HALF, relation),
            "offset_correct": label(sums["offset_correct"], HALF, DIRECTION, OFFSET, relation),
        }

    def _trees(self, sums: Sums) -> Variables:
        found, arcs = sums["arcs_found"], sums["arcs"]
        return {
            "tree_accuracy": self.grid.array(accuracy(found, arcs)),
            "tree_accuracy_se": self.grid.array(standard_error(found, arcs)),
            "tree_baseline": label(accuracy(sums["arcs_of_neighbours"], arcs)),
        }


def counts_of(result: xr.Dataset) -> RelationCounts:
    """The counts that a result was computed from."""
    correct = result["relation_correct"].transpose("half", "layer", "head", "direction", "relation")
    return RelationCounts(
        correct.values,
        result["relation_scored"].values,
        result["relation_words"].values,
        # Other variables of a result may have further offsets.
        result["offset_correct"].sel(offset=list(OFFSETS)).values,
    )


def _numpy(counts: Tensor) -> np.ndarray:
    return counts.double().cpu().numpy()
