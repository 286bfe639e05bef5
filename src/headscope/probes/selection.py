"""The best head for each relation, chosen on the data it is scored on and on the other half.

A head picked from hundreds because it scores best is expected to score less on new data. The paper
picks on the evaluation data; here a head is also picked on one half of the groups of documents (the
even ones, then the odd ones) and scored on the other, and the counts of both are added.
"""

from dataclasses import dataclass

import numpy as np
import xarray as xr
from jaxtyping import Float

from headscope.probes.proportion import accuracy
from headscope.probes.relations import DIRECTIONS, OFFSETS
from headscope.results.replicates import (
    informed,
    ratio_replicates,
    share_interval,
    standard_error,
)

Place = tuple[int, int, int]  # layer, head, direction


@dataclass(frozen=True)
class RelationCounts:
    """Counts over the groups of a corpus: everything that Table 1 is made of."""

    correct: Float[np.ndarray, "group layer head direction class"]
    scored: Float[np.ndarray, "group direction class"]
    words: Float[np.ndarray, "group class"]
    offset_correct: Float[np.ndarray, "group direction offset class"]


@dataclass(frozen=True)
class BestHead:
    """One row of Table 1."""

    relation: str
    words: int
    direction: str
    layer: int  # place among the captured layers
    head: int
    accuracy: float
    low: float  # 95 % interval
    high: float
    coverage: float  # share of the words that the head could be asked for
    offset: int  # the best fixed offset on the same words
    baseline: float
    margin: float  # accuracy − baseline
    held_out: float  # accuracy of heads chosen on the other half
    held_out_low: float
    held_out_high: float
    same_choice: bool  # whether both halves choose this head


def best_heads(counts: RelationCounts, names: tuple[str, ...]) -> list[BestHead]:
    """The best head and direction for every class that has a scored word."""
    scored = counts.scored.sum((0, 1))
    return [_best(counts, place, name) for place, name in enumerate(names) if scored[place] > 0]


def counts_of(result: xr.Dataset) -> RelationCounts:
    """The counts that a result was computed from."""
    correct = result["relation_accuracy_numerator"]
    # Other variables of a result may have further offsets.
    hits = result["offset_accuracy_scored_numerator"].sel(offset=list(OFFSETS))
    return RelationCounts(
        correct.transpose("group", "layer", "head", "direction", "relation").values,
        result["relation_accuracy_denominator"].values,
        result["offset_accuracy_denominator"].values,
        hits.values,
    )


def halves(counts: Float[np.ndarray, "group *item"]) -> Float[np.ndarray, "half *item"]:
    """Counts of the groups with even numbers, and of those with odd numbers."""
    return np.stack([counts[0::2].sum(0), counts[1::2].sum(0)])


def counted_interval(
    correct: Float[np.ndarray, "group *item"], total: Float[np.ndarray, "group *item"]
) -> tuple[np.ndarray, np.ndarray]:
    """The 95 % interval of a share of words that were counted in groups of documents."""
    values, groups = ratio_replicates(correct, total), informed(total)
    error = standard_error(values, groups)
    return share_interval(values[0], error, groups, total.sum(0), counted=True)


def choose(
    correct: Float[np.ndarray, "layer head direction"], scored: Float[np.ndarray, "direction"]
) -> Place:
    """Layer, head and direction of the highest accuracy; of equals the first.

    The directions of a causal model share the words out: the one with more words is taken, or a few
    odd words would decide. Elsewhere both directions score the same words, and both compete.
    """
    shares = np.where(scored == scored.max(), accuracy(correct, scored), -1.0)
    layer, head, direction = np.unravel_index(shares.argmax(), shares.shape)
    return int(layer), int(head), int(direction)


def _best(counts: RelationCounts, place: int, name: str) -> BestHead:
    correct, scored = counts.correct[..., place], counts.scored[..., place]
    chosen = choose(correct.sum(0), scored.sum(0))
    layer, head, direction = chosen
    right, total = correct.sum(0)[chosen], scored.sum(0)[direction]
    low, high = counted_interval(correct[:, *chosen], scored[:, direction])
    offset, baseline = _best_offset(counts, place, direction)
    elsewhere, held_right, held_total = _held_out(correct, scored)
    held_low, held_high = counted_interval(held_right, held_total)
    words = counts.words[:, place].sum()
    return BestHead(
        relation=name,
        words=int(words),
        direction=DIRECTIONS[direction],
        layer=layer,
        head=head,
        accuracy=float(right / total),
        low=float(low),
        high=float(high),
        coverage=float(total / words),
        offset=offset,
        baseline=baseline,
        margin=float(right / total) - baseline,
        held_out=float(accuracy(held_right.sum(), held_total.sum())),
        held_out_low=float(held_low),
        held_out_high=float(held_high),
        same_choice=elsewhere == [chosen, chosen],
    )


def _best_offset(counts: RelationCounts, place: int, direction: int) -> tuple[int, float]:
    correct = counts.offset_correct[:, direction, :, place].sum(0)
    best = int(correct.argmax())
    return OFFSETS[best], float(correct[best] / counts.scored[:, direction, place].sum())


def _held_out(
    correct: Float[np.ndarray, "group layer head direction"],
    scored: Float[np.ndarray, "group direction"],
) -> tuple[list[Place], Float[np.ndarray, "group"], Float[np.ndarray, "group"]]:
    """What each half chooses, and the counts of the groups for what the other half chose."""
    chosen = [*map(choose, halves(correct), halves(scored))]
    right, total = np.zeros(len(correct)), np.zeros(len(correct))
    for half, (layer, head, direction) in enumerate(chosen):
        right[1 - half :: 2] = correct[1 - half :: 2, layer, head, direction]
        total[1 - half :: 2] = scored[1 - half :: 2, direction]
    return chosen, right, total
