"""Heads as dependency classifiers (Clark et al. 2019, §4.2, Table 1), as counts that add.

For word i the prediction of a head is the word it attends to most (dependent → head), or the word
that attends to it most (head → dependent). Special tokens are dropped without renormalising, the
diagonal is zeroed, and of equal weights the first word wins.

A causal head cannot see what follows. A word is *scored* if the pair of word and governor is one
that the head could see; the share of scored words is the coverage that stands next to accuracy.
"""

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
from headscope.studies.clark2019.probes.trees import (
    Classes,
    GoldTrees,
    accuracy,
    count_arcs,
    count_neighbours,
    counted,
    counted_arcs,
    interval_variable,
    make_gold,
)
from headscope.studies.shared.words import From, word_layer
from headscope.text.sentence import ROOT

DIRECTIONS = ("dependent_to_head", "head_to_dependent")
OFFSETS = (-3, -2, -1, 1, 2, 3)
CLAMPED = 2  # the last offset of the released code, which takes the first or last word at the ends
DIRECTION = Axis("direction", DIRECTIONS)
OFFSET = Axis("offset", OFFSETS)
SUMS = ("_se", "_numerator", "_denominator")  # of a share that is counted


RELATION_ACCURACY = Measure(
    name="relation_accuracy",
    title="Relation accuracy",
    meaning="How often the head's choice is the right word.",
    formula="words whose arg-max is right / words that the head could see",
    reference="Clark et al. 2019, §4.2, Table 1",
    more="finds more of them",
    axes={"direction": "Direction", "relation": "Relation"},
    baselines=(
        Baseline("offset_accuracy_scored", "always the word at offset {}", best_over="offset"),
        Baseline("offset_accuracy", "always the word at offset {}", best_over="offset"),
    ),
    with_errors=False,
    also=(*(f"relation_accuracy{end}" for end in (*SUMS, "_ci", "_q", "_untrained")),),
)
OFFSET_ACCURACY = Measure(
    name="offset_accuracy",
    title="Accuracy of a fixed offset",
    meaning="How often the word at a fixed offset is the right one: of all words, and of those a "
    "head could see.",
    formula="words whose governor is at the offset / words",
    reference="Clark et al. 2019, Table 1, the baseline",
    axes={"offset": "Offset", "relation": "Relation", "direction": "Direction"},
    with_errors=False,
    also=(
        "offset_accuracy_scored",
        *(f"offset_accuracy{kind}{end}" for kind in ("", "_scored") for end in SUMS),
    ),
)
RELATION_COUNT = Measure(
    name="relation_count",
    title="Words with a relation",
    meaning="Words with the relation, and the share of them that a head could see.",
    formula="words; scored words / words",
    reference="Clark et al. 2019, Table 1",
    unit="",
    axes={"relation": "Relation", "direction": "Direction"},
    with_errors=False,
    also=("relation_coverage",),
)
TREE_ACCURACY = Measure(
    name="tree_accuracy",
    title="Undirected tree accuracy",
    meaning="Arcs in the head's maximum spanning tree.",
    formula="arcs in the maximum spanning tree of max(a, aᵀ) over all words / arcs, those of "
    "punctuation left out",
    reference="Raganato & Tiedemann 2018; not quite UUAS (Hewitt & Manning 2019), whose trees have "
    "no punctuation",
    more="its tree has more of the arcs",
    baselines=(Baseline("tree_baseline", "joining neighbours"),),
    with_errors=False,
    also=(*(f"tree_accuracy{end}" for end in (*SUMS, "_q")),),
)
TREE_BASELINE = Measure(
    name="tree_baseline",
    title="Arcs between neighbours",
    meaning="What a chain of the words has of the tree.",
    formula="arcs between neighbouring words / arcs",
    reference="Hewitt & Manning 2019, the linear baseline",
    with_errors=False,
    also=(*(f"tree_baseline{end}" for end in SUMS),),
)
MEASURES = (RELATION_ACCURACY, OFFSET_ACCURACY, RELATION_COUNT, TREE_ACCURACY, TREE_BASELINE)


@dataclass(frozen=True)
class RelationAccuracy(Metric):
    """How often every head points at the governor, by relation, next to fixed offsets; its tree."""

    grid: Grid
    classes: Classes
    is_causal: bool
    row: From = "mean"
    is_clamped: bool = False  # whether offsets end at the sentence, as in the paper's released code
    name: str = "relations"
    measures: tuple[Measure, ...] = MEASURES
    needs_matrices: bool = True

    def zero(self) -> Sums:
        directions, classes = len(DIRECTIONS), len(self.classes)
        return {
            "correct": group_zeros(*self.grid.shape, directions, classes),
            "scored": group_zeros(directions, classes),
            "words": group_zeros(classes),
            "offset_correct": group_zeros(directions, len(OFFSETS), classes),
            "arcs_found": group_zeros(*self.grid.shape),
            "arcs": group_zeros(),
            "arcs_of_neighbours": group_zeros(),
        }

    def see_text(self, sums: Sums, batch: AnnotatedBatch) -> None:
        """Count words, what can be scored, and the baselines."""
        gold = self._gold(batch)
        counts = count_offsets(gold, self._scored(gold), is_clamped=self.is_clamped)
        counts["arcs"] = counted_arcs(gold).sum(1)
        counts["arcs_of_neighbours"] = count_neighbours(gold)
        for name, values in counts.items():
            add_by_group(sums[name], values, batch.groups)

    def see_layer(self, sums: Sums, layer: Layer) -> None:
        """Count what the heads of one layer get right."""
        gold, groups = self._gold(layer.batch), layer.batch.groups
        maps = word_layer(layer, self.row)
        correct = count_correct(predict(maps, gold.words), gold, self._scored(gold))
        add_by_group(sums["correct"][:, layer.index], correct, groups)
        add_by_group(sums["arcs_found"][:, layer.index], count_arcs(maps, gold), groups)

    def compute(self, sums: Sums) -> Variables:
        """Accuracies with intervals, baselines and coverage, and the counts of every group."""
        relation = Axis("relation", self.classes.names)
        correct = label(sums["correct"], GROUP, *self.grid.axes, DIRECTION, relation)
        scored = label(sums["scored"], GROUP, DIRECTION, relation)
        words = label(sums["words"], GROUP, relation)
        hits = label(sums["offset_correct"], GROUP, DIRECTION, OFFSET, relation)
        # The directions of a causal model share the words out; elsewhere both score them all.
        all_hits = hits.sum("direction") if self.is_causal else hits.isel(direction=0, drop=True)
        total = counted(sums["words"].sum(0).numpy())
        coverage = accuracy(sums["scored"].sum(0).numpy(), total)
        arcs = label(sums["arcs"], GROUP)
        arcs_in_trees = label(sums["arcs_found"], GROUP, *self.grid.axes)
        arcs_of_neighbours = label(sums["arcs_of_neighbours"], GROUP)
        accuracies = ratio_variables("relation_accuracy", correct, scored)
        return {
            **accuracies,
            "relation_accuracy_ci": interval_variable(accuracies, "relation_accuracy"),
            # Over all words, as in the paper, and over the words that each direction could score.
            **ratio_variables("offset_accuracy", all_hits, words),
            **ratio_variables("offset_accuracy_scored", hits, scored),
            "relation_count": label(total, relation),
            "relation_coverage": label(coverage, DIRECTION, relation),
            **ratio_variables("tree_accuracy", arcs_in_trees, arcs),
            **ratio_variables("tree_baseline", arcs_of_neighbours, arcs),
        }

    def _gold(self, batch: AnnotatedBatch) -> GoldTrees:
        def make() -> GoldTrees:
            return make_gold(batch.sentences, self.classes, device=batch.mask.device)

        return batch.once(self.name, make)

    def _scored(self, gold: GoldTrees) -> Tensor:
        return scored_words(gold.heads, gold.words, is_causal=self.is_causal)


def predict(
    maps: Float[Tensor, "batch head word word"], words: Bool[Tensor, "batch word"]
) -> Int[Tensor, "direction batch head word"]:
    """The word that every head points at from each word, in both directions."""
    others = 1 - torch.eye(maps.shape[-1], dtype=maps.dtype, device=maps.device)
    # Padding must lose against words of weight zero.
    absent = torch.where(words, 0.0, -1.0).to(maps.dtype)[:, None, None, :]
    zeroed = maps * others
    attended = (zeroed + absent).argmax(-1)
    # Copied first: arg-max along the last, contiguous axis is three times as fast.
    attending = (zeroed.transpose(-1, -2).contiguous() + absent).argmax(-1)
    return torch.stack([attended, attending])


def scored_words(
    heads: Int[Tensor, "batch word"], words: Bool[Tensor, "batch word"], *, is_causal: bool
) -> Bool[Tensor, "direction batch word"]:
    """Words whose governor a head could point at; the root of a sentence is scored, and missed.

    A causal head sees dependent → governor if the governor comes first, governor → dependent if it
    comes last. Roots have no governor to see: causal models are not asked for it.
    """
    if not is_causal:
        return words.expand(len(DIRECTIONS), *words.shape)
    position = torch.arange(heads.shape[1], device=heads.device)
    is_word = words & (heads != ROOT)
    return torch.stack([is_word & (heads < position), is_word & (heads > position)])


def count_correct(
    predicted: Int[Tensor, "direction batch head word"],
    gold: GoldTrees,
    scored: Bool[Tensor, "direction batch word"],
) -> Float[Tensor, "batch head direction class"]:
    """How many words of each class every head gets right in every sentence."""
    heads = gold.heads[:, None]
    correct = _class_counts(predicted == heads, gold.by_itself, scored)
    if gold.by_next.any():
        # The last word has no next one; -1 is no governor that a word of the class could have.
        by_next = torch.nn.functional.pad(predicted[..., 1:], (0, 1), value=-1)
        correct = correct + _class_counts(by_next == heads, gold.by_next, scored)
    return correct


def count_offsets(
    gold: GoldTrees, scored: Bool[Tensor, "direction batch word"], *, is_clamped: bool = False
) -> dict[str, Float[Tensor, "batch *item"]]:
    """Words per class, how many are scored, and how many the word at a fixed offset gets right.

    Where the next word's prediction counts, the offset is from there. An offset that leads out of
    the sentence is wrong, or if clamped its first or last word; then there is none of +3.
    """
    shifts = torch.tensor(OFFSETS, device=gold.heads.device)[:, None]
    hits: list[Tensor] = []
    for answering, classes in ((0, gold.by_itself), (1, gold.by_next)):
        position = torch.arange(gold.heads.shape[1], device=gold.heads.device) + answering
        target = (position + shifts).expand(len(gold.heads), -1, -1)  # batch offset word
        is_tried = shifts <= (CLAMPED if is_clamped else max(OFFSETS))
        if is_clamped:
            last = gold.words.sum(1)[:, None, None] - 1
            target = target.clamp(min=0).minimum(last)
        # A root is −1, which is also the place before the first word: it must not count as a hit.
        heads = gold.heads[:, None]
        is_hit = (heads == target) & (heads >= 0) & is_tried
        hits.append(torch.einsum("dbw,bow,bwc->bdoc", scored.float(), is_hit.float(), classes))
    return {
        "words": torch.einsum("bw,bwc->bc", gold.words.float(), gold.classes),
        "scored": torch.einsum("dbw,bwc->bdc", scored.float(), gold.classes),
        "offset_correct": hits[0] + hits[1],
    }


def _class_counts(
    hits: Bool[Tensor, "direction batch head word"],
    classes: Float[Tensor, "batch word class"],
    scored: Bool[Tensor, "direction batch word"],
) -> Float[Tensor, "batch head direction class"]:
    """Scored hits by the class of the word."""
    return ((hits & scored[:, :, None]).float() @ classes).permute(1, 2, 0, 3)
